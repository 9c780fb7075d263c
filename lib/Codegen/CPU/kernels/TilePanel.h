// SPDX-License-Identifier: Apache-2.0
//
// Contractions of many rows of activations with weights that have groups: the arithmetic of
// TileGrouped.h, to the bit, in another order of loops. A chunk of a few tiles becomes panels
// (Panel.h), all rows meet it, and their totals wait in the first-level cache for the next chunk.
// Below kFewRows a panel is not worth making.
//
// Besides what TileGrouped.h asks for, a codec has
//   Panel                                    the form of its panels
//   void steps(const uint8_t *chunk, __m256i (&w)[8]) const   bytes as that panel takes them
//   fewRows                                  optional: the same for fewer rows, in place of TileGrouped.h
//   addsCodes                                optional: whether sums of codes (CodeSums.h) are for it
//   static or not: V exact(V sum, V xSum) const               Σ w x from the panel's sum and from Σ
//   x
#ifndef OTF_CODEGEN_CPU_TILEPANEL_H
#define OTF_CODEGEN_CPU_TILEPANEL_H

#include "CodeSums.h"
#include "Kernels.h"
#include "Panel.h"
#include "TileGrouped.h"

#include <type_traits>

namespace otf::cpu {

constexpr int64_t kFewRows = 4;
/// Rows whose totals wait at a time.
constexpr int64_t kPanelRows = 64;

/// A lane's f32 or f16 parameters of each of the tiles that a panel spans, `tileBytes` apart.
template <typename Column, typename Panel>
inline typename Panel::Floats loadParameters(const uint8_t *at,
                                             [[maybe_unused]] int64_t tileBytes) {
  if constexpr (Panel::tiles == 1) {
    return typename Panel::Floats(Column::load(at));
  } else {
#ifdef __AVX512F__
    return typename Panel::Floats(_mm512_insertf32x8(_mm512_castps256_ps512(Column::load(at)),
                                                     Column::load(at + tileBytes), 1));
#endif
  }
}

/// fma by lane; a vector has no operator for it.
template <typename Floats> inline Floats fused(float a, Floats b, Floats c) {
  if constexpr (sizeof(Floats) == 32) {
    return Floats(_mm256_fmadd_ps(_mm256_set1_ps(a), __m256(b), __m256(c)));
  } else {
#ifdef __AVX512F__
    return Floats(_mm512_fmadd_ps(_mm512_set1_ps(a), __m512(b), __m512(c)));
#endif
  }
}

/// `rows` rows, at most kPanelRows, by NP panels from `tile`, in blocks of up to MR rows; row i of
/// tile t goes to acc + 8 · (t · m + i).
template <typename Codec, int MR, int NP>
inline void panelRows(const Codec &codec, const uint8_t *tile, int64_t tileBytes,
                      const uint8_t *rec, int64_t stride, int64_t rows, int64_t m, int64_t kb,
                      int64_t group, int64_t outliers, float *acc) {
  using Panel = typename Codec::Panel;
  using Integers = typename Panel::Integers;
  using Floats = typename Panel::Floats;
  using Parameter = std::conditional_t<Codec::floatParameters, FloatColumn, HalfColumn>;
  constexpr int tiles = Panel::tiles;
  RecordLayout layout = recordLayout(kb, outliers);
  int64_t perGroup = group <= 0 ? layout.chunks : group / kChunkColumns;
  Floats total[kPanelRows][NP];
  for (int64_t i = 0; i < rows; ++i)
    for (int j = 0; j < NP; ++j)
      total[i][j] = Floats{};

  const uint8_t *at = tile; // of the first tile; the others are multiples of tileBytes away
  for (int64_t c = 0; c < layout.chunks;) {
    int64_t end = perGroup < layout.chunks - c ? c + perGroup : layout.chunks;
    const uint8_t *parameters = at + (end - c) * Codec::chunkBytes;
    Floats scale[NP], zero[NP];
    for (int j = 0; j < NP; ++j) {
      scale[j] = loadParameters<Parameter, Panel>(parameters + tiles * j * tileBytes, tileBytes);
      if constexpr (Codec::hasZeros)
        zero[j] = loadParameters<Parameter, Panel>(
            parameters + tiles * j * tileBytes + Parameter::bytes, tileBytes);
    }
#pragma clang loop unroll(disable)
    for (; c < end; ++c, at += Codec::chunkBytes) {
      Panel panel[NP];
      for (int j = 0; j < NP; ++j) {
        __m256i w[tiles][kSteps];
        for (int t = 0; t < tiles; ++t)
          codec.steps(at + (tiles * j + t) * tileBytes, w[t]);
        panel[j].make(w);
      }
      forPowersOfRows<MR>(rows, [&]<int R>(int64_t first) {
        const uint8_t *row = rec + first * stride;
        Integers sum[R][NP];
        panelSums<R, NP>(panel, reinterpret_cast<const int8_t *>(row) + c * kChunkColumns, stride,
                         sum);
#pragma clang loop unroll(full)
        for (int i = 0; i < R; ++i) {
          int32_t xSum;
          float xScale;
          __builtin_memcpy(&xSum, row + i * stride + layout.sumOffset + 4 * c, 4);
          __builtin_memcpy(&xScale, row + i * stride + layout.scaleOffset + 4 * c, 4);
          for (int j = 0; j < NP; ++j) {
            Integers dot = codec.exact(sum[i][j], xSum - Integers{});
            Floats term = __builtin_convertvector(dot, Floats) * xScale * scale[j];
            if constexpr (Codec::hasZeros)
              term = fused(xScale * float(xSum), zero[j], term);
            total[first + i][j] = total[first + i][j] + term;
          }
        }
      });
    }
    at = parameters + (Codec::hasZeros ? 2 : 1) * Parameter::bytes;
  }

  for (int64_t o = 0; o < outliers; ++o, at += HalfColumn::bytes)
    for (int j = 0; j < NP; ++j) {
      Floats w = loadParameters<HalfColumn, Panel>(at + tiles * j * tileBytes, tileBytes);
      for (int64_t i = 0; i < rows; ++i) {
        float x;
        __builtin_memcpy(&x, rec + i * stride + layout.outlierOffset + 4 * o, 4);
        total[i][j] = total[i][j] + w * x;
      }
    }
  for (int64_t i = 0; i < rows; ++i)
    for (int j = 0; j < NP; ++j)
      for (int t = 0; t < tiles; ++t)
        __builtin_memcpy(acc + 8 * ((tiles * j + t) * m + i),
                         reinterpret_cast<const float *>(&total[i][j]) + 8 * t, 32);
}

/// `tiles` tiles that follow each other at tileBytes, times m rows.
template <typename Codec>
inline void manyTiles(const Codec &codec, const void *tile, int64_t tileBytes, int64_t tiles,
                      const void *rec, int64_t recStride, int64_t m, int64_t kb, int64_t group,
                      int64_t outliers, float *acc) {
  const uint8_t *first = static_cast<const uint8_t *>(tile);
  int64_t t = 0;
  if constexpr (requires { requires Codec::addsCodes; })
    if (m >= kFewRows && group == OTF_EXACT_SUMS) {
      auto some = [&]<int MR, int NP>() {
        constexpr int64_t step = NP * Codec::Panel::tiles;
#pragma clang loop unroll(disable)
        for (; t + step <= tiles; t += step)
          codeSums<Codec, MR, NP>(codec, first + t * tileBytes, tileBytes, static_cast<const uint8_t *>(rec), recStride, m, kb,
                                  acc + 8 * t * m);
      };
      constexpr bool wide = Codec::Panel::tiles == 2; // and 32 registers
      some.template operator()<wide ? 8 : 4, 2>();
      some.template operator()<wide ? 8 : 4, 1>();
    }
  if (m >= kFewRows && t < tiles) {
    auto some = [&]<int MR, int NP>() {
      constexpr int64_t step = NP * Codec::Panel::tiles;
#pragma clang loop unroll(disable)
      for (; t + step <= tiles; t += step)
#pragma clang loop unroll(disable)
        for (int64_t row = 0; row < m; row += kPanelRows)
          panelRows<Codec, MR, NP>(codec, first + t * tileBytes, tileBytes,
                                   static_cast<const uint8_t *>(rec) + row * recStride, recStride,
                                   m - row < kPanelRows ? m - row : kPanelRows, m, kb, group,
                                   outliers, acc + 8 * (t * m + row));
    };
    constexpr bool wide = Codec::Panel::tiles == 2; // and 32 registers
    some.template operator()<wide ? 8 : 4, 2>();
    some.template operator()<wide ? 8 : 4, 1>();
  }
  if constexpr (requires { &Codec::fewRows; }) {
    if (t < tiles)
      Codec::fewRows(first + t * tileBytes, tileBytes, tiles - t, static_cast<const uint8_t *>(rec), recStride, m, kb, group,
                     outliers, acc + 8 * t * m);
  } else if constexpr (Codec::pairs) {
    if (t < tiles)
      groupedTiles(codec, first + t * tileBytes, tileBytes, tiles - t, rec, recStride, m, kb, group,
                   outliers, acc + 8 * t * m);
  } else {
    for (; t < tiles; ++t)
      groupedTile(codec, first + t * tileBytes, rec, recStride, m, kb, group, outliers,
                  acc + 8 * t * m);
  }
}

} // namespace otf::cpu

/// The kernels of a codec without a table: several tiles, and one.
#define OTF_GROUPED_TILE(name, Codec)                                                              \
  void otf_tiles_##name(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,       \
                        int64_t recStride, int64_t m, int64_t kb, int64_t group, int64_t outliers, \
                        float *acc) {                                                              \
    otf::cpu::manyTiles(otf::cpu::Codec{}, tile, tileBytes, tiles, rec, recStride, m, kb, group,   \
                        outliers, acc);                                                            \
  }                                                                                                \
  void otf_tile_##name(const void *tile, const void *rec, int64_t recStride, int64_t m,            \
                       int64_t kb, int64_t group, int64_t outliers, float *acc) {                  \
    otf::cpu::manyTiles(otf::cpu::Codec{}, tile, 0, 1, rec, recStride, m, kb, group, outliers,     \
                        acc);                                                                      \
  }

#endif // OTF_CODEGEN_CPU_TILEPANEL_H
