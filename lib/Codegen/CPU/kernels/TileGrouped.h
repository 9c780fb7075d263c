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
// where row i has its 32 activations at x + i·stride and their sum in sum[i]; one that takes NT
// neighbouring tiles at once has
//   template <int MR, int NT> void dots(const uint8_t *const (&chunk)[NT], const int8_t *x, int64_t
//   stride,
//                                       const int32_t (&sum)[MR], __m256i (&out)[NT][MR]) const
// A codec whose zeros meet a second code of ±1 has hasSigns, and dot() fills that product too, in a last argument; the zero then
// joins as fma(sign dot · xscale, zero, term).
#ifndef OTF_CODEGEN_CPU_TILEGROUPED_H
#define OTF_CODEGEN_CPU_TILEGROUPED_H

#include "Encoding/Layout.h"
#include "TileDense.h"

namespace otf::cpu {

/// Whether Codec has a second code.
template <typename Codec> inline constexpr bool kSigns = requires { requires Codec::hasSigns; };

/// Weights come in a stream that is read once, and what foresees streams in hardware stops at pages: asks for the `bytes` that lie
/// one page further. They may be past the last; a prefetch does not fault.
inline constexpr int64_t kAhead = 4096;
inline void prefetchAhead(const uint8_t *at, int64_t bytes, int64_t ahead = kAhead) {
  for (int64_t line = 0; line < bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char *>(at) + ahead + line, _MM_HINT_T0);
}

/// MR rows times NT tiles at `tileBytes`; row i of tile j goes to acc + 8 · (j · rows + i).
template <typename Codec, int MR, int NT>
inline void groupedRows(const Codec &codec, const uint8_t *tile, int64_t tileBytes,
                        const uint8_t *rec, int64_t stride, int64_t kb, int64_t group,
                        int64_t outliers, int64_t rows, float *acc) {
  RecordLayout layout = recordLayout(kb, outliers);
  int64_t perGroup = group <= 0 ? layout.chunks : group / kChunkColumns;
  // A tile's stream goes on NT tiles further: what lies behind its end is the next one's, which comes at the same time.
  const int64_t ahead = NT == 1 || tileBytes > kAhead ? kAhead : tileBytes, afterEnd = (NT - 1) * tileBytes;
  const uint8_t *at[NT], *nearEnd[NT];
  __m256 total[NT][MR];
  for (int j = 0; j < NT; ++j) {
    at[j] = tile + j * tileBytes;
    nearEnd[j] = at[j] + tileBytes - ahead;
    for (int i = 0; i < MR; ++i)
      total[j][i] = _mm256_setzero_ps();
  }

  for (int64_t c = 0; c < layout.chunks;) {
    int64_t end = perGroup < layout.chunks - c ? c + perGroup : layout.chunks;
    constexpr int64_t eight = Codec::floatParameters ? FloatColumn::bytes : HalfColumn::bytes;
    auto parameter = [](const uint8_t *from) { // scales or zeros of a tile's rows
      return Codec::floatParameters ? FloatColumn::load(from) : HalfColumn::load(from);
    };
    __m256 scale[NT], zero[NT];
    const uint8_t *parameters[NT];
    for (int j = 0; j < NT; ++j) {
      parameters[j] = at[j] + (end - c) * Codec::chunkBytes;
      scale[j] = parameter(parameters[j]);
      parameters[j] += eight;
      if constexpr (Codec::hasZeros) {
        zero[j] = parameter(parameters[j]);
        parameters[j] += eight;
      }
    }
    for (; c < end; ++c) {
      int32_t xSum[MR];
      float xScale[MR];
      for (int i = 0; i < MR; ++i) {
        const uint8_t *row = rec + i * stride;
        __builtin_memcpy(&xSum[i], row + layout.sumOffset + 4 * c, 4);
        __builtin_memcpy(&xScale[i], row + layout.scaleOffset + 4 * c, 4);
      }
      __m256i dot[NT][MR], signs[NT][MR];
      const int8_t *x = reinterpret_cast<const int8_t *>(rec + c * kChunkColumns);
      if constexpr (kSigns<Codec>)
        for (int j = 0; j < NT; ++j)
          codec.template dot<MR>(at[j], x, stride, xSum, dot[j], signs[j]);
      else if constexpr (NT == 1)
        codec.template dot<MR>(at[0], x, stride, xSum, dot[0]);
      else
        codec.template dots<MR, NT>(at, x, stride, xSum, dot);
      for (int j = 0; j < NT; ++j) {
        prefetchAhead(at[j] + (at[j] < nearEnd[j] ? 0 : afterEnd), Codec::chunkBytes, ahead);
        for (int i = 0; i < MR; ++i) {
          __m256 term = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[j][i]), _mm256_set1_ps(xScale[i]));
          term = _mm256_mul_ps(term, scale[j]);
          if constexpr (kSigns<Codec>)
            term = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(signs[j][i]), _mm256_set1_ps(xScale[i])), zero[j], term);
          else if constexpr (Codec::hasZeros)
            term = _mm256_fmadd_ps(_mm256_set1_ps(xScale[i] * float(xSum[i])), zero[j], term);
          total[j][i] = _mm256_add_ps(total[j][i], term);
        }
        at[j] += Codec::chunkBytes;
      }
    }
    for (int j = 0; j < NT; ++j)
      at[j] = parameters[j];
  }

  for (int j = 0; j < NT; ++j)
    for (int64_t o = 0; o < outliers; ++o, at[j] += HalfColumn::bytes) {
      __m256 w = HalfColumn::load(at[j]);
      for (int i = 0; i < MR; ++i) {
        float x;
        __builtin_memcpy(&x, rec + i * stride + layout.outlierOffset + 4 * o, 4);
        total[j][i] = _mm256_add_ps(total[j][i], _mm256_mul_ps(w, _mm256_set1_ps(x)));
      }
    }
  for (int j = 0; j < NT; ++j)
    for (int i = 0; i < MR; ++i)
      _mm256_storeu_ps(acc + 8 * (j * rows + i), total[j][i]);
}

template <typename Codec>
inline void groupedTile(const Codec &codec, const void *tile, const void *rec, int64_t recStride,
                        int64_t m, int64_t kb, int64_t group, int64_t outliers, float *acc) {
  forRows(m, [&]<int MR>(int64_t first) {
    groupedRows<Codec, MR, 1>(codec, static_cast<const uint8_t *>(tile), 0,
                              static_cast<const uint8_t *>(rec) + first * recStride, recStride, kb,
                              group, outliers, m, acc + 8 * first);
  });
}

/// Several tiles, two at a time: an activation is loaded once for both.
template <typename Codec>
inline void groupedTiles(const Codec &codec, const void *tile, int64_t tileBytes, int64_t tiles,
                         const void *rec, int64_t recStride, int64_t m, int64_t kb, int64_t group,
                         int64_t outliers, float *acc) {
  const uint8_t *first = static_cast<const uint8_t *>(tile);
  int64_t t = 0;
  for (; t + 2 <= tiles; t += 2)
    forRows(m, [&]<int MR>(int64_t row) {
      groupedRows<Codec, MR, 2>(codec, first + t * tileBytes, tileBytes,
                                static_cast<const uint8_t *>(rec) + row * recStride, recStride, kb,
                                group, outliers, m, acc + 8 * (t * m + row));
    });
  if (t < tiles)
    groupedTile(codec, first + t * tileBytes, rec, recStride, m, kb, group, outliers,
                acc + 8 * t * m);
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_TILEGROUPED_H
