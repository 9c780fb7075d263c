// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square and layer norm of a row.
#include "Norm.h"

void otf_norm(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
              const float *beta, float *out) {
  otf::cpu::RowNorm row(x, k, norm, eps, gamma, beta);
  for (int64_t i = 0; i < k; ++i)
    out[i] = row[i];
}
