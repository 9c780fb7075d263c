// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding of one head. Both halves of a pair are read before either is written,
// so it also works in place.
#include "Kernels.h"
#include "Simd.h"

void otf_rope(const float *x, int64_t d, int64_t rotary, const float *cos, const float *sin,
              float *out) {
  int64_t half = rotary / 2, i = 0;
  for (; i + 8 <= half; i += 8) {
    __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + half + i);
    __m256 low = _mm256_mul_ps(b, _mm256_loadu_ps(sin + i));
    __m256 high = _mm256_mul_ps(a, _mm256_loadu_ps(sin + half + i));
    _mm256_storeu_ps(out + i, _mm256_fmsub_ps(a, _mm256_loadu_ps(cos + i), low));
    _mm256_storeu_ps(out + half + i, _mm256_fmadd_ps(b, _mm256_loadu_ps(cos + half + i), high));
  }
  for (; i < half; ++i) {
    float a = x[i], b = x[half + i];
    out[i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
    out[half + i] = __builtin_fmaf(b, cos[half + i], a * sin[half + i]);
  }
  for (i = rotary; i < d; ++i)
    out[i] = x[i];
}
