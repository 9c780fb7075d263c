// SPDX-License-Identifier: Apache-2.0
//
// Contractions with ternary_sign weights; Encoding/TernarySign.h draws the chunk. Both codes are
// unsigned bytes, t + 1 and bit, so
//   Σ t x = Σ (t + 1) x − Σ x,   Σ s x = 2 · Σ bit x − Σ x.
#include "Dot.h"
#include "Kernels.h"
#include "TileGrouped.h"

namespace otf::cpu {
namespace {

struct TernarySignTile {
  static constexpr int64_t chunkBytes = otf::chunkBytes(EncodingKind::TernarySign);
  static constexpr bool hasZeros = true;
  static constexpr bool hasSigns = true;
  static constexpr bool floatParameters = false;

  template <int MR>
  void dot(const uint8_t *chunk, const int8_t *x, int64_t stride, const int32_t (&sum)[MR],
           __m256i (&out)[MR], __m256i (&signs)[MR]) const {
    const __m256i two = _mm256_set1_epi8(3), one = _mm256_set1_epi8(1);
    __m256i packed[2] = {loadBytes(chunk), loadBytes(chunk + 32)}, bits = loadBytes(chunk + 64);
    for (int i = 0; i < MR; ++i)
      out[i] = signs[i] = _mm256_setzero_si256();
    for (int step = 0; step < 8; ++step) {
      __m256i t = _mm256_and_si256(_mm256_srli_epi16(packed[step / 4], 2 * (step % 4)), two);
      __m256i b = _mm256_and_si256(_mm256_srli_epi16(bits, step), one);
      for (int i = 0; i < MR; ++i) {
        __m256i four = broadcast4(x + i * stride + 4 * step);
#ifdef __AVX512VNNI__
        out[i] = dotUnsigned(out[i], t, four);
        signs[i] = dotUnsigned(signs[i], b, four);
#else
        // Eight steps fit 16 bits: 8 · 2 · 2 · 127 = 4,064. So one widening a chunk is enough.
        out[i] = _mm256_add_epi16(out[i], _mm256_maddubs_epi16(t, four));
        signs[i] = _mm256_add_epi16(signs[i], _mm256_maddubs_epi16(b, four));
#endif
      }
    }
    for (int i = 0; i < MR; ++i) {
#ifndef __AVX512VNNI__
      out[i] = widen(out[i]);
      signs[i] = widen(signs[i]);
#endif
      __m256i all = _mm256_set1_epi32(sum[i]);
      out[i] = _mm256_sub_epi32(out[i], all);
      signs[i] = _mm256_sub_epi32(_mm256_add_epi32(signs[i], signs[i]), all);
    }
  }
};

} // namespace
} // namespace otf::cpu

void otf_tiles_ternary_sign(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,
                            int64_t recStride, int64_t m, int64_t kb, int64_t group,
                            int64_t outliers, float *acc) {
  for (int64_t t = 0; t < tiles; ++t)
    otf::cpu::groupedTile(otf::cpu::TernarySignTile{},
                          static_cast<const uint8_t *>(tile) + t * tileBytes, rec, recStride, m, kb,
                          group, outliers, acc + 8 * t * m);
}

void otf_tile_ternary_sign(const void *tile, const void *rec, int64_t recStride, int64_t m,
                           int64_t kb, int64_t group, int64_t outliers, float *acc) {
  otf_tiles_ternary_sign(tile, 0, 1, rec, recStride, m, kb, group, outliers, acc);
}
