// SPDX-License-Identifier: Apache-2.0
//
// Panels: one chunk (32 columns) of a tile of eight rows, or of two tiles side by side where
// vectors have 512 bits, as many rows of activations read it. Codes are unpacked once and stay in
// the first-level cache while all rows pass.
//
// A panel has
//   Integers, Floats           vectors with one weight row a lane
//   tiles                      that a vector spans
//   offset                     whether a codec's exact() may want Σ x
//   make(w)                    from the eight steps of each tile, as the codec's steps() gives them
//   first(), add(sum, s, x), last(sum)   the exact sum of a chunk; x is the four activations of
//   step s, in every lane
#ifndef OTF_CODEGEN_CPU_PANEL_H
#define OTF_CODEGEN_CPU_PANEL_H

#include "Dot.h"

namespace otf::cpu {

constexpr int kSteps = 8; ///< of a chunk: four columns each

#ifdef __AVX512VNNI__

/// Unsigned bytes, any of them.
struct UnsignedPanel {
  using Integers = int32_t __attribute__((vector_size(64)));
  using Floats = float __attribute__((vector_size(64)));
  static constexpr int tiles = 2;
  static constexpr bool offset = true; // of the codes of signed weights
  __m512i codes[kSteps];

  void make(const __m256i (&u)[tiles][kSteps]) {
    for (int s = 0; s < kSteps; ++s)
      codes[s] = _mm512_inserti64x4(_mm512_castsi256_si512(u[0][s]), u[1][s], 1);
  }
  Integers first() const { return Integers{}; }
  Integers add(Integers sum, int s, Integers x, Integers) const {
    return Integers(_mm512_dpbusd_epi32(__m512i(sum), codes[s], __m512i(x)));
  }
  static Integers last(Integers sum) { return sum; }
};
using NibblePanel = UnsignedPanel;
using SevenBitPanel = UnsignedPanel;

#else

struct EightLanes {
  using Integers = int32_t __attribute__((vector_size(32)));
  using Floats = float __attribute__((vector_size(32)));
  static constexpr int tiles = 1;
  static constexpr bool offset = false;
};

/// Signed bytes. Without VNNI the unsigned side of a product has 7 bits, so |w| stands there and
/// the sign goes to x: -x = (x ^ -1) + 1, where the ones come to Σ |w| over the negative w, a
/// number of the chunk. vpxor leaves the two multiplying ports to the products, which vpsignb does
/// not. Both sides may be -128: a pair of products is between 2 · 128 · -128 and 2 · 128 · 127,
/// which 16 bits hold.
struct SignedPanel : EightLanes {
  __m256i magnitude[kSteps], mask[kSteps], negatives;

  void make(const __m256i (&w)[tiles][kSteps]) {
    __m256i pairs = _mm256_setzero_si256();
    for (int s = 0; s < kSteps; ++s) {
      magnitude[s] = _mm256_abs_epi8(w[0][s]);
      mask[s] = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w[0][s]);
      pairs = _mm256_sub_epi16(
          pairs, _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_and_si256(w[0][s], mask[s])));
    }
    negatives = widen(pairs);
  }
  Integers first() const { return Integers(negatives); }
  Integers add(Integers sum, int s, Integers x, Integers ones) const {
    __m256i pairs = _mm256_maddubs_epi16(magnitude[s], _mm256_xor_si256(__m256i(x), mask[s]));
    return sum + Integers(_mm256_madd_epi16(pairs, __m256i(ones)));
  }
  static Integers last(Integers sum) { return sum; }
};

/// Unsigned bytes of 7 bits.
struct SevenBitPanel : EightLanes {
  __m256i codes[kSteps];

  void make(const __m256i (&u)[tiles][kSteps]) {
    for (int s = 0; s < kSteps; ++s)
      codes[s] = u[0][s];
  }
  Integers first() const { return Integers{}; }
  Integers add(Integers sum, int s, Integers x, Integers ones) const {
    __m256i pairs = _mm256_maddubs_epi16(codes[s], __m256i(x));
    return sum + Integers(_mm256_madd_epi16(pairs, __m256i(ones)));
  }
  static Integers last(Integers sum) { return sum; }
};

/// Unsigned bytes of 4 bits: eight steps fit 16 bits (8 · 2 · 15 · 128 = 30,720), so one widening a
/// chunk is enough.
struct NibblePanel : SevenBitPanel {
  Integers add(Integers sum, int s, Integers x, Integers) const {
    return Integers(_mm256_add_epi16(__m256i(sum), _mm256_maddubs_epi16(codes[s], __m256i(x))));
  }
  static Integers last(Integers sum) { return Integers(widen(__m256i(sum))); }
};

#endif

/// Calls body.template operator()<R>(first row) so that the R, powers of two up to MR, cover m
/// rows.
template <int MR, typename Body>
inline void forPowersOfRows(int64_t m, Body body, int64_t first = 0) {
#pragma clang loop unroll(disable)
  for (; first + MR <= m; first += MR)
    body.template operator()<MR>(first);
  if constexpr (MR > 1)
    forPowersOfRows<MR / 2>(m, body, first);
}

/// sum[i][j] of row i, whose 32 activations are at x + i·stride, and panel j. The loop over steps
/// stays one: with all eight in sight, the compiler keeps panels in registers that it does not
/// have, and spills sums.
template <int MR, int NP, typename Panel>
inline void panelSums(const Panel (&panel)[NP], const int8_t *x, int64_t stride,
                      typename Panel::Integers (&sum)[MR][NP]) {
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NP; ++j)
      sum[i][j] = panel[j].first();
  // Opaque, or the compiler, short of registers, loads this constant for every product.
  typename Panel::Integers ones = 0x10001 - typename Panel::Integers{};
  if constexpr (sizeof(ones) == 32)
    asm("" : "+x"(ones));
#pragma clang loop unroll(disable)
  for (int s = 0; s < kSteps; ++s)
#pragma clang loop unroll(full)
    for (int i = 0; i < MR; ++i) {
      int32_t four;
      __builtin_memcpy(&four, x + i * stride + 4 * s, 4);
      typename Panel::Integers xi = four - typename Panel::Integers{};
      for (int j = 0; j < NP; ++j)
        sum[i][j] = panel[j].add(sum[i][j], s, xi, ones);
    }
  for (int i = 0; i < MR; ++i)
    for (int j = 0; j < NP; ++j)
      sum[i][j] = Panel::last(sum[i][j]);
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_PANEL_H
