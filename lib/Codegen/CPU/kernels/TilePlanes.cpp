// SPDX-License-Identifier: Apache-2.0
//
// Contractions with planes weights; Encoding/Planes.h draws the chunk. Sums are unsigned and at most 127, so pairs of products fit 16
// bits with any activations (Dot.h), and the offset comes off through their sum. Activations are brought into the order of
// steps once for two tiles; where many rows pass, the panel is brought into that of columns instead.
#include "Dot.h"
#include "Kernels.h"
#include "PlanesSteps.h"
#include "TilePanel.h"

namespace otf::cpu {
namespace {

template <EncodingKind kind> struct PlanesTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(kind);
  static constexpr bool hasZeros = false;
  static constexpr bool floatParameters = false;
  static constexpr bool pairs = true;

  using Panel = SevenBitPanel;
  void steps(const uint8_t *chunk, __m256i (&w)[kSteps]) const {
    __m256i g[kSteps];
    planesSteps<kind>(chunk, g);
    // Byte b of g[k] is column k + 8b: in each lane, four vectors by four bytes are transposed.
    const __m256i even = _mm256_set1_epi16(0xff);
    for (int half = 0; half < 2; ++half) {
      __m256i bytes[2][2]; // of two vectors each: bytes 0 and 2; bytes 1 and 3
      for (int k = 0; k < 2; ++k) {
        __m256i first = g[4 * half + 2 * k], second = g[4 * half + 2 * k + 1];
        bytes[0][k] = _mm256_or_si256(_mm256_and_si256(first, even), _mm256_slli_epi16(second, 8));
        bytes[1][k] = _mm256_or_si256(_mm256_srli_epi16(first, 8), _mm256_andnot_si256(even, second));
      }
      for (int b = 0; b < 2; ++b) {
        w[2 * b + half] = _mm256_blend_epi16(bytes[b][0], _mm256_slli_epi32(bytes[b][1], 16), 0xaa);
        w[4 + 2 * b + half] = _mm256_blend_epi16(_mm256_srli_epi32(bytes[b][0], 16), bytes[b][1], 0xaa);
      }
    }
  }
  template <typename V> V exact(V sum, V xSum) const { return sum - xSum * planesCode(kind).offset; }

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&sum)[MR], __m256i (&out)[MR]) const {
    __m256i one[1][MR];
    dots<MR, 1>({chunk}, x, stride, sum, one);
    for (int i = 0; i < MR; ++i)
      out[i] = one[0][i];
  }

  template <int MR, int NT>
  void dots(const uint8_t *const (&chunk)[NT], const int8_t *x, int64_t stride, const int32_t (&sum)[MR],
            __m256i (&out)[NT][MR]) const {
    alignas(32) int8_t steps[MR][32];
    for (int i = 0; i < MR; ++i)
      inSteps(x + i * stride, steps[i]);
    for (int j = 0; j < NT; ++j) {
      __m256i w[8];
      planesSteps<kind>(chunk[j], w);
      for (int i = 0; i < MR; ++i) {
        // Two chains: an instruction waits for the one before.
        __m256i even = _mm256_set1_epi32(-planesCode(kind).offset * sum[i]), odd = _mm256_setzero_si256();
        for (int g = 0; g < 8; g += 2) {
          even = dotUnsigned(even, w[g], broadcast4(steps[i] + 4 * g));
          odd = dotUnsigned(odd, w[g + 1], broadcast4(steps[i] + 4 * g + 4));
        }
        out[j][i] = _mm256_add_epi32(even, odd);
      }
    }
  }
};

} // namespace
} // namespace otf::cpu

OTF_GROUPED_TILE(planes3x1, PlanesTile<otf::EncodingKind::Planes3x1>)
OTF_GROUPED_TILE(planes3x2, PlanesTile<otf::EncodingKind::Planes3x2>)
OTF_GROUPED_TILE(planes3x3, PlanesTile<otf::EncodingKind::Planes3x3>)
OTF_GROUPED_TILE(planes3x4, PlanesTile<otf::EncodingKind::Planes3x4>)
OTF_GROUPED_TILE(planes4x1, PlanesTile<otf::EncodingKind::Planes4x1>)
OTF_GROUPED_TILE(planes4x2, PlanesTile<otf::EncodingKind::Planes4x2>)
OTF_GROUPED_TILE(planes4x3, PlanesTile<otf::EncodingKind::Planes4x3>)
