// SPDX-License-Identifier: Apache-2.0
//
// Rows of keys or values into a cache of f32, f16 or int8.
#include "Encoding/CacheRow.h"
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
  // In this order of operands NaN stays.
  const __m256 most = _mm256_set1_ps(65504), least = _mm256_set1_ps(-65504);
  for (int64_t row = 0; row < rows; ++row) {
    const float *from = x + row * xStride;
    uint16_t *to = cache + row * cacheStride;
    int64_t i = 0;
    for (; i + 8 <= d; i += 8) {
      __m256 values = _mm256_max_ps(least, _mm256_min_ps(most, _mm256_loadu_ps(from + i)));
      _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                       _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < d; ++i) {
      float value = from[i] > 65504 ? 65504 : from[i] < -65504 ? -65504 : from[i];
      to[i] = _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
    }
  }
}

void otf_append_i8(const float *x, int64_t xStride, int64_t rows, int64_t d, int8_t *cache,
                   int64_t cacheStride) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int64_t row = 0; row < rows; ++row) {
    const float *from = x + row * xStride;
    int8_t *to = cache + row * cacheStride;
    // Magnitudes are ordered as their bits are, infinity and NaN last.
    __m256i high = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 8 <= d; i += 8)
      high = _mm256_max_epi32(high, _mm256_and_si256(magnitude, otf::cpu::loadBytes(from + i)));
    int32_t largest = otf::cpu::horizontalMax(high);
    for (; i < d; ++i) {
      int32_t bits = __builtin_bit_cast(int32_t, from[i]) & 0x7fffffff;
      largest = bits > largest ? bits : largest;
    }
    const float scale = otf::cacheScale(__builtin_bit_cast(float, largest));
    const bool codes = scale > 0;
    const __m256 divisor = _mm256_set1_ps(scale);
    for (i = 0; i + 8 <= d; i += 8) {
      __m256i q = _mm256_cvtps_epi32(_mm256_div_ps(_mm256_loadu_ps(from + i), divisor));
      __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
      __m128i bytes = codes ? _mm_packs_epi16(words, words) : _mm_setzero_si128();
      _mm_storel_epi64(reinterpret_cast<__m128i *>(to + i), bytes);
    }
    for (; i < d; ++i)
      to[i] = codes ? int8_t(_mm_cvtss_si32(_mm_set_ss(from[i] / scale))) : int8_t(0);
    __builtin_memcpy(to + d, &scale, sizeof scale);
  }
}
