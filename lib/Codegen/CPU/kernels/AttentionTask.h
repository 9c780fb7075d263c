// SPDX-License-Identifier: Apache-2.0
//
// What one call of the attention kernels is asked for, and what is known of a query while its keys pass.
#ifndef OTF_CODEGEN_CPU_ATTENTIONTASK_H
#define OTF_CODEGEN_CPU_ATTENTIONTASK_H

#include "Simd.h"

namespace otf::cpu {

constexpr int64_t kBlock = 32; ///< of keys; canonical (docs/Architecture.md)

inline __m256 load8(const float *at) { return _mm256_loadu_ps(at); }
inline __m256 load8(const uint16_t *at) { return loadHalves(at); }
inline __m256 load8(const int8_t *at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(at))));
}
inline float load1(float value) { return value; }
inline float load1(uint16_t half) { return _cvtsh_ss(half); }
inline float load1(int8_t code) { return code; }

/// Whether a row of T has a scale behind its elements, which are then codes.
template <typename T> constexpr bool kScaled = sizeof(T) == 1;
inline float scaleBehind(const int8_t *row, int64_t width) {
  float scale;
  __builtin_memcpy(&scale, row + width, sizeof scale);
  return scale;
}

/// The arguments of otf_attention_f32, _f16 or _i8 (Kernels.h).
template <typename T> struct AttentionTask {
  const float *q;
  int64_t qRowStride, qHeadStride;
  const T *k;
  int64_t kStride;
  const T *v;
  int64_t vStride, heads, keys, d, dv;
  float scale, softcap;
  int64_t visible, window;
  const float *maskAdd;
  const uint8_t *maskKeep;
  int64_t maskRowStride, maskHeadStride;
  float *out;
  int64_t outRowStride, outHeadStride;
  const float *sink;

  /// What is known of one query while its keys pass.
  struct Query {
    const float *q;
    float *out;
    int64_t mask;         ///< offset of its row of the mask
    int64_t begin, end;   ///< keys it sees
    float largest, total; ///< of the scores so far; of their weights
  };

  Query query(int64_t number) const {
    int64_t row = number / heads, head = number % heads;
    int64_t end = visible + row < keys ? visible + row : keys;
    end = end < 0 ? 0 : end;
    int64_t begin = window != 0 && end > window ? end - window : 0;
    return {q + row * qRowStride + head * qHeadStride,
            out + row * outRowStride + head * outHeadStride,
            row * maskRowStride + head * maskHeadStride,
            begin,
            end,
            -__builtin_inff(),
            0};
  }
};

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_ATTENTIONTASK_H
