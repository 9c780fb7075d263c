// SPDX-License-Identifier: Apache-2.0
//
// Rows rotated, alone and on their way into a record. The order of operations is that of
// Encoding/Rotation.h, so the bits are too: a butterfly's result does not depend on how it is
// scheduled, and sums of the factor are chains of fma.
#include "Encoding/Layout.h"
#include "Encoding/Rotation.h"
#include "Norm.h"
#include "RecordChunk.h"

namespace otf::cpu {
namespace {

/// Neighbours at distances 1, 2 and 4, in a register: `swapped` holds b where v holds a. In the
/// places of b it is a − b.
template <int high> inline __m256 meet(__m256 v, __m256 swapped) {
  return _mm256_blend_ps(_mm256_add_ps(v, swapped), _mm256_sub_ps(swapped, v), high);
}

/// The distances 1, 2 and 4.
inline __m256 meetInside(__m256 v) {
  v = meet<0xaa>(v, _mm256_permute_ps(v, 0xb1));
  v = meet<0xcc>(v, _mm256_permute_ps(v, 0x4e));
  return meet<0xf0>(v, _mm256_permute2f128_ps(v, v, 1));
}

/// Two distances at once: of v[0] to v[1] and v[2] to v[3], then of v[0] to v[2] and v[1] to v[3].
inline void meetTwice(__m256 v[4]) {
  __m256 a = _mm256_add_ps(v[0], v[1]), b = _mm256_sub_ps(v[0], v[1]);
  __m256 c = _mm256_add_ps(v[2], v[3]), d = _mm256_sub_ps(v[2], v[3]);
  v[0] = _mm256_add_ps(a, c);
  v[1] = _mm256_add_ps(b, d);
  v[2] = _mm256_sub_ps(a, c);
  v[3] = _mm256_sub_ps(b, d);
}

/// Of a power of two, at least 8; each pass does as many distances as registers hold.
inline void butterflyWide(float *x, int64_t block) {
  int64_t distance = 8;
  if (block >= 32) {
    for (int64_t k = 0; k < block; k += 32) {
      __m256 v[4];
      for (int64_t i = 0; i < 4; ++i)
        v[i] = meetInside(_mm256_loadu_ps(x + k + 8 * i));
      meetTwice(v);
      for (int64_t i = 0; i < 4; ++i)
        _mm256_storeu_ps(x + k + 8 * i, v[i]);
    }
    distance = 32;
  } else {
    for (int64_t k = 0; k < block; k += 8)
      _mm256_storeu_ps(x + k, meetInside(_mm256_loadu_ps(x + k)));
  }
  for (; 4 * distance <= block; distance *= 4)
    for (int64_t first = 0; first < block; first += 4 * distance)
      for (int64_t k = first; k < first + distance; k += 8) {
        __m256 v[4];
        for (int64_t i = 0; i < 4; ++i)
          v[i] = _mm256_loadu_ps(x + k + i * distance);
        meetTwice(v);
        for (int64_t i = 0; i < 4; ++i)
          _mm256_storeu_ps(x + k + i * distance, v[i]);
      }
  if (distance < block)
    for (int64_t k = 0; k < distance; k += 8) {
      __m256 a = _mm256_loadu_ps(x + k), b = _mm256_loadu_ps(x + k + distance);
      _mm256_storeu_ps(x + k, _mm256_add_ps(a, b));
      _mm256_storeu_ps(x + k + distance, _mm256_sub_ps(a, b));
    }
}

inline void butterfly(float *x, int64_t block) {
  if (block >= 8)
    return butterflyWide(x, block);
  for (int64_t distance = 1; distance < block; distance *= 2)
    for (int64_t first = 0; first < block; first += 2 * distance)
      for (int64_t k = first; k < first + distance; ++k) {
        float a = x[k], b = x[k + distance];
        x[k] = a + b;
        x[k + distance] = a - b;
      }
}

/// The dense part of a segment; eight columns at a time where there are so many.
inline void dense(float *x, int64_t block, int64_t factor, const float *matrix) {
  if (factor == 1) {
    for (int64_t j = 0; j < block; ++j)
      x[j] *= matrix[0];
    return;
  }
  float column[8 * kMostFactor];
  int64_t width = block < 8 ? 1 : 8;
  for (int64_t j = 0; j < block; j += width) {
    for (int64_t i = 0; i < factor; ++i)
      for (int64_t lane = 0; lane < width; ++lane)
        column[8 * i + lane] = x[i * block + j + lane];
    for (int64_t i = 0; i < factor; ++i) {
      const float *row = matrix + i * factor;
      if (width == 1) {
        float sum = row[0] * column[0];
        for (int64_t n = 1; n < factor; ++n)
          sum = __builtin_fmaf(row[n], column[8 * n], sum);
        x[i * block + j] = sum;
      } else {
        __m256 sum = _mm256_mul_ps(_mm256_set1_ps(row[0]), _mm256_loadu_ps(column));
        for (int64_t n = 1; n < factor; ++n)
          sum = _mm256_fmadd_ps(_mm256_set1_ps(row[n]), _mm256_loadu_ps(column + 8 * n), sum);
        _mm256_storeu_ps(x + i * block + j, sum);
      }
    }
  }
}

/// Turns columns whose sign is set; without branches, which half of them would take.
inline void turn(float *x, int64_t first, int64_t count, uint64_t seed) {
  int64_t k = 0;
  while (k < count) {
    int64_t bit = (first + k) % 32, n = 32 - bit < count - k ? 32 - bit : count - k;
    uint32_t signs = otf::rotationSigns(seed, uint64_t((first + k) / 32)) >> bit;
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits;
      __builtin_memcpy(&bits, x + k + i, 4);
      bits ^= signs >> i << 31;
      __builtin_memcpy(x + k + i, &bits, 4);
    }
    k += n;
  }
}

/// Columns [first, first + count) of a row, in place: whole segments.
inline void rotate(float *x, int64_t first, int64_t count, int64_t block, int64_t factor,
                   int64_t seed, const float *matrix) {
  if (seed != 0)
    turn(x, first, count, uint64_t(seed));
  for (int64_t segment = 0; segment < count; segment += block * factor) {
    for (int64_t i = 0; i < factor; ++i)
      butterfly(x + segment + i * block, block);
    dense(x + segment, block, factor, matrix);
  }
}

} // namespace
} // namespace otf::cpu

