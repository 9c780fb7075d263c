// SPDX-License-Identifier: Apache-2.0
//
// Contractions with weights that have groups. A codec gives the exact integer dot products of one
// chunk (8 rows × 32 columns) with MR rows of int8 activations; this file does the rest, which is
// f32 and the same for all:
//
//   acc = Σ_chunks ((dot · xscale) · scale (+ (xscale · xsum) · zero)) + Σ_outliers w · x
//
// The order is canonical (docs/Architecture.md): each term is rounded as written, the zero joins by
// fma, and the terms are added one after another. A group of several chunks applies its scale to
// each of them, because another machine may hold them apart.
//
// A codec has chunkBytes, hasZeros, floatParameters (f32 and not f16) and
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

  for (int64_t c = 0; c < layout.chunks;) {
    int64_t end = perGroup < layout.chunks - c ? c + perGroup : layout.chunks;
    const uint8_t *parameters = at + (end - c) * Codec::chunkBytes;
    auto eight = [&] { // scales or zeros of the tile's rows
      const uint8_t *from = parameters;
      parameters += Codec::floatParameters ? FloatColumn::bytes : HalfColumn::bytes;
      return Codec::floatParameters ? FloatColumn::load(from) : HalfColumn::load(from);
    };
    __m256 scale = eight(), zero = _mm256_setzero_ps();
    if constexpr (Codec::hasZeros)
      zero = eight();
    for (; c < end; ++c, at += Codec::chunkBytes) {
      int32_t xSum[MR];
      float xScale[MR];
      for (int i = 0; i < MR; ++i) {
        const uint8_t *row = rec + i * stride;
        __builtin_memcpy(&xSum[i], row + layout.sumOffset + 4 * c, 4);
        __builtin_memcpy(&xScale[i], row + layout.scaleOffset + 4 * c, 4);
      }
      __m256i dot[MR];
      codec.template dot<MR>(at, reinterpret_cast<const int8_t *>(rec + c * kChunkColumns), stride,
                             xSum, dot);
      for (int i = 0; i < MR; ++i) {
        __m256 term = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[i]), _mm256_set1_ps(xScale[i]));
        term = _mm256_mul_ps(term, scale);
        if constexpr (Codec::hasZeros)
          term = _mm256_fmadd_ps(_mm256_set1_ps(xScale[i] * float(xSum[i])), zero, term);
        total[i] = _mm256_add_ps(total[i], term);
      }
    }
    at = parameters;
  }

  for (int64_t o = 0; o < outliers; ++o, at += HalfColumn::bytes) {
    __m256 w = HalfColumn::load(at);
    for (int i = 0; i < MR; ++i) {
      float x;
      __builtin_memcpy(&x, rec + i * stride + layout.outlierOffset + 4 * o, 4);
      total[i] = _mm256_add_ps(total[i], _mm256_mul_ps(w, _mm256_set1_ps(x)));
    }
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
