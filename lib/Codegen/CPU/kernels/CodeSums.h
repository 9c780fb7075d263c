// SPDX-License-Identifier: Apache-2.0
//
// Sums of codes: contractions of a weight whose scales are 1 with records whose scales are 1. A sum over a
// whole row is an integer and becomes f32 once, at its end. Where it stays below 2^24, that has the bits of
// TileGrouped.h, which converts and adds each chunk.
//
// A run of chunks of a few tiles becomes panels (Panel.h), which stay in the first-level cache while all rows
// meet them; sums of a block of rows stay in registers meanwhile, and wait for the next run in `acc`.
#ifndef OTF_CODEGEN_CPU_CODESUMS_H
#define OTF_CODEGEN_CPU_CODESUMS_H

#include "Panel.h"
#include "TileGrouped.h"

namespace otf::cpu {

/// Chunks of a run: with two panels of 512 or 544 bytes each, 13 KB.
constexpr int kRunChunks = 12;

/// Some rows of a run. `sum` begins with what was before.
template <int MR, int NP, typename Panel>
inline void runSums(const Panel (&panel)[kRunChunks][NP], int64_t chunks, const int8_t *x, int64_t stride,
                    typename Panel::Integers (&sum)[MR][NP]) {
  // As in panelSums(): opaque, and a loop over steps that stays one.
  typename Panel::Integers ones = 0x10001 - typename Panel::Integers{};
  if constexpr (sizeof(ones) == 32)
    asm("" : "+x"(ones));
#pragma clang loop unroll(disable)
  for (int64_t c = 0; c < chunks; ++c)
#pragma clang loop unroll(disable)
    for (int s = 0; s < kSteps; ++s)
#pragma clang loop unroll(full)
      for (int i = 0; i < MR; ++i) {
        int32_t four;
        __builtin_memcpy(&four, x + i * stride + c * kChunkColumns + 4 * s, 4);
        typename Panel::Integers xi = four - typename Panel::Integers{};
        for (int j = 0; j < NP; ++j)
          sum[i][j] = panel[c][j].add(sum[i][j], s, xi, ones);
      }
}

/// Σ of a record's sums.
inline int32_t sumOfSums(const uint8_t *sums, int64_t chunks) {
  int32_t sum = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    int32_t one;
    __builtin_memcpy(&one, sums + 4 * c, 4);
    sum += one;
  }
  return sum;
}

/// m rows by NP panels from `tile`, in blocks of up to MR rows; row i of tile t goes to acc + 8 · (t · m + i).
template <typename Codec, int MR, int NP>
inline void codeSums(const Codec &codec, const uint8_t *tile, int64_t tileBytes, const uint8_t *rec, int64_t stride,
                     int64_t m, int64_t kb, float *acc) {
  using Panel = typename Codec::Panel;
  using Integers = typename Panel::Integers;
  using Floats = typename Panel::Floats;
  constexpr int tiles = Panel::tiles;
  RecordLayout layout = recordLayout(kb, 0);
  for (int64_t first = 0; first < layout.chunks; first += kRunChunks) {
    int64_t chunks = layout.chunks - first < kRunChunks ? layout.chunks - first : kRunChunks;
    Panel panel[kRunChunks][NP];
    Integers start[NP] = {};
#pragma clang loop unroll(disable)
    for (int64_t c = 0; c < chunks; ++c)
      for (int j = 0; j < NP; ++j) {
        __m256i w[tiles][kSteps];
        for (int t = 0; t < tiles; ++t)
          codec.steps(tile + (tiles * j + t) * tileBytes + (first + c) * Codec::chunkBytes, w[t]);
        panel[c][j].make(w);
        start[j] += panel[c][j].first(Integers{});
      }
    bool last = first + chunks == layout.chunks;
    auto halves = [&](int64_t row, int j, int t) { return acc + 8 * ((tiles * j + t) * m + row); };
    forPowersOfRows<MR>(m, [&]<int R>(int64_t row) {
      const uint8_t *x = rec + row * stride;
      Integers sum[R][NP];
      for (int i = 0; i < R; ++i)
        for (int j = 0; j < NP; ++j) {
          Integers before = {};
          if (first != 0)
            for (int t = 0; t < tiles; ++t)
              __builtin_memcpy(reinterpret_cast<int32_t *>(&before) + 8 * t, halves(row + i, j, t), 32);
          sum[i][j] = start[j] + before;
        }
      runSums<R, NP>(panel, chunks, reinterpret_cast<const int8_t *>(x) + first * kChunkColumns, stride, sum);
      for (int i = 0; i < R; ++i) {
        int32_t xSum = last && Panel::offset ? sumOfSums(x + i * stride + layout.sumOffset, layout.chunks) : 0;
        for (int j = 0; j < NP; ++j) {
          Integers whole = sum[i][j];
          if (last)
            whole = Integers(__builtin_convertvector(whole + codec.offset() * xSum, Floats));
          for (int t = 0; t < tiles; ++t)
            __builtin_memcpy(halves(row + i, j, t), reinterpret_cast<const int32_t *>(&whole) + 8 * t, 32);
        }
      }
    });
  }
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_CODESUMS_H
