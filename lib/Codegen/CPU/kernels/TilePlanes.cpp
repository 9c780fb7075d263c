// SPDX-License-Identifier: Apache-2.0
//
// Contractions with planes weights; Encoding/Planes.h draws the chunk. Sums are unsigned and at most 127, so pairs of products fit 16
// bits with any activations (Dot.h), and the offset comes off through their sum. Activations are brought into the order of
// steps once for two tiles.
#include "Dot.h"
#include "Kernels.h"
#include "PlanesSteps.h"
#include "TileGrouped.h"

namespace otf::cpu {
namespace {

template <EncodingKind kind> struct PlanesTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(kind);
  static constexpr bool hasZeros = false;
  static constexpr bool floatParameters = false;

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

#define OTF_TILE(name, kind)                                                                                           \
  void otf_tile_##name(const void *tile, const void *rec, int64_t recStride, int64_t m, int64_t kb, int64_t group,     \
                       int64_t outliers, float *acc) {                                                                 \
    otf::cpu::groupedTile(otf::cpu::PlanesTile<otf::EncodingKind::kind>{}, tile, rec, recStride, m, kb, group,         \
                          outliers, acc);                                                                              \
  }                                                                                                                    \
  void otf_tiles_##name(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec, int64_t recStride,        \
                        int64_t m, int64_t kb, int64_t group, int64_t outliers, float *acc) {                          \
    otf::cpu::groupedTiles(otf::cpu::PlanesTile<otf::EncodingKind::kind>{}, tile, tileBytes, tiles, rec, recStride, m, \
                           kb, group, outliers, acc);                                                                  \
  }
OTF_TILE(planes3x1, Planes3x1)
OTF_TILE(planes3x2, Planes3x2)
OTF_TILE(planes3x3, Planes3x3)
OTF_TILE(planes3x4, Planes3x4)
OTF_TILE(planes4x1, Planes4x1)
OTF_TILE(planes4x2, Planes4x2)
OTF_TILE(planes4x3, Planes4x3)
