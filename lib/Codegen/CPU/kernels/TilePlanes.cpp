// SPDX-License-Identifier: Apache-2.0
//
// Contractions with planes weights; Encoding/Planes.h draws the chunk. Sums are unsigned and at most 127, so pairs of products fit 16
// bits with any activations (Dot.h), and the offset comes off through their sum. Activations are brought into the order of
// steps once for all tiles of a call; where many rows pass, the panel is brought into that of columns instead.
#include "Dot.h"
#include "Kernels.h"
#include "PlanesSteps.h"
#include "TilePanel.h"

namespace otf::cpu {
namespace {

/// Columns whose activations are brought into the order of steps at once, in the first-level cache.
constexpr int64_t kRun = 128 * kChunkColumns;

/// A run of MR rows in that order, and what each chunk's sum begins with.
template <int MR> struct ArrangedRun {
  alignas(32) int8_t x[MR][kRun];
  int32_t start[MR][kRun / kChunkColumns];

  void fill(const uint8_t *rec, int64_t stride, const RecordLayout &layout, int64_t from, int64_t to, int offset) {
    for (int i = 0; i < MR; ++i)
#pragma clang loop unroll(disable)
      for (int64_t c = from; c < to; ++c) {
        const uint8_t *row = rec + i * stride;
        inSteps(reinterpret_cast<const int8_t *>(row) + c * kChunkColumns, x[i] + (c - from) * kChunkColumns);
        int32_t sum;
        __builtin_memcpy(&sum, row + layout.sumOffset + 4 * c, 4);
        start[i][c - from] = -offset * sum;
      }
  }
};

/// The chunks from `from` until `to` of a tile by MR rows: acc[i] goes on from what it was, or begins where from is 0. The
/// arithmetic is that of TileGrouped.h. One tile at a time: a second one's words and tables would not fit 16 registers.
template <EncodingKind kind, int MR>
inline void planesRun(const uint8_t *tile, const ArrangedRun<MR> &run, const uint8_t *rec, int64_t stride,
                      const RecordLayout &layout, int64_t from, int64_t to, int64_t perGroup, int64_t outliers, float *acc) {
  constexpr PlanesCode code = planesCode(kind);
  constexpr int64_t chunkBytes = otf::chunkBytes(kind);
  __m256 total[MR];
  for (int i = 0; i < MR; ++i)
    total[i] = from == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(acc + 8 * i);
  for (int64_t c = from; c < to;) {
    int64_t g = c / perGroup, groupEnd = perGroup < layout.chunks - g * perGroup ? (g + 1) * perGroup : layout.chunks;
    const uint8_t *at = tile + c * chunkBytes + g * HalfColumn::bytes;
    __m256 scale = HalfColumn::load(at + (groupEnd - c) * chunkBytes);
    int64_t end = groupEnd < to ? groupEnd : to;
#pragma clang loop unroll(disable)
    for (; c < end; ++c, at += chunkBytes) {
      prefetchAhead(at, chunkBytes);
      __m256i word[code.planes], dot[MR];
      for (int p = 0; p < code.planes; ++p)
        word[p] = loadBytes(at + 32 * p);
      for (int i = 0; i < MR; ++i)
        dot[i] = _mm256_set1_epi32(run.start[i][c - from]);
      const int8_t *x = run.x[0] + (c - from) * kChunkColumns;
      forPlanesSteps<kind>(word, [&](int step, __m256i sums) {
        for (int i = 0; i < MR; ++i)
          dot[i] = dotUnsigned(dot[i], sums, broadcast4(x + i * kRun + 4 * step));
      });
      for (int i = 0; i < MR; ++i) {
        float xScale;
        __builtin_memcpy(&xScale, rec + i * stride + layout.scaleOffset + 4 * c, 4);
        __m256 term = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[i]), _mm256_set1_ps(xScale));
        total[i] = _mm256_add_ps(total[i], _mm256_mul_ps(term, scale));
      }
    }
  }
  if (to == layout.chunks) {
    const uint8_t *at = tile + to * chunkBytes + (to + perGroup - 1) / perGroup * HalfColumn::bytes;
#pragma clang loop unroll(disable)
    for (int64_t o = 0; o < outliers; ++o, at += HalfColumn::bytes) {
      __m256 w = HalfColumn::load(at);
      for (int i = 0; i < MR; ++i) {
        float x;
        __builtin_memcpy(&x, rec + i * stride + layout.outlierOffset + 4 * o, 4);
        total[i] = _mm256_add_ps(total[i], _mm256_mul_ps(w, _mm256_set1_ps(x)));
      }
    }
  }
  for (int i = 0; i < MR; ++i)
    _mm256_storeu_ps(acc + 8 * i, total[i]);
}

