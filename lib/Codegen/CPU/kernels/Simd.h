// SPDX-License-Identifier: Apache-2.0
//
// The few vector idioms that several kernels need. A vector is 256 bits at every level: eight rows
// of a tile, one 32-bit lane each. The AVX-512 level adds instructions, not width.
#ifndef OTF_CODEGEN_CPU_SIMD_H
#define OTF_CODEGEN_CPU_SIMD_H

#include <immintrin.h>
#include <stdint.h>

namespace otf::cpu {

inline __m256 loadHalves(const void *at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i *>(at)));
}

inline __m256i loadBytes(const void *at) {
  return _mm256_loadu_si256(static_cast<const __m256i *>(at));
}

/// Four bytes, of any alignment, in every lane.
inline __m256i broadcast4(const void *at) {
  int32_t word;
  __builtin_memcpy(&word, at, 4);
  return _mm256_set1_epi32(word);
}

inline float horizontalSum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

inline int32_t horizontalSum(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
  return _mm_cvtsi128_si32(s) + _mm_extract_epi32(s, 1);
}

inline int32_t horizontalMax(__m256i v) {
  __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_max_epi32(s, _mm_unpackhi_epi64(s, s));
  int32_t a = _mm_cvtsi128_si32(s), b = _mm_extract_epi32(s, 1);
  return a > b ? a : b;
}

/// Eight sums at once: lane i of the result is the sum of v[i].
inline __m256 horizontalSums(const __m256 (&v)[8]) {
  __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
  // a holds the sums of the halves of v[0..3], b those of v[4..7].
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/// v[i][j] becomes v[j][i].
inline void transpose(__m256 (&v)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_SIMD_H
