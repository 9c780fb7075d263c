// SPDX-License-Identifier: Apache-2.0
//
// Panels: one chunk (32 columns) of a tile of eight rows, or of two tiles side by side where
// vectors have 512 bits, as many rows of activations read it. Codes are unpacked once and stay in
// the first-level cache while all rows pass.
//
// A panel has
//   Integers, Floats           vectors with one weight row a lane
//   tiles                      that a vector spans
//   offset                     whether a codec's offset() may be other than 0
//   make(w)                    from the eight steps of each tile, as the codec's steps() gives them
//   start(n)                   what every lane of a sum begins with that is to have n more
//   first(start), add(sum, s, x, widening), last(sum)   the exact sum of a chunk; x is the four
//   activations of step s, in every lane; widening: what pairs of products are multiplied by, as i16
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
  static constexpr bool unrolls = false, pairsSteps = false;
  static constexpr int32_t middle = 0;
  __m512i codes[kSteps];

  void make(const __m256i (&u)[tiles][kSteps]) {
    for (int s = 0; s < kSteps; ++s)
      codes[s] = _mm512_inserti64x4(_mm512_castsi256_si512(u[0][s]), u[1][s], 1);
  }
  static int32_t start(int32_t n) { return n; }
  static Integers first(Integers start) { return start; }
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
  static constexpr bool offset = false, unrolls = false, pairsSteps = false;
  static constexpr int32_t middle = 0;
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
  static int32_t start(int32_t) { return 0; }
  Integers first(Integers) const { return Integers(negatives); }
  Integers add(Integers sum, int s, Integers x, Integers ones) const {
    __m256i pairs = _mm256_maddubs_epi16(magnitude[s], _mm256_xor_si256(__m256i(x), mask[s]));
    return sum + Integers(_mm256_madd_epi16(pairs, __m256i(ones)));
  }
  static Integers last(Integers sum) { return sum; }
};

struct UnsignedBytes : EightLanes {
  __m256i codes[kSteps];

  void make(const __m256i (&u)[tiles][kSteps]) {
    for (int s = 0; s < kSteps; ++s)
      codes[s] = u[0][s];
  }
};

/// Unsigned bytes of 7 bits. Less 63 they are from -63 to 64, and the products of two steps fit 16
/// bits (-32,768 = 4 · 64 · -128 to 32,512 = 4 · 64 · 127), so one widening serves two steps, and 63
/// times their activations comes off before it: what stands in 16 bits until then may wrap around.
struct SevenBitPanel : UnsignedBytes {
  static constexpr bool pairsSteps = true;
  static constexpr int32_t middle = 63;
  static int32_t start(int32_t n) { return n; }
  static Integers first(Integers start) { return start; }
  /// Steps s and s + 1; `less` is -63 times their activations, in each 16 bits those of the products there.
  Integers addTwo(Integers sum, int s, Integers x, Integers next, Integers less, Integers widening) const {
    __m256i pairs = _mm256_add_epi16(__m256i(less), _mm256_maddubs_epi16(codes[s], __m256i(x)));
    pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes[s + 1], __m256i(next)));
    return sum + Integers(_mm256_madd_epi16(pairs, __m256i(widening)));
  }
  static Integers last(Integers sum) { return sum; }
  /// `less` of each two steps, of 32 activations.
  static void middles(const int8_t *x, int32_t *less) {
    __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), loadBytes(x));
    __m128 low = _mm_castsi128_ps(_mm256_castsi256_si128(pairs)), high = _mm_castsi128_ps(_mm256_extracti128_si256(pairs, 1));
    __m128i sums = _mm_add_epi16(_mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)), _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(less), _mm_mullo_epi16(sums, _mm_set1_epi16(-middle)));
  }
};

/// Unsigned bytes of 4 bits: eight steps fit 16 bits, so one widening a chunk is enough. The offset
/// of a codec, even and from -8 to 0, is there from the beginning, a half in either 16 bits of a
/// lane: what comes before may wrap around, the end does not. A half is Σ (u + offset / 2) x over 16
/// columns and offset / 2 · Σ x over the others, at most 16 · 128 · (11 + 4) = 30,720.
struct NibblePanel : UnsignedBytes {
  static constexpr bool unrolls = true;
  static int32_t start(int32_t n) { return int32_t(uint32_t(uint16_t(n / 2)) * 0x10001u); }
  static Integers first(Integers start) { return start; }
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

/// sum[i][j] += of row i, whose 32 activations are at x + 32 i, and panel j; `less`: of row i at 4 i, as SevenBitPanel says.
/// Unrolled, steps must not be in sight together: the compiler would keep panels in registers that it does not have, and spill sums.
template <int MR, int NP, typename Panel>
[[gnu::always_inline]] inline void panelSums(const Panel (&panel)[NP], const int8_t *x, [[maybe_unused]] const int32_t *less,
                                             typename Panel::Integers (&sum)[MR][NP], typename Panel::Integers widening) {
  using Integers = typename Panel::Integers;
  auto four = [&](int i, int s) {
    int32_t activations;
    __builtin_memcpy(&activations, x + 32 * i + 4 * s, 4);
    return activations - Integers{};
  };
  if constexpr (Panel::pairsSteps) {
#pragma clang loop unroll(disable)
    for (int s = 0; s < kSteps; s += 2)
#pragma clang loop unroll(full)
      for (int i = 0; i < MR; ++i) {
        Integers xi = four(i, s), next = four(i, s + 1), off = less[4 * i + s / 2] - Integers{};
        for (int j = 0; j < NP; ++j)
          sum[i][j] = panel[j].addTwo(sum[i][j], s, xi, next, off, widening);
      }
  } else {
    auto step = [&](int s) {
#pragma clang loop unroll(full)
      for (int i = 0; i < MR; ++i) {
        Integers xi = four(i, s);
        for (int j = 0; j < NP; ++j)
          sum[i][j] = panel[j].add(sum[i][j], s, xi, widening);
      }
    };
    if constexpr (Panel::unrolls) {
#pragma clang loop unroll(full)
      for (int s = 0; s < kSteps; ++s) {
        asm volatile("" : : "r"(panel) : "memory");
        step(s);
      }
    } else {
#pragma clang loop unroll(disable)
      for (int s = 0; s < kSteps; ++s)
        step(s);
    }
  }
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_PANEL_H