/// Fewer rows than a panel is worth making for.
template <EncodingKind kind>
inline void planesFewRows(const uint8_t *tile, int64_t tileBytes, int64_t tiles, const uint8_t *rec, int64_t stride, int64_t m,
                          int64_t kb, int64_t group, int64_t outliers, float *acc) {
  RecordLayout layout = recordLayout(kb, outliers);
  int64_t perGroup = group <= 0 || group > layout.padded ? layout.chunks : group / kChunkColumns;
  if (perGroup == 0)
    perGroup = 1; // all columns are outliers
  forRows(m, [&]<int MR>(int64_t first) {
    ArrangedRun<MR> run;
    const uint8_t *row = rec + first * stride;
    int64_t from = 0;
    do { // once, too, where all columns are outliers
      int64_t to = kRun / kChunkColumns < layout.chunks - from ? from + kRun / kChunkColumns : layout.chunks;
      run.fill(row, stride, layout, from, to, planesCode(kind).offset);
#pragma clang loop unroll(disable)
      for (int64_t t = 0; t < tiles; ++t)
        planesRun<kind, MR>(tile + t * tileBytes, run, row, stride, layout, from, to, perGroup, outliers,
                            acc + 8 * (t * m + first));
      from = to;
    } while (from < layout.chunks);
  });
}

template <EncodingKind kind> struct PlanesTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(kind);
  static constexpr bool hasZeros = false;
  static constexpr bool floatParameters = false;

  using Panel = SevenBitPanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    __m256i g[kSteps];
    planesSteps<kind>(chunk, g);
    // Byte b of g[k] is column k + 8b: in each lane, four vectors by four bytes are transposed.
    const __m256i even = _mm256_set1_epi16(0xff);
    for (int half = 0; half < 2; ++half) {
      __m256i bytes[2][2]; // of two vectors each: bytes 0 and 2; bytes 1 and 3
      for (int k = 0; k < 2; ++k) {
        __m256i first = g[4 * half + 2 * k], second = g[4 * half + 2 * k + 1];
        bytes[0][k] = _mm256_or_si256(_mm256_and_si256(first, even), _mm256_slli_epi16(second, 8));
        bytes[1][k] = _mm256_or_si256(_mm256_srli_epi16(first, 8), _mm256_andnot_si256(even, second));
      }
      for (int b = 0; b < 2; ++b) {
        w[2 * b + half] = _mm256_blend_epi16(bytes[b][0], _mm256_slli_epi32(bytes[b][1], 16), 0xaa);
        w[4 + 2 * b + half] = _mm256_blend_epi16(_mm256_srli_epi32(bytes[b][0], 16), bytes[b][1], 0xaa);
      }
    }
  }
  static constexpr int32_t offset() { return -planesCode(kind).offset; }
  static constexpr int32_t factor() { return 1; }

  static void fewRows(const uint8_t *tile, int64_t tileBytes, int64_t tiles, const uint8_t *rec, int64_t stride, int64_t m,
                      int64_t kb, int64_t group, int64_t outliers, float *acc) {
    planesFewRows<kind>(tile, tileBytes, tiles, rec, stride, m, kb, group, outliers, acc);
  }
};

} // namespace
} // namespace otf::cpu

OTF_GROUPED_TILE(planes3x1, PlanesTile<otf::EncodingKind::Planes3x1>)
OTF_GROUPED_TILE(planes3x2, PlanesTile<otf::EncodingKind::Planes3x2>)
OTF_GROUPED_TILE(planes3x3, PlanesTile<otf::EncodingKind::Planes3x3>)
OTF_GROUPED_TILE(planes3x4, PlanesTile<otf::EncodingKind::Planes3x4>)
OTF_GROUPED_TILE(planes4x1, PlanesTile<otf::EncodingKind::Planes4x1>)
OTF_GROUPED_TILE(planes4x2, PlanesTile<otf::EncodingKind::Planes4x2>)
OTF_GROUPED_TILE(planes4x3, PlanesTile<otf::EncodingKind::Planes4x3>)
