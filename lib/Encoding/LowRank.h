// SPDX-License-Identifier: Apache-2.0
//
// The best low rank of what coding loses, by what it multiplies.
//
// E is N x K, an error W - coded W; H = Σ x xᵀ is K x K, the second moments of a linear's inputs.
// Of all P Q of rank r the loss tr (E - P Q) H (E - P Q)ᵀ is least for P = V_r, Q = V_rᵀ E, with V
// the eigenvectors of E H Eᵀ; what is left is the sum of the other eigenvalues (Eckart and Young,
// on E H^½). With H = I these are singular vectors.
#ifndef OTF_LIB_ENCODING_LOWRANK_H
#define OTF_LIB_ENCODING_LOWRANK_H

#include <cstdint>
#include <vector>

namespace otf {

struct LowRank {
  /// P: N x r, row-major, columns of length 1 (0 for a rank that E does not have).
  std::vector<float> left;
  std::vector<float> right; ///< Q: r x K, row-major
  double total = 0;         ///< tr E H Eᵀ
  double captured = 0;      ///< of it, what P Q takes off
};

/// Above this lesser dimension the subspace is found by sketching: seed 0, oversampling by 8, two
/// power iterations.
inline constexpr int64_t kMostExact = 4096;

/// `error`: N x K, row-major. `moments`: K x K, symmetric, or null for the identity. 1 <= rank <=
/// min(N, K). Values are finite. Two results for equal inputs are equal to the bit. `mostExact` is
/// for tests.
LowRank bestLowRank(const float *error, int64_t rows, int64_t columns, const double *moments,
                    int64_t rank, int64_t mostExact = kMostExact);

/// The most memory that it takes beside its arguments and result, in bytes.
int64_t lowRankBytes(int64_t rows, int64_t columns);

} // namespace otf

#endif // OTF_LIB_ENCODING_LOWRANK_H
