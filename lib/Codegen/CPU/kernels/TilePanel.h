// SPDX-License-Identifier: Apache-2.0
//
// Contractions of many rows of activations with weights that have groups: the arithmetic of
// TileGrouped.h, to the bit, in another order of loops. Of a few tiles and up to 64 rows at a time,
//   for each run of chunks        its part of the records is packed, chunk by chunk and row by row
//     for each panel of tiles     (two side by side)
//       for each chunk of the run the panel is unpacked (Panel.h),
//         for each block of rows  multiplied, scaled and added to the block's totals
// Packed activations, a panel and its totals stay in the first-level cache, and a block of rows is
// next to the one before: records themselves lie a row's length apart, and 64 of them do not fit.
// Below kFewRows a panel is not worth making.
//
// Besides what TileGrouped.h asks for, a codec has
//   Panel                                    the form of its panels
//   void steps(const uint8_t *chunk, __m256i (&w)[8]) const   bytes as that panel takes them
//   int32_t offset() const, factor() const   Σ w x = factor · Σ (bytes of steps) x + offset · Σ x; the
//                                            factor is 1 unless the panel is SevenBitPanel on AVX2
//   fewRows                                  optional: the same for fewer rows, in place of TileGrouped.h
//   addsCodes                                optional: whether sums of codes (CodeSums.h) are for it
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

/// Chunks and tiles that are worked at together: 16 KB of packed activations.
constexpr int64_t kPackedChunks = 8, kPanelTiles = 8;

/// A run of chunks of some rows.
template <typename Codec> struct PackedRows {
  alignas(64) int8_t x[kPackedChunks][kPanelRows][kChunkColumns];
  float scale[kPackedChunks][kPanelRows];
  int32_t start[kPackedChunks][kPanelRows]; ///< what sums begin with, as the panel has it
  float zero[Codec::hasZeros ? kPackedChunks : 1][kPanelRows]; ///< scale · Σ x
  int32_t less[Codec::Panel::pairsSteps ? kPackedChunks : 1][4 * kPanelRows];

  void fill(const Codec &codec, const uint8_t *rec, int64_t stride, const RecordLayout &layout, int64_t rows, int64_t from,
            int64_t to) {
#pragma clang loop unroll(disable)
    for (int64_t i = 0; i < rows; ++i, rec += stride)
#pragma clang loop unroll(disable) vectorize(disable)
      for (int64_t c = from; c < to; ++c) {
        int32_t sum;
        __builtin_memcpy(x[c - from][i], rec + c * kChunkColumns, kChunkColumns);
        __builtin_memcpy(&scale[c - from][i], rec + layout.scaleOffset + 4 * c, 4);
        __builtin_memcpy(&sum, rec + layout.sumOffset + 4 * c, 4);
        start[c - from][i] = Codec::Panel::start((codec.offset() + codec.factor() * Codec::Panel::middle) * sum);
        if constexpr (Codec::Panel::pairsSteps)
          Codec::Panel::middles(x[c - from][i], less[c - from] + 4 * i);
        if constexpr (Codec::hasZeros)
          zero[c - from][i] = scale[c - from][i] * float(sum);
      }
  }
};

/// A lane's parameters of a group, for NP panels.
template <typename Panel, int NP> struct PanelScales {
  typename Panel::Floats scale[NP], zero[NP];
};

/// The rows from `first` on, R of them, of the packed chunk `c`. `total`: of panel j and row i at i · NP + j.
template <typename Codec, int R, int NP>
[[gnu::always_inline]] inline void
panelBlock(const typename Codec::Panel (&panel)[NP], const PackedRows<Codec> &packed, int64_t c, int64_t first,
           const PanelScales<typename Codec::Panel, NP> &scales, typename Codec::Panel::Integers widening,
           typename Codec::Panel::Floats *total) {
  using Integers = typename Codec::Panel::Integers;
  using Floats = typename Codec::Panel::Floats;
  Integers sum[R][NP];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < NP; ++j)
      sum[i][j] = panel[j].first(packed.start[c][first + i] - Integers{});
  panelSums<R, NP>(panel, packed.x[c][first], packed.less[Codec::Panel::pairsSteps ? c : 0] + 4 * first, sum, widening);
#pragma clang loop unroll(full)
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < NP; ++j) {
      Floats term = __builtin_convertvector(Codec::Panel::last(sum[i][j]), Floats) * packed.scale[c][first + i] * scales.scale[j];
      if constexpr (Codec::hasZeros)
        term = fused(packed.zero[c][first + i], scales.zero[j], term);
      Floats &at = total[(first + i) * NP + j];
      at = at + term;
    }
}

