// SPDX-License-Identifier: Apache-2.0
//
// One step: eight rows × four columns of bytes times four activations, one 32-bit sum a lane,
// exact at every level. Activations are in −127 … 127, but for
// `dotUnsigned` with unsigned weights of 7 bits, where they are any.
//
// vpmaddubsw adds two products in 16 bits and saturates, so on AVX2 the unsigned side stays within
// 7 bits: 2·127·127 = 32,258 < 32,768. vpdpbusd adds four products in 32 bits and never saturates.
#ifndef OTF_CODEGEN_CPU_DOT_H
#define OTF_CODEGEN_CPU_DOT_H

#include "Simd.h"

namespace otf::cpu {

#ifdef __AVX512VNNI__

/// sum + Σ w·x, w any unsigned byte.
inline __m256i dotUnsigned(__m256i sum, __m256i w, __m256i x) {
  return _mm256_dpbusd_epi32(sum, w, x);
}

#else

inline __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

/// sum + Σ w·x, w at most 127.
inline __m256i dotUnsigned(__m256i sum, __m256i w, __m256i x) {
  return _mm256_add_epi32(sum, widen(_mm256_maddubs_epi16(w, x)));
}

/// sum + Σ w·x, w in −127 … 127; `magnitude` is |w|. The sign of w moves to x.
inline __m256i dotSigned(__m256i sum, __m256i w, __m256i magnitude, __m256i x) {
  return dotUnsigned(sum, magnitude, _mm256_sign_epi8(x, w));
}

#endif

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_DOT_H
