// SPDX-License-Identifier: Apache-2.0
//
// Contractions with codebook2 weights; Encoding/Codebook2.h draws the chunk. vpshufb maps codes to
// unsigned bytes u with table = low + factor · u, so
//   Σ table[q] x = factor · Σ u x + low · Σ x.
//
// On AVX2 u must fit 7 bits (Dot.h). It does for factor 1 when the table spans at most 127, and for
// factor 2 when its entries differ by even numbers, as −125, −37, 37, 125 do. Any other table takes
// the signed form, which costs one instruction more a step.
#include "Dot.h"
#include "Kernels.h"
#include "TilePanel.h"

namespace otf::cpu {
namespace {

struct Table {
  int32_t low = 0;
  int32_t factor = 1;
  __m256i bytes; ///< u: entry q mod 4 in byte q

  static int32_t entry(uint32_t table, int q) { return int8_t(table >> 8 * q); }

  static __m256i broadcast(uint32_t four) { return _mm256_set1_epi32(int32_t(four)); }

  explicit Table(uint32_t table) {
    low = entry(table, 0);
    int32_t high = low;
    [[maybe_unused]] bool even = true;
    for (int q = 1; q < 4; ++q) {
      int32_t e = entry(table, q);
      low = e < low ? e : low;
      high = e > high ? e : high;
      even &= ((e - entry(table, 0)) & 1) == 0;
    }
#ifndef __AVX512VNNI__ // which has room for 8 bits
    factor = high - low > 127 && even ? 2 : 1;
#endif
    uint32_t u = 0;
    for (int q = 0; q < 4; ++q)
      u |= uint32_t((entry(table, q) - low) / factor) << 8 * q;
    bytes = broadcast(u);
    fitsSevenBits = (high - low) / factor <= 127;
  }

  bool fitsSevenBits = false;
};

/// Calls use(step, bytes) for each step in order: the table's entries of its codes, one a byte, or the codes themselves. Four bits
/// hold the codes of two steps, so one index serves both, with two tables.
template <bool codes, typename Use> inline void forSteps(const uint8_t *chunk, [[maybe_unused]] __m256i table, Use use) {
  for (int v = 0; v < 2; ++v) {
    __m256i packed = loadBytes(chunk + 32 * v);
    if constexpr (codes) {
      for (int j = 0; j < 4; ++j)
        use(4 * v + j, _mm256_and_si256(_mm256_srli_epi16(packed, 2 * j), _mm256_set1_epi8(3)));
    } else {
      // Entry n >> 2 at index n; `table` has entry n & 3 there.
      const __m256i second = _mm256_shuffle_epi8(
          table, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)));
      for (int j = 0; j < 4; j += 2) {
        __m256i index = _mm256_and_si256(_mm256_srli_epi16(packed, 2 * j), _mm256_set1_epi8(15));
        use(4 * v + j, _mm256_shuffle_epi8(table, index));
        use(4 * v + j + 1, _mm256_shuffle_epi8(second, index));
      }
    }
  }
}