/// The chunks from `from` until `to` of NP panels from `tile`, by packed rows.
template <typename Codec, int MR, int NP>
inline void panelRun(const Codec &codec, const uint8_t *tile, int64_t tileBytes, const PackedRows<Codec> &packed, int64_t rows,
                     const RecordLayout &layout, int64_t perGroup, int64_t from, int64_t to, typename Codec::Panel::Floats *total) {
  using Panel = typename Codec::Panel;
  using Parameter = std::conditional_t<Codec::floatParameters, FloatColumn, HalfColumn>;
  constexpr int64_t parameterBytes = (Codec::hasZeros ? 2 : 1) * Parameter::bytes;
  constexpr int tiles = Panel::tiles;
  // Opaque, or the compiler, short of registers, loads this constant for every product.
  typename Panel::Integers widening = 0x10001 * codec.factor() - typename Panel::Integers{};
  if constexpr (sizeof(widening) == 32)
    asm("" : "+x"(widening));
  for (int64_t c = from; c < to;) {
    int64_t g = c / perGroup, groupEnd = perGroup < layout.chunks - g * perGroup ? (g + 1) * perGroup : layout.chunks;
    const uint8_t *at = tile + c * Codec::chunkBytes + g * parameterBytes, *parameters = at + (groupEnd - c) * Codec::chunkBytes;
    PanelScales<Panel, NP> scales;
    for (int j = 0; j < NP; ++j) {
      scales.scale[j] = loadParameters<Parameter, Panel>(parameters + tiles * j * tileBytes, tileBytes);
      if constexpr (Codec::hasZeros)
        scales.zero[j] = loadParameters<Parameter, Panel>(parameters + tiles * j * tileBytes + Parameter::bytes, tileBytes);
    }
    int64_t end = groupEnd < to ? groupEnd : to;
#pragma clang loop unroll(disable)
    for (; c < end; ++c, at += Codec::chunkBytes) {
      Panel panel[NP];
      for (int j = 0; j < NP; ++j) {
        __m256i w[tiles][kSteps];
        for (int t = 0; t < tiles; ++t) {
          const uint8_t *chunk = at + (tiles * j + t) * tileBytes;
          codec.steps(chunk, w[t]);
          for (int64_t line = 0; line < Codec::chunkBytes; line += 64) // of the next run; a prefetch does not fault
            _mm_prefetch(reinterpret_cast<const char *>(chunk) + kPackedChunks * Codec::chunkBytes + line, _MM_HINT_T0);
        }
        panel[j].make(w);
      }
      forPowersOfRows<MR>(rows, [&]<int R>(int64_t first) {
        panelBlock<Codec, R, NP>(panel, packed, c - from, first, scales, widening, total);
      });
    }
  }
}

/// Up to kPanelRows rows by up to kPanelTiles tiles, whole panels of them; row i of tile t goes to acc + 8 · (t · m + i).
template <typename Codec>
inline void panelTiles(const Codec &codec, const uint8_t *tile, int64_t tileBytes, int64_t tiles, const uint8_t *rec, int64_t stride,
                       int64_t rows, int64_t m, int64_t kb, int64_t group, int64_t outliers, float *acc) {
  using Panel = typename Codec::Panel;
  using Floats = typename Panel::Floats;
  constexpr int MR = Panel::tiles == 2 ? 8 : 4; // with 512 bits there are 32 registers
  RecordLayout layout = recordLayout(kb, outliers);
  int64_t perGroup = group <= 0 || group > layout.padded ? layout.chunks : group / kChunkColumns;
  PackedRows<Codec> packed;
  Floats totals[kPanelTiles / Panel::tiles * kPanelRows];
  int64_t panels = tiles / Panel::tiles;
  for (int64_t j = 0; j < panels; j += 2)
    for (int64_t i = 0; i < 2 * rows; ++i)
      totals[j * kPanelRows + i] = Floats{};
#pragma clang loop unroll(disable)
  for (int64_t from = 0; from < layout.chunks; from += kPackedChunks) {
    int64_t to = layout.chunks - from < kPackedChunks ? layout.chunks : from + kPackedChunks;
    packed.fill(codec, rec, stride, layout, rows, from, to);
    int64_t j = 0;
#pragma clang loop unroll(disable)
    for (; j + 2 <= panels; j += 2)
      panelRun<Codec, MR, 2>(codec, tile + j * Panel::tiles * tileBytes, tileBytes, packed, rows, layout, perGroup, from, to,
                             totals + j * kPanelRows);
    if (j < panels)
      panelRun<Codec, MR, 1>(codec, tile + j * Panel::tiles * tileBytes, tileBytes, packed, rows, layout, perGroup, from, to,
                             totals + j * kPanelRows);
  }

  int64_t groups = layout.chunks == 0 ? 0 : (layout.chunks + perGroup - 1) / perGroup;
  using Parameter = std::conditional_t<Codec::floatParameters, FloatColumn, HalfColumn>;
  const uint8_t *side = tile + layout.chunks * Codec::chunkBytes + groups * (Codec::hasZeros ? 2 : 1) * Parameter::bytes;
#pragma clang loop unroll(disable)
  for (int64_t j = 0; j < panels; ++j) {
    int64_t together = j < panels / 2 * 2 ? 2 : 1; // panels whose totals alternate
    Floats *total = totals + j / together * together * kPanelRows + j % together;
    const uint8_t *at = side + j * Panel::tiles * tileBytes;
#pragma clang loop unroll(disable)
    for (int64_t o = 0; o < outliers; ++o, at += HalfColumn::bytes) {
      Floats w = loadParameters<HalfColumn, Panel>(at, tileBytes);
      for (int64_t i = 0; i < rows; ++i) {
        float x;
        __builtin_memcpy(&x, rec + i * stride + layout.outlierOffset + 4 * o, 4);
        total[i * together] = total[i * together] + w * x;
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int t = 0; t < Panel::tiles; ++t)
        __builtin_memcpy(acc + 8 * ((Panel::tiles * j + t) * m + i), reinterpret_cast<const float *>(&total[i * together]) + 8 * t,
                         32);
  }
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
  if (m >= kFewRows) {
#pragma clang loop unroll(disable)
    for (int64_t count; (count = (tiles - t < kPanelTiles ? tiles - t : kPanelTiles) / Codec::Panel::tiles * Codec::Panel::tiles) > 0;
         t += count)
#pragma clang loop unroll(disable)
      for (int64_t row = 0; row < m; row += kPanelRows)
        panelTiles(codec, first + t * tileBytes, tileBytes, count, static_cast<const uint8_t *>(rec) + row * recStride, recStride,
                   m - row < kPanelRows ? m - row : kPanelRows, m, kb, group, outliers, acc + 8 * (t * m + row));
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
