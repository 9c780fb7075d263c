// SPDX-License-Identifier: Apache-2.0
//
// The sums of a planes chunk (Encoding/Planes.h) as bytes. A row's word is a 32-bit lane, and the same shift of all of it brings
// one window to the bottom of each byte: step g = 0 … 7 is the columns g, g + 8, g + 16, g + 24 of eight rows. No window of steps
// 0 … 3 reaches round the circle, nor of steps 4 … 7 once the word is turned by 4; so seven shifts serve all, where the columns in
// their order would take a permutation a step. Who multiplies brings activations into this order: `inSteps`.
#ifndef OTF_CODEGEN_CPU_PLANESSTEPS_H
#define OTF_CODEGEN_CPU_PLANESSTEPS_H

#include "Encoding/Planes.h"
#include "Simd.h"

namespace otf::cpu {

/// The table of plane p in both halves, and twice in each where it has eight entries.
template <EncodingKind kind> inline __m256i planesTable(int p) {
  constexpr PlanesCode code = planesCode(kind);
  alignas(16) uint8_t bytes[16];
  for (int i = 0; i < 16; ++i)
    bytes[i] = code.table[p][i & ((1 << code.window) - 1)];
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(bytes)));
}

/// The sums of eight rows, 0 … 127: byte b of lane r of w[g] is column g + 8b of row r.
template <EncodingKind kind> inline void planesSteps(const uint8_t *chunk, __m256i (&w)[8]) {
  constexpr PlanesCode code = planesCode(kind);
  const __m256i mask = _mm256_set1_epi8(15); // windows of 3 bits see their table twice
  for (int p = 0; p < code.planes; ++p) {
    const __m256i table = planesTable<kind>(p);
    __m256i word = loadBytes(chunk + 32 * p);
#ifdef __AVX512VL__
    __m256i turned = _mm256_ror_epi32(word, 4);
#else
    __m256i turned = _mm256_or_si256(_mm256_srli_epi32(word, 4), _mm256_slli_epi32(word, 28));
#endif
    for (int r = 0; r < 4; ++r) {
      __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(word, r), mask));
      __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(turned, r), mask));
      w[r] = p == 0 ? low : _mm256_add_epi8(w[r], low);
      w[4 + r] = p == 0 ? high : _mm256_add_epi8(w[4 + r], high);
    }
  }
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
