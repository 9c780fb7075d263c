// SPDX-License-Identifier: Apache-2.0
//
// Contractions with f32 and f16 weights.
#include "Kernels.h"
#include "TileDense.h"

namespace otf::cpu {
namespace {

template <typename Column>
void plainTile(const void *tile, const void *rec, int64_t recStride, int64_t m, int64_t k,
               float *acc) {
  forRows(m, [&]<int MR>(int64_t first) {
    __m256 sum[MR];
    dense<Column>(static_cast<const uint8_t *>(tile), k,
                  static_cast<const uint8_t *>(rec) + first * recStride, recStride, sum);
    for (int i = 0; i < MR; ++i)
      _mm256_storeu_ps(acc + 8 * (first + i), sum[i]);
  });
}

} // namespace
} // namespace otf::cpu

void otf_tile_f32(const void *tile, const void *rec, int64_t recStride, int64_t m, int64_t k,
                  float *acc) {
  otf::cpu::plainTile<otf::cpu::FloatColumn>(tile, rec, recStride, m, k, acc);
}

void otf_tile_f16(const void *tile, const void *rec, int64_t recStride, int64_t m, int64_t k,
                  float *acc) {
  otf::cpu::plainTile<otf::cpu::HalfColumn>(tile, rec, recStride, m, k, acc);
}
