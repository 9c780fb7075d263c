// SPDX-License-Identifier: Apache-2.0
//
// Records: a row of activations as contractions read it (docs/Architecture.md), made once for all
// consumers. Scales are per 32 activations: scale = max|x| / 127, q = rint(x / scale), with true
// divisions, so that every machine gives the same bytes.
#include "Encoding/Layout.h"
#include "Norm.h"
#include "RecordChunk.h"

namespace otf::cpu {
namespace {

/// The same on a grid that the model gives: q = clamp(rint(x / scale) + zero, -128, 127). NaN is -128, as where codes are made alone.
inline void quantizeOnGrid(const float *x, float scale, float zero, int8_t *q, int32_t *sum) {
  const __m256 divisor = _mm256_set1_ps(scale), shift = _mm256_set1_ps(zero);
  __m256i n[4];
  for (int i = 0; i < 4; ++i) {
    __m256 t = _mm256_round_ps(_mm256_div_ps(_mm256_loadu_ps(x + 8 * i), divisor),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    t = _mm256_add_ps(t, shift);
    t = _mm256_min_ps(_mm256_max_ps(t, _mm256_set1_ps(-128)), _mm256_set1_ps(127));
    n[i] = _mm256_cvtps_epi32(t);
  }
  *sum = horizontalSum(_mm256_add_epi32(_mm256_add_epi32(n[0], n[1]), _mm256_add_epi32(n[2], n[3])));
  store(n, q);
}

} // namespace
} // namespace otf::cpu

void otf_record_f32(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                    const float *beta, void *rec) {
  otf::cpu::RowNorm row(x, k, norm, eps, gamma, beta);
  float *out = static_cast<float *>(rec);
  for (int64_t i = 0; i < k; ++i)
    out[i] = row[i];
  for (int64_t i = k; i < otf::plainRecordBytes(k) / 4; ++i)
    out[i] = 0;
}

void otf_record_i8(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                   const float *beta, const uint32_t *index, const float *grid, int64_t kb,
                   int64_t outliers, void *rec) {
  otf::cpu::RowNorm row(x, k, norm, eps, gamma, beta);
  otf::RecordLayout layout = otf::recordLayout(kb, outliers);
  uint8_t *bytes = static_cast<uint8_t *>(rec);
  int8_t *q = static_cast<int8_t *>(rec);
  float *scale = reinterpret_cast<float *>(bytes + layout.scaleOffset);
  int32_t *sum = reinterpret_cast<int32_t *>(bytes + layout.sumOffset);
  float *outlier = reinterpret_cast<float *>(bytes + layout.outlierOffset);

  for (int64_t c = 0; c < layout.chunks; ++c) {
    int64_t first = c * otf::kChunkColumns;
    int64_t left = kb - first;
    int64_t count = left < otf::kChunkColumns ? left : otf::kChunkColumns;
    float values[otf::kChunkColumns];
    if (count < otf::kChunkColumns)
      for (float &value : values)
        value = 0;
    if (index)
      for (int64_t i = 0; i < count; ++i)
        values[i] = row[index[first + i]];
    else
      for (int64_t i = 0; i < count; ++i)
        values[i] = row[first + i];
    if (grid) {
      scale[c] = 1; // the grid's is for the whole sum
      otf::cpu::quantizeOnGrid(values, grid[0], grid[1], q + first, sum + c);
      // The padding is no value of x, so it has no zero point either.
      for (int64_t i = count; i < otf::kChunkColumns; ++i) {
        sum[c] -= q[first + i];
        q[first + i] = 0;
      }
    } else {
      scale[c] = otf::cpu::quantizeChunk(values, q + first, sum + c);
    }
  }
  for (int64_t i = 0; i < outliers; ++i)
    outlier[i] = row[index[kb + i]];
  for (int64_t i = layout.outlierOffset + 4 * outliers; i < layout.bytes; ++i)
    bytes[i] = 0;
}