void otf_rotate(const float *x, int64_t k, int64_t block, int64_t factor, int64_t seed,
                const float *matrix, float *out) {
  if (out != x)
    for (int64_t i = 0; i < k; ++i)
      out[i] = x[i];
  otf::cpu::rotate(out, 0, k, block, factor, seed, matrix);
}

void otf_record_rotated(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                        const float *beta, int64_t block, int64_t factor, int64_t seed,
                        const float *matrix, void *rec) {
  otf::cpu::RowNorm row(x, k, norm, eps, gamma, beta);
  otf::RecordLayout layout = otf::recordLayout(k, 0);
  uint8_t *bytes = static_cast<uint8_t *>(rec);
  int8_t *q = static_cast<int8_t *>(rec);
  float *scale = reinterpret_cast<float *>(bytes + layout.scaleOffset);
  int32_t *sum = reinterpret_cast<int32_t *>(bytes + layout.sumOffset);

  // As many columns at once as are whole segments and whole chunks: never more than kMostSegment
  // (Rotation.h), since a block below 32 makes segments of at most 16 · 63 columns, in twos.
  constexpr int64_t chunk = otf::kChunkColumns;
  int64_t window = block * factor * (block < chunk ? chunk / block : 1);
  float values[otf::kMostSegment];
  for (int64_t first = 0; first < k; first += window) {
    int64_t count = k - first < window ? k - first : window;
    for (int64_t i = 0; i < count; ++i)
      values[i] = row[first + i];
    otf::cpu::rotate(values, first, count, block, factor, seed, matrix);
    for (int64_t i = 0; i < count; i += chunk) {
      for (int64_t pad = count; pad < i + chunk; ++pad) // of the last chunk
        values[pad] = 0;
      int64_t c = (first + i) / chunk;
      scale[c] = otf::cpu::quantizeChunk(values + i, q + first + i, sum + c);
    }
  }
  for (int64_t i = layout.outlierOffset; i < layout.bytes; ++i)
    bytes[i] = 0;
}