template <EncodingKind kind> struct OffsetTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(kind);
  static constexpr bool hasZeros = otf::hasZeros(kind);
  static constexpr bool floatParameters = hasFloatParameters(kind);
  static constexpr bool pairs = false;
  Table table;

  /// The values of a grid's codes are code − 2, so codes are u and fit a nibble.
  static constexpr bool codes = kind != EncodingKind::Codebook2;
  using Panel = std::conditional_t<codes, NibblePanel, SevenBitPanel>;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    forSteps<codes>(chunk, table.bytes, [&](int step, __m256i u) { w[step] = u; });
  }
  int32_t offset() const { return table.low; }
  int32_t factor() const { return codes ? 1 : table.factor; }

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&sum)[MR],
           __m256i (&out)[MR]) const {
#ifdef __AVX512VNNI__
    // Two chains: an instruction waits five cycles for the one before.
    __m256i odd[MR];
    for (int i = 0; i < MR; ++i)
      out[i] = odd[i] = _mm256_setzero_si256();
    forSteps<codes>(chunk, table.bytes, [&](int step, __m256i u) {
      for (int i = 0; i < MR; ++i) {
        __m256i &chain = step % 2 == 0 ? out[i] : odd[i];
        chain = dotUnsigned(chain, u, broadcast4(x + i * stride + 4 * step));
      }
    });
    for (int i = 0; i < MR; ++i) {
      out[i] = _mm256_add_epi32(out[i], odd[i]);
      __m256i scaled = table.factor == 2 ? _mm256_slli_epi32(out[i], 1) : out[i];
      out[i] = _mm256_add_epi32(scaled, _mm256_set1_epi32(table.low * sum[i]));
    }
#else
    // What widens multiplies by the factor as well.
    const __m256i factor = _mm256_set1_epi16(int16_t(table.factor));
    __m256i pairs[MR];
    for (int i = 0; i < MR; ++i) {
      out[i] = _mm256_set1_epi32(table.low * sum[i]);
      pairs[i] = _mm256_setzero_si256();
    }
    forSteps<codes>(chunk, table.bytes, [&](int step, __m256i u) {
      for (int i = 0; i < MR; ++i) {
        __m256i two = _mm256_maddubs_epi16(u, broadcast4(x + i * stride + 4 * step));
        if constexpr (codes) // eight steps fit 16 bits: 8 · 2 · 3 · 128 = 6,144
          pairs[i] = _mm256_add_epi16(pairs[i], two);
        else
          out[i] = _mm256_add_epi32(out[i], _mm256_madd_epi16(two, factor));
      }
    });
    if constexpr (codes)
      for (int i = 0; i < MR; ++i)
        out[i] = _mm256_add_epi32(out[i], widen(pairs[i]));
#endif
  }
};

#ifndef __AVX512VNNI__
struct SignedTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(EncodingKind::Codebook2);
  static constexpr bool hasZeros = true;
  static constexpr bool floatParameters = false;
  static constexpr bool pairs = false;
  __m256i bytes;

  using Panel = SignedPanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    forSteps<false>(chunk, bytes, [&](int step, __m256i entries) { w[step] = entries; });
  }
  static constexpr int32_t offset() { return 0; }
  static constexpr int32_t factor() { return 1; }

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&)[MR],
           __m256i (&out)[MR]) const {
    for (int i = 0; i < MR; ++i)
      out[i] = _mm256_setzero_si256();
    forSteps<false>(chunk, bytes, [&](int step, __m256i w) {
      __m256i magnitude = _mm256_abs_epi8(w);
      for (int i = 0; i < MR; ++i)
        out[i] = dotSigned(out[i], w, magnitude, broadcast4(x + i * stride + 4 * step));
    });
  }
};
#endif

} // namespace
} // namespace otf::cpu

void otf_tiles_codebook2(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,
                         int64_t recStride, int64_t m, int64_t kb, int64_t group, int64_t outliers,
                         uint32_t table, float *acc) {
  using namespace otf::cpu;
  Table offset(table);
#ifndef __AVX512VNNI__
  if (!offset.fitsSevenBits)
    return manyTiles(SignedTile{Table::broadcast(table)}, tile, tileBytes, tiles, rec, recStride, m,
                     kb, group, outliers, acc);
#endif
  manyTiles(OffsetTile<otf::EncodingKind::Codebook2>{offset}, tile, tileBytes, tiles, rec, recStride,
            m, kb, group, outliers, acc);
}

void otf_tile_codebook2(const void *tile, const void *rec, int64_t recStride, int64_t m,
                        int64_t kb, int64_t group, int64_t outliers, uint32_t table, float *acc) {
  otf_tiles_codebook2(tile, 0, 1, rec, recStride, m, kb, group, outliers, table, acc);
}

namespace otf::cpu {
namespace {

/// The codes of grid2 are q + 2.
template <EncodingKind kind> struct GridTile : OffsetTile<kind> {
  GridTile() : OffsetTile<kind>{Table(0x0100fffe)} {}
};

} // namespace
} // namespace otf::cpu

OTF_GROUPED_TILE(grid2, GridTile<otf::EncodingKind::Grid2>)
OTF_GROUPED_TILE(grid2z, GridTile<otf::EncodingKind::Grid2z>)
