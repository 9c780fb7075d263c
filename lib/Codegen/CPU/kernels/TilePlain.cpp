// SPDX-License-Identifier: Apache-2.0
//
// Contractions with f32 and f16 weights: blocks of rows of x times neighbouring tiles in registers. A column costs a load for
// each tile and one for each row, and rows times tiles multiplications: blocks are large enough that these are what takes the
// time. Each sum goes over columns in order, whatever the block.
#include "Kernels.h"
#include "TileDense.h"

namespace otf::cpu {
namespace {

struct Task {
  const uint8_t *tile;
  int64_t tileBytes;
  const uint8_t *x;
  int64_t stride, m, k;
  float *acc;

  const float *row(int64_t i) const { return reinterpret_cast<const float *>(x + i * stride); }
  float *out(int64_t t, int64_t i) const { return acc + 8 * (t * m + i); }
};

/// MR rows from `first`, NT tiles from `t`.
template <typename Column, int MR, int NT> inline void block(const Task &a, int64_t t, int64_t first) {
  __m256 sum[NT][MR];
  const uint8_t *w[NT];
  const float *x[MR];
  for (int j = 0; j < NT; ++j)
    w[j] = a.tile + (t + j) * a.tileBytes;
  for (int i = 0; i < MR; ++i)
    x[i] = a.row(first + i);
  for (int j = 0; j < NT; ++j)
    for (int i = 0; i < MR; ++i)
      sum[j][i] = _mm256_setzero_ps();
  for (int64_t c = 0; c < a.k; ++c) {
    __m256 column[NT];
    for (int j = 0; j < NT; ++j)
      column[j] = Column::load(w[j] + c * Column::bytes);
    for (int i = 0; i < MR; ++i) {
      __m256 xi = _mm256_set1_ps(x[i][c]);
      for (int j = 0; j < NT; ++j)
        sum[j][i] = _mm256_fmadd_ps(column[j], xi, sum[j][i]);
    }
  }
  for (int j = 0; j < NT; ++j)
    for (int i = 0; i < MR; ++i)
      _mm256_storeu_ps(a.out(t + j, first + i), sum[j][i]);
}

#ifdef __AVX512F__
/// The same with two tiles in a register: MR rows, 2 · NP tiles.
template <typename Column, int MR, int NP> inline void wideBlock(const Task &a, int64_t t, int64_t first) {
  __m512 sum[NP][MR];
  const uint8_t *w[2 * NP];
  const float *x[MR];
  for (int j = 0; j < 2 * NP; ++j)
    w[j] = a.tile + (t + j) * a.tileBytes;
  for (int i = 0; i < MR; ++i)
    x[i] = a.row(first + i);
  for (int j = 0; j < NP; ++j)
    for (int i = 0; i < MR; ++i)
      sum[j][i] = _mm512_setzero_ps();
  for (int64_t c = 0; c < a.k; ++c) {
    __m512 column[NP];
    for (int j = 0; j < NP; ++j)
      column[j] = _mm512_insertf32x8(_mm512_castps256_ps512(Column::load(w[2 * j] + c * Column::bytes)),
                                     Column::load(w[2 * j + 1] + c * Column::bytes), 1);
    for (int i = 0; i < MR; ++i) {
      __m512 xi = _mm512_set1_ps(x[i][c]);
      for (int j = 0; j < NP; ++j)
        sum[j][i] = _mm512_fmadd_ps(column[j], xi, sum[j][i]);
    }
  }
  for (int j = 0; j < NP; ++j)
    for (int i = 0; i < MR; ++i) {
      _mm256_storeu_ps(a.out(t + 2 * j, first + i), _mm512_castps512_ps256(sum[j][i]));
      _mm256_storeu_ps(a.out(t + 2 * j + 1, first + i), _mm512_extractf32x8_ps(sum[j][i], 1));
    }
}
#endif

/// All rows of NT tiles from `t`. Twelve sums hide the latency of a multiplication and fit sixteen registers.
template <typename Column, int NT> inline void rows(const Task &a, int64_t t) {
  constexpr int most = 12 / NT;
  int64_t i = 0;
  for (; i + most <= a.m; i += most)
    block<Column, most, NT>(a, t, i);
  auto rest = [&]<int MR>(auto &&self) {
    if constexpr (MR > 0) {
      if (a.m - i == MR)
        return block<Column, MR, NT>(a, t, i);
      self.template operator()<MR - 1>(self);
    }
  };
  rest.template operator()<most - 1>(rest);
}

template <typename Column> void plainTiles(const Task &a, int64_t tiles) {
  int64_t t = 0;
  if (a.m < 3) {
    // Few rows: more tiles make the sums that hide latency.
    for (; t + 4 <= tiles; t += 4)
      rows<Column, 4>(a, t);
  }
#ifdef __AVX512F__
  for (; t + 4 <= tiles; t += 4) {
    // A column costs two instructions that pair tiles, on the ports of FMA: the more rows, the better.
    int64_t i = 0;
    for (; i + 12 <= a.m; i += 12)
      wideBlock<Column, 12, 2>(a, t, i);
    for (; i + 4 <= a.m; i += 4)
      wideBlock<Column, 4, 2>(a, t, i);
    for (; i + 2 <= a.m; i += 2)
      wideBlock<Column, 2, 2>(a, t, i);
    if (i < a.m)
      wideBlock<Column, 1, 2>(a, t, i);
  }
#endif
  for (; t + 2 <= tiles; t += 2)
    rows<Column, 2>(a, t);
  if (t < tiles)
    rows<Column, 1>(a, t);
}

} // namespace
} // namespace otf::cpu

using namespace otf::cpu;

void otf_tiles_f32(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec, int64_t recStride, int64_t m,
                   int64_t k, float *acc) {
  plainTiles<FloatColumn>({static_cast<const uint8_t *>(tile), tileBytes, static_cast<const uint8_t *>(rec), recStride, m, k, acc},
                          tiles);
}

void otf_tiles_f16(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec, int64_t recStride, int64_t m,
                   int64_t k, float *acc) {
  plainTiles<HalfColumn>({static_cast<const uint8_t *>(tile), tileBytes, static_cast<const uint8_t *>(rec), recStride, m, k, acc},
                         tiles);
}
