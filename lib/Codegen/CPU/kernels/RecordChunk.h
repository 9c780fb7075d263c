// SPDX-License-Identifier: Apache-2.0
//
// 32 activations as codes with a scale of their own. Records are made of these
// (docs/Architecture.md).
#ifndef OTF_CODEGEN_CPU_RECORDCHUNK_H
#define OTF_CODEGEN_CPU_RECORDCHUNK_H

#include "Simd.h"

namespace otf::cpu {

/// Packing works within 128-bit halves; the permutation puts the words of four back in order.
inline void store(const __m256i (&n)[4], int8_t *q) {
  __m256i packed =
      _mm256_packs_epi16(_mm256_packs_epi32(n[0], n[1]), _mm256_packs_epi32(n[2], n[3]));
  packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i *>(q), packed);
}

/// Quantises 32 floats; returns the scale, writes 32 bytes and their sum.
inline float quantizeChunk(const float *x, int8_t *q, int32_t *sum) {
  __m256 v[4];
  // Magnitudes compare as integers; so a NaN is the largest of all and reaches the scale.
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(v[i]), _mm256_set1_epi32(0x7fffffff));
    largest = _mm256_max_epi32(largest, magnitude);
  }
  float scale = __builtin_bit_cast(float, horizontalMax(largest)) / 127.0f;
  __m256 divisor = _mm256_set1_ps(scale == 0 ? 1.0f : scale);
  __m256i n[4];
  for (int i = 0; i < 4; ++i) {
    __m256 t = _mm256_div_ps(v[i], divisor);
    // Only a subnormal scale can be so coarse that this clips.
    t = _mm256_min_ps(_mm256_max_ps(t, _mm256_set1_ps(-127)), _mm256_set1_ps(127));
    n[i] = _mm256_cvtps_epi32(t);
  }
  *sum =
      horizontalSum(_mm256_add_epi32(_mm256_add_epi32(n[0], n[1]), _mm256_add_epi32(n[2], n[3])));
  store(n, q);
  return scale;
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_RECORDCHUNK_H
