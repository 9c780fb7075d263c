// SPDX-License-Identifier: Apache-2.0
//
// Contractions with int4 and grid4 weights; Encoding/Int4.h draws the chunk. Nibbles are q + 8, unsigned, so
// 8 · Σx comes off the sum.
#include "Dot.h"
#include "Kernels.h"
#include "TilePanel.h"

namespace otf::cpu {
namespace {

template <EncodingKind kind> struct Int4Tile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(EncodingKind::Int4);
  static constexpr bool hasZeros = otf::hasZeros(kind);
  static constexpr bool floatParameters = hasFloatParameters(kind);
  static constexpr bool pairs = false;

  using Panel = NibblePanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    const __m256i low = _mm256_set1_epi8(15);
    for (int v = 0; v < 4; ++v) {
      __m256i both = loadBytes(chunk + 32 * v);
      w[v] = _mm256_and_si256(both, low);
      w[4 + v] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
    }
  }
  static constexpr int32_t offset() { return -8; }
  static constexpr int32_t factor() { return 1; }

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&sum)[MR],
           __m256i (&out)[MR]) const {
    __m256i w[kSteps];
    steps(chunk, w);
    for (int i = 0; i < MR; ++i) {
      const int8_t *xi = x + i * stride;
      __m256i bias = _mm256_set1_epi32(-8 * sum[i]);
#ifdef __AVX512VNNI__
      // Two chains: an instruction waits five cycles for the one before.
      __m256i even = bias, odd = _mm256_setzero_si256();
      for (int step = 0; step < 8; step += 2) {
        even = dotUnsigned(even, w[step], broadcast4(xi + 4 * step));
        odd = dotUnsigned(odd, w[step + 1], broadcast4(xi + 4 * step + 4));
      }
      out[i] = _mm256_add_epi32(even, odd);
#else
      // Eight steps fit 16 bits: 8 · 2 · 15 · 127 = 30,480. So one widening a chunk is enough.
      __m256i pairs = _mm256_maddubs_epi16(w[0], broadcast4(xi));
      for (int step = 1; step < 8; ++step)
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w[step], broadcast4(xi + 4 * step)));
      out[i] = _mm256_add_epi32(bias, widen(pairs));
#endif
    }
  }
};

} // namespace
} // namespace otf::cpu

OTF_GROUPED_TILE(int4, Int4Tile<otf::EncodingKind::Int4>)
OTF_GROUPED_TILE(grid4, Int4Tile<otf::EncodingKind::Grid4>)
OTF_GROUPED_TILE(grid4z, Int4Tile<otf::EncodingKind::Grid4z>)
