// SPDX-License-Identifier: Apache-2.0
//
// Statistics of a row, and its elements after the norm. Used by otf_norm and by the records, which
// normalise while they quantise and so need no buffer for the normalised row.
#ifndef OTF_CODEGEN_CPU_NORM_H
#define OTF_CODEGEN_CPU_NORM_H

#include "Kernels.h"
#include "Simd.h"

namespace otf::cpu {

/// Σ (x − mean)², or Σ x with `square` off, in the canonical order, which is that of a CUDA block:
/// element i goes to partial sum i mod 256; 32 neighbours meet in a tree (distance 16, 8, 4, 2, 1),
/// and the eight results one after another.
template <bool square> inline float rowSum(const float *x, int64_t k, float mean) {
  constexpr int vectors = 32;
  __m256 part[vectors] = {};
  __m256 m = _mm256_set1_ps(mean);
  auto add = [&](__m256 v, int j) {
    part[j] = square ? _mm256_fmadd_ps(v, v, part[j]) : _mm256_add_ps(part[j], v);
  };
  int64_t i = 0;
  for (; i + 8 * vectors <= k; i += 8 * vectors)
    for (int j = 0; j < vectors; ++j)
      add(_mm256_sub_ps(_mm256_loadu_ps(x + i + 8 * j), m), j);
  int j = 0;
  for (; i + 8 <= k; i += 8, ++j)
    add(_mm256_sub_ps(_mm256_loadu_ps(x + i), m), j);
  if (i < k) {
    float rest[8] = {};
    for (int64_t lane = 0; i + lane < k; ++lane)
      rest[lane] = x[i + lane] - mean;
    add(_mm256_loadu_ps(rest), j);
  }
  float sum = 0;
  for (int w = 0; w < vectors; w += 4)
    sum += horizontalSum(_mm256_add_ps(_mm256_add_ps(part[w], part[w + 2]),
                                       _mm256_add_ps(part[w + 1], part[w + 3])));
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
