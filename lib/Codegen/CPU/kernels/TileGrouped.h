// SPDX-License-Identifier: Apache-2.0
//
// Contractions with weights that have groups. A codec gives the exact integer dot products of one
// chunk (8 rows × 32 columns) with MR rows of int8 activations; this file does the rest, which is
// f32 and the same for all:
//
//   acc = Σ_groups scale · Σ_chunks xscale · dot  (+ zero · Σ_chunks xscale · xsum)  + outlier panel
//
// A codec has chunkBytes, hasZeros and
//   template <int MR> void dot(const uint8_t *chunk, const int8_t *x, int64_t stride,
//                              const int32_t (&sum)[MR], __m256i (&out)[MR]) const
// where row i has its 32 activations at x + i·stride and their sum in sum[i].
#ifndef OTF_CODEGEN_CPU_TILEGROUPED_H
#define OTF_CODEGEN_CPU_TILEGROUPED_H

#include "Encoding/Layout.h"
#include "TileDense.h"

namespace otf::cpu {

template <typename Codec, int MR>
inline void groupedRows(const Codec &codec, const uint8_t *tile, const uint8_t *rec,
                        int64_t stride, int64_t kb, int64_t group, int64_t outliers, float *acc) {
  RecordLayout layout = recordLayout(kb, outliers);
  int64_t perGroup = group == 0 ? layout.chunks : group / kChunkColumns;
  const uint8_t *at = tile;
  __m256 total[MR];
  for (int i = 0; i < MR; ++i)
    total[i] = _mm256_setzero_ps();

  // value[i] = xscale · dot, offset[i] = xscale · xsum of chunk c
  auto chunk = [&](int64_t c, __m256 (&value)[MR], float (&offset)[MR]) {
    int32_t sum[MR];
    float scale[MR];
    for (int i = 0; i < MR; ++i) {
      const uint8_t *row = rec + i * stride;
      __builtin_memcpy(&sum[i], row + layout.sumOffset + 4 * c, 4);
      __builtin_memcpy(&scale[i], row + layout.scaleOffset + 4 * c, 4);
    }
    __m256i dot[MR];
    codec.template dot<MR>(at, reinterpret_cast<const int8_t *>(rec + c * kChunkColumns), stride,
                           sum, dot);
    at += Codec::chunkBytes;
    for (int i = 0; i < MR; ++i) {
      value[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[i]), _mm256_set1_ps(scale[i]));
      if constexpr (Codec::hasZeros)
        offset[i] = scale[i] * float(sum[i]);
    }
  };

  for (int64_t c = 0; c < layout.chunks;) {
    int64_t end = perGroup < layout.chunks - c ? c + perGroup : layout.chunks;
    __m256 value[MR];
    float offset[MR];
    chunk(c++, value, offset);
    while (c < end) {
      __m256 more[MR];
      float moreOffset[MR];
      chunk(c++, more, moreOffset);
      for (int i = 0; i < MR; ++i) {
        value[i] = _mm256_add_ps(value[i], more[i]);
        if constexpr (Codec::hasZeros)
          offset[i] += moreOffset[i];
      }
    }
    __m256 scale = loadHalves(at);
    at += 16;
    for (int i = 0; i < MR; ++i)
      total[i] = _mm256_fmadd_ps(value[i], scale, total[i]);
    if constexpr (Codec::hasZeros) {
      __m256 zero = loadHalves(at);
      at += 16;
      for (int i = 0; i < MR; ++i)
        total[i] = _mm256_fmadd_ps(_mm256_set1_ps(offset[i]), zero, total[i]);
    }
  }

  if (outliers != 0) {
    __m256 panel[MR];
    dense<HalfColumn>(at, outliers, rec + layout.outlierOffset, stride, panel);
    for (int i = 0; i < MR; ++i)
      total[i] = _mm256_add_ps(total[i], panel[i]);
  }
  for (int i = 0; i < MR; ++i)
    _mm256_storeu_ps(acc + 8 * i, total[i]);
}

template <typename Codec>
inline void groupedTile(const Codec &codec, const void *tile, const void *rec, int64_t recStride,
                        int64_t m, int64_t kb, int64_t group, int64_t outliers, float *acc) {
  forRows(m, [&]<int MR>(int64_t first) {
    groupedRows<Codec, MR>(codec, static_cast<const uint8_t *>(tile),
                           static_cast<const uint8_t *>(rec) + first * recStride, recStride, kb,
                           group, outliers, acc + 8 * first);
  });
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_TILEGROUPED_H
