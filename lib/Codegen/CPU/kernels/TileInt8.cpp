// SPDX-License-Identifier: Apache-2.0
//
// Contractions with int8 and grid8 weights; Encoding/Int8.h draws the chunk. A grid is the file's, and
// so may that of the record be: any byte stands on both sides. Elsewhere activations are in
// −127 … 127, and a code of −128 is exact too: its magnitude as an unsigned byte is 128, and
// 2 · 128 · 127 = 32,512 fits 16 bits.
#include "Dot.h"
#include "Kernels.h"
#include "TilePanel.h"

namespace otf::cpu {
namespace {

#ifndef __AVX512VNNI__
/// Any bytes on both sides, as grids of the file's have them: |x| is unsigned and at most 128, and w
/// takes its sign. That fits but for w = -128, which is clipped to -127, and then x comes off once
/// more.
template <int MR, int NT>
inline void dotsWhole(const uint8_t *const (&chunk)[NT], const int8_t *x, int64_t stride,
                      __m256i (&out)[NT][MR]) {
  const __m256i least = _mm256_set1_epi8(-128);
  __m256i any = _mm256_setzero_si256();
  for (int j = 0; j < NT; ++j)
    for (int step = 0; step < 8; ++step)
      any = _mm256_or_si256(any, _mm256_cmpeq_epi8(loadBytes(chunk[j] + 32 * step), least));
  for (int step = 0; step < 8; ++step) {
    __m256i w[NT];
    for (int j = 0; j < NT; ++j)
      w[j] = _mm256_max_epi8(loadBytes(chunk[j] + 32 * step), _mm256_set1_epi8(-127));
    for (int i = 0; i < MR; ++i) {
      __m256i v = broadcast4(x + i * stride + 4 * step), magnitude = _mm256_abs_epi8(v);
      for (int j = 0; j < NT; ++j)
        out[j][i] = dotUnsigned(out[j][i], magnitude, _mm256_sign_epi8(w[j], v));
    }
  }
  if (_mm256_testz_si256(any, any))
    return;
  for (int step = 0; step < 8; ++step)
    for (int j = 0; j < NT; ++j) {
      __m256i clipped =
          _mm256_and_si256(_mm256_cmpeq_epi8(loadBytes(chunk[j] + 32 * step), least),
                           _mm256_set1_epi8(1));
      for (int i = 0; i < MR; ++i)
        out[j][i] = _mm256_sub_epi32(out[j][i], dotUnsigned(_mm256_setzero_si256(), clipped,
                                                            broadcast4(x + i * stride + 4 * step)));
    }
}
#endif

template <EncodingKind kind> struct Int8Tile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(EncodingKind::Int8);
  static constexpr bool hasZeros = otf::hasZeros(kind);
  static constexpr bool floatParameters = hasFloatParameters(kind);
  static constexpr bool pairs = true;
  static constexpr bool addsCodes = kind == EncodingKind::Grid8;

#ifdef __AVX512VNNI__
  // w + 128 is unsigned, so 128 · Σx comes off again.
  using Panel = UnsignedPanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    for (int s = 0; s < kSteps; ++s)
      w[s] = _mm256_xor_si256(loadBytes(chunk + 32 * s), _mm256_set1_epi8(-128));
  }
  static constexpr int32_t offset() { return -128; }
#else
  using Panel = SignedPanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    for (int s = 0; s < kSteps; ++s)
      w[s] = loadBytes(chunk + 32 * s);
  }
  static constexpr int32_t offset() { return 0; }
#endif
  static constexpr int32_t factor() { return 1; }

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&sum)[MR],
           __m256i (&out)[MR]) const {
    __m256i one[1][MR];
    dots<MR, 1>({chunk}, x, stride, sum, one);
    for (int i = 0; i < MR; ++i)
      out[i] = one[0][i];
  }

  template <int MR, int NT>
  void dots(const uint8_t *const (&chunk)[NT], const int8_t *x, int64_t stride,
            const int32_t (&sum)[MR], __m256i (&out)[NT][MR]) const {
#ifdef __AVX512VNNI__
    // w + 128 is unsigned, so 128 · Σx comes off again.
    for (int j = 0; j < NT; ++j)
      for (int i = 0; i < MR; ++i)
        out[j][i] = _mm256_set1_epi32(-128 * sum[i]);
    for (int step = 0; step < 8; ++step)
      for (int j = 0; j < NT; ++j) {
        __m256i w = _mm256_xor_si256(loadBytes(chunk[j] + 32 * step), _mm256_set1_epi8(-128));
        for (int i = 0; i < MR; ++i)
          out[j][i] = dotUnsigned(out[j][i], w, broadcast4(x + i * stride + 4 * step));
      }
#else
    (void)sum;
    for (int j = 0; j < NT; ++j)
      for (int i = 0; i < MR; ++i)
        out[j][i] = _mm256_setzero_si256();
    if constexpr (kind != EncodingKind::Int8)
      return dotsWhole<MR, NT>(chunk, x, stride, out);
    for (int step = 0; step < 8; ++step)
      for (int j = 0; j < NT; ++j) {
        __m256i w = loadBytes(chunk[j] + 32 * step);
        __m256i magnitude = _mm256_abs_epi8(w);
        for (int i = 0; i < MR; ++i)
          out[j][i] = dotSigned(out[j][i], w, magnitude, broadcast4(x + i * stride + 4 * step));
      }
#endif
  }
};

} // namespace
} // namespace otf::cpu

OTF_GROUPED_TILE(int8, Int8Tile<otf::EncodingKind::Int8>)
OTF_GROUPED_TILE(grid8, Int8Tile<otf::EncodingKind::Grid8>)
OTF_GROUPED_TILE(grid8z, Int8Tile<otf::EncodingKind::Grid8z>)
