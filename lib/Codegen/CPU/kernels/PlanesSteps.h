// SPDX-License-Identifier: Apache-2.0
//
// The sums of a planes chunk (Encoding/Planes.h) as bytes. A row's word is a 32-bit lane, and the same shift of all of it brings
// one window to the bottom of each byte: step g = 0 … 7 is the columns g, g + 8, g + 16, g + 24 of eight rows, where the columns in
// their order would take a permutation a step. Who multiplies brings activations into this order: `inSteps`.
#ifndef OTF_CODEGEN_CPU_PLANESSTEPS_H
#define OTF_CODEGEN_CPU_PLANESSTEPS_H

#include "Encoding/Planes.h"
#include "Simd.h"

namespace otf::cpu {

/// The table of plane p in both halves, entry n at index n << shift and at all indices that end in a window's bits like that.
template <EncodingKind kind> inline __m256i planesTable(int p, int shift = 0) {
  constexpr PlanesCode code = planesCode(kind);
  alignas(16) uint8_t bytes[16];
  for (int i = 0; i < 16; ++i)
    bytes[i] = code.table[p][(i >> shift) & ((1 << code.window) - 1)];
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(bytes)));
}

/// The words of eight rows, one vector a plane, turned right by `by`.
inline __m256i turnedWord(__m256i word, int by) {
#ifdef __AVX512VL__
  return _mm256_rorv_epi32(word, _mm256_set1_epi32(by));
#else
  return _mm256_or_si256(_mm256_srli_epi32(word, by), _mm256_slli_epi32(word, 32 - by));
#endif
}

/// Calls use(g, sums) for g = 0 … 7 in order: the sums of eight rows, 0 … 127; byte b of lane r is column g + 8b of row r.
/// Four bits hold two windows of three: a shift and a mask then serve a step and the next, with two tables.
template <EncodingKind kind, typename Use>
inline void forPlanesSteps(const __m256i (&word)[planesCode(kind).planes], Use use) {
  constexpr PlanesCode code = planesCode(kind);
  constexpr int windows = 5 - code.window; // that four bits hold
  const __m256i mask = _mm256_set1_epi8(15);
  __m256i turned[code.planes];
#pragma clang loop unroll(full)
  for (int g = 0; g < 8; g += windows) {
    __m256i sums[windows];
    for (int p = 0; p < code.planes; ++p) {
      // Of four bits from bit 8b + g on, none of the last byte's reach round the circle before g = 5.
      if (g <= 4)
        turned[p] = _mm256_srli_epi32(word[p], g);
      else if (g < 5 + windows)
        turned[p] = turnedWord(word[p], g);
      else
        turned[p] = _mm256_srli_epi32(turned[p], 1);
      __m256i index = _mm256_and_si256(turned[p], mask);
      for (int k = 0; k < windows; ++k) {
        __m256i one = _mm256_shuffle_epi8(planesTable<kind>(p, k), index);
        sums[k] = p == 0 ? one : _mm256_add_epi8(sums[k], one);
      }
    }
    for (int k = 0; k < windows; ++k)
      use(g + k, sums[k]);
  }
}

/// The same as an array.
template <EncodingKind kind> inline void planesSteps(const uint8_t *chunk, __m256i (&w)[8]) {
  __m256i word[planesCode(kind).planes];
  for (int p = 0; p < planesCode(kind).planes; ++p)
    word[p] = loadBytes(chunk + 32 * p);
  forPlanesSteps<kind>(word, [&](int g, __m256i sums) { w[g] = sums; });
}

/// 32 bytes in the order of columns, in that of steps: four bytes a step.
inline void inSteps(const int8_t *x, int8_t *out) {
  const __m256i pairs = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  __m256i paired = _mm256_shuffle_epi8(loadBytes(x), pairs);
  __m128i low = _mm256_castsi256_si128(paired), high = _mm256_extracti128_si256(paired, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_unpacklo_epi16(low, high));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 16), _mm_unpackhi_epi16(low, high));
}

/// What a row's 32 weights are of its scale, in the order of columns, as signed bytes.
template <EncodingKind kind> inline __m256i planesRow(const uint8_t *chunk, int64_t row) {
  constexpr PlanesCode code = planesCode(kind);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i sum = _mm256_set1_epi8(-code.offset);
  for (int p = 0; p < code.planes; ++p) {
    __m256i word = broadcast4(chunk + 32 * p + 4 * row);
    // Lane g is the word turned by g: its bytes have the windows of columns g, g + 8, g + 16, g + 24.
    __m256i turned = _mm256_or_si256(_mm256_srlv_epi32(word, lane),
                                     _mm256_sllv_epi32(word, _mm256_sub_epi32(_mm256_set1_epi32(32), lane)));
    sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(planesTable<kind>(p), _mm256_and_si256(turned, _mm256_set1_epi8(15))));
  }
  const __m256i columns = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(sum, columns), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_PLANESSTEPS_H
