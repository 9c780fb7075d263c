// SPDX-License-Identifier: Apache-2.0
//
// Columns of eight floats or halves times f32 activations, for the outlier columns of coded tiles. Three partial sums over columns (c mod 3) hide the latency of FMA; four rows of
// activations then take twelve registers, and the order of summation is the same for every m.
#ifndef OTF_CODEGEN_CPU_TILEDENSE_H
#define OTF_CODEGEN_CPU_TILEDENSE_H

#include "Simd.h"

namespace otf::cpu {

struct FloatColumn {
  static constexpr int64_t bytes = 32;
  static __m256 load(const uint8_t *at) {
    return _mm256_loadu_ps(reinterpret_cast<const float *>(at));
  }
};

struct HalfColumn {
  static constexpr int64_t bytes = 16;
  static __m256 load(const uint8_t *at) { return loadHalves(at); }
};

/// sum[i] = Σ_c columns[c] · x_i[c], x_i = f32[count] at x + i·stride bytes.
template <typename Column, int MR>
inline void dense(const uint8_t *columns, int64_t count, const uint8_t *x, int64_t stride,
                  __m256 (&sum)[MR]) {
  constexpr int chains = 3;
  __m256 part[chains][MR];
  for (int j = 0; j < chains; ++j)
    for (int i = 0; i < MR; ++i)
      part[j][i] = _mm256_setzero_ps();
  auto column = [&](int64_t c, int j) {
    __m256 w = Column::load(columns + c * Column::bytes);
    for (int i = 0; i < MR; ++i) {
      const float *xi = reinterpret_cast<const float *>(x + i * stride);
      part[j][i] = _mm256_fmadd_ps(w, _mm256_set1_ps(xi[c]), part[j][i]);
    }
  };
  int64_t c = 0;
  for (; c + chains <= count; c += chains)
    for (int j = 0; j < chains; ++j)
      column(c + j, j);
  if (c < count)
    column(c, 0);
  if (c + 1 < count)
    column(c + 1, 1);
  for (int i = 0; i < MR; ++i)
    sum[i] = _mm256_add_ps(_mm256_add_ps(part[0][i], part[1][i]), part[2][i]);
}

/// Calls body.template operator()<MR>(first row) so that the MR cover m rows, four at a time:
/// a tile is unpacked once for four rows.
template <typename Body> inline void forRows(int64_t m, Body body) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4)
    body.template operator()<4>(i);
  switch (m - i) {
  case 3:
    return body.template operator()<3>(i);
  case 2:
    return body.template operator()<2>(i);
  case 1:
    return body.template operator()<1>(i);
  }
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_TILEDENSE_H
