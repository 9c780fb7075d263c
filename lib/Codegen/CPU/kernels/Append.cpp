// SPDX-License-Identifier: Apache-2.0
//
// Rows of keys or values into a cache of f32 or f16.
#include "Kernels.h"
#include "Simd.h"

void otf_append_f32(const float *x, int64_t xStride, int64_t rows, int64_t d, float *cache,
                    int64_t cacheStride) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < d; ++i)
      cache[row * cacheStride + i] = x[row * xStride + i];
}

void otf_append_f16(const float *x, int64_t xStride, int64_t rows, int64_t d, uint16_t *cache,
                    int64_t cacheStride) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *from = x + row * xStride;
    uint16_t *to = cache + row * cacheStride;
    int64_t i = 0;
    for (; i + 8 <= d; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < d; ++i)
      to[i] = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
  }
}
