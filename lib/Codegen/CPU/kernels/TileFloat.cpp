// SPDX-License-Identifier: Apache-2.0
//
// Contractions of f32 activations with coded weights: what a file means that quantizes its weights only. A step is eight rows ×
// four columns of bytes; each column becomes eight floats and meets one activation. Sums of a chunk meet the scale once:
//
//   acc = Σ_chunks scale · (Σ q x) (+ zero · Σ x)
//
// Like plain weights, these are not canonical (docs/Architecture.md): no codes are made of their results' last bits here.
#include "Encoding/Layout.h"
#include "Kernels.h"
#include "PlanesSteps.h"
#include "TileDense.h"

namespace otf::cpu {
namespace {

/// The column of byte b of a lane in a step.
template <EncodingKind kind> constexpr int columnOf(int step, int b) { return isPlanes(kind) ? step + 8 * b : 4 * step + b; }

/// The eight steps of a chunk as signed bytes.
template <EncodingKind kind> inline void unpack(const uint8_t *chunk, __m256i (&w)[8]) {
  if constexpr (isPlanes(kind)) {
    planesSteps<kind>(chunk, w);
    for (__m256i &step : w)
      step = _mm256_sub_epi8(step, _mm256_set1_epi8(planesCode(kind).offset));
  } else if constexpr (chunkBytes(kind) == 256) {
    for (int step = 0; step < 8; ++step)
      w[step] = loadBytes(chunk + 32 * step);
  } else if constexpr (chunkBytes(kind) == 128) {
    const __m256i low = _mm256_set1_epi8(15), eight = _mm256_set1_epi8(8);
    for (int v = 0; v < 4; ++v) {
      __m256i both = loadBytes(chunk + 32 * v);
      w[v] = _mm256_sub_epi8(_mm256_and_si256(both, low), eight);
      w[4 + v] = _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(both, 4), low), eight);
    }
  } else {
    const __m256i low = _mm256_set1_epi8(3), two = _mm256_set1_epi8(2);
    for (int v = 0; v < 2; ++v) {
      __m256i packed = loadBytes(chunk + 32 * v);
      for (int j = 0; j < 4; ++j)
        w[4 * v + j] = _mm256_sub_epi8(_mm256_and_si256(_mm256_srli_epi16(packed, 2 * j), low), two);
    }
  }
}

template <EncodingKind kind, int MR>
inline void floatRows(const uint8_t *tile, const uint8_t *x, int64_t stride, int64_t k, int64_t group, float *acc) {
  constexpr bool wide = hasFloatParameters(kind);
  int64_t chunks = (k + kChunkColumns - 1) / kChunkColumns;
  int64_t perGroup = group == 0 ? chunks : group / kChunkColumns;
  const uint8_t *at = tile;
  __m256 total[MR];
  for (int i = 0; i < MR; ++i)
    total[i] = _mm256_setzero_ps();
  float tail[MR][kChunkColumns];
  for (int64_t c = 0; c < chunks;) {
    int64_t end = perGroup < chunks - c ? c + perGroup : chunks;
    const uint8_t *parameters = at + (end - c) * chunkBytes(kind);
    __m256 scale = wide ? FloatColumn::load(parameters) : loadHalves(parameters);
    __m256 zero = _mm256_setzero_ps();
    if constexpr (hasZeros(kind))
      zero = FloatColumn::load(parameters + 32);
    for (; c < end; ++c, at += chunkBytes(kind)) {
      const float *row[MR];
      int64_t left = k - c * kChunkColumns;
      for (int i = 0; i < MR; ++i) {
        row[i] = reinterpret_cast<const float *>(x + i * stride) + c * kChunkColumns;
        if (left >= kChunkColumns)
          continue;
        for (int64_t j = 0; j < kChunkColumns; ++j) // codes of the padding are no zeros
          tail[i][j] = j < left ? row[i][j] : 0;
        row[i] = tail[i];
      }
      __m256i w[8];
      unpack<kind>(at, w);
      __m256 even[MR], odd[MR];
      for (int i = 0; i < MR; ++i)
        even[i] = odd[i] = _mm256_setzero_ps();
      for (int step = 0; step < 8; ++step)
        for (int b = 0; b < 4; b += 2) {
          __m256 first = _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w[step], 24 - 8 * b), 24));
          __m256 second = _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w[step], 16 - 8 * b), 24));
          for (int i = 0; i < MR; ++i) {
            even[i] = _mm256_fmadd_ps(first, _mm256_set1_ps(row[i][columnOf<kind>(step, b)]), even[i]);
            odd[i] = _mm256_fmadd_ps(second, _mm256_set1_ps(row[i][columnOf<kind>(step, b + 1)]), odd[i]);
          }
        }
      for (int i = 0; i < MR; ++i) {
        total[i] = _mm256_fmadd_ps(scale, _mm256_add_ps(even[i], odd[i]), total[i]);
        if constexpr (hasZeros(kind)) {
          __m256 sum = _mm256_loadu_ps(row[i]);
          for (int j = 8; j < kChunkColumns; j += 8)
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(row[i] + j));
          total[i] = _mm256_fmadd_ps(zero, _mm256_set1_ps(horizontalSum(sum)), total[i]);
        }
      }
    }
    at = parameters + groupParameterBytes(kind);
  }
  for (int i = 0; i < MR; ++i)
    _mm256_storeu_ps(acc + 8 * i, total[i]);
}

template <EncodingKind kind>
inline void floatTile(const void *tile, const void *x, int64_t stride, int64_t m, int64_t k, int64_t group, float *acc) {
  forRows(m, [&]<int MR>(int64_t first) {
    floatRows<kind, MR>(static_cast<const uint8_t *>(tile), static_cast<const uint8_t *>(x) + first * stride, stride, k,
                        group, acc + 8 * first);
  });
}

} // namespace
} // namespace otf::cpu

#define OTF_FLOAT_TILE(name, kind)                                                                                     \
  void otf_float_##name(const void *tile, const void *x, int64_t stride, int64_t m, int64_t k, int64_t group,          \
                        int64_t, float *acc) {                                                                         \
    otf::cpu::floatTile<otf::EncodingKind::kind>(tile, x, stride, m, k, group, acc);                                   \
  }
OTF_FLOAT_TILE(int8, Int8)
OTF_FLOAT_TILE(int4, Int4)
OTF_FLOAT_TILE(grid8, Grid8)
OTF_FLOAT_TILE(grid4, Grid4)
OTF_FLOAT_TILE(grid2, Grid2)
OTF_FLOAT_TILE(grid8z, Grid8z)
OTF_FLOAT_TILE(grid4z, Grid4z)
OTF_FLOAT_TILE(grid2z, Grid2z)
OTF_FLOAT_TILE(planes3x1, Planes3x1)
OTF_FLOAT_TILE(planes3x2, Planes3x2)
OTF_FLOAT_TILE(planes3x3, Planes3x3)
OTF_FLOAT_TILE(planes3x4, Planes3x4)
OTF_FLOAT_TILE(planes4x1, Planes4x1)
OTF_FLOAT_TILE(planes4x2, Planes4x2)
OTF_FLOAT_TILE(planes4x3, Planes4x3)
