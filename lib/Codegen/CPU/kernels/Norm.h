// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a row, and its elements after the norm. Used by otf_norm and by the records, which
// normalise while they quantise and so need no buffer for the normalised row.
#ifndef OTF_CODEGEN_CPU_NORM_H
#define OTF_CODEGEN_CPU_NORM_H

#include "Kernels.h"
#include "Simd.h"

namespace otf::cpu {

/// Σ (x − mean)², or Σ x with `square` off; four partial vectors, then the rest one by one.
template <bool square> inline float rowSum(const float *x, int64_t k, float mean) {
  __m256 part[4] = {};
  __m256 m = _mm256_set1_ps(mean);
  int64_t i = 0;
  auto add = [&](int64_t at, int j) {
    __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + at), m);
    part[j] = square ? _mm256_fmadd_ps(v, v, part[j]) : _mm256_add_ps(v, part[j]);
  };
  for (; i + 32 <= k; i += 32)
    for (int j = 0; j < 4; ++j)
      add(i + 8 * j, j);
  for (; i + 8 <= k; i += 8)
    add(i, 0);
  float sum = horizontalSum(
      _mm256_add_ps(_mm256_add_ps(part[0], part[1]), _mm256_add_ps(part[2], part[3])));
  for (; i < k; ++i) {
    float v = x[i] - mean;
    sum += square ? v * v : v;
  }
  return sum;
}

struct RowNorm {
  const float *x, *gamma, *beta;
  bool active;
  float mean = 0, inverse = 1;

  RowNorm(const float *row, int64_t k, int64_t norm, float eps, const float *g, const float *b)
      : x(row), gamma(g), beta(b), active(norm != OTF_NORM_NONE) {
    if (!active)
      return;
    if (norm == OTF_NORM_LAYER)
      mean = rowSum<false>(x, k, 0) / float(k);
    inverse = 1.0f / __builtin_sqrtf(rowSum<true>(x, k, mean) / float(k) + eps);
  }

  float operator[](int64_t i) const {
    if (!active)
      return x[i];
    float value = (x[i] - mean) * inverse;
    if (gamma)
      value *= gamma[i];
    if (beta)
      value += beta[i];
    return value;
  }
};

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_NORM_H
