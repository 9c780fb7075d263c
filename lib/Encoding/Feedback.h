// SPDX-License-Identifier: Apache-2.0
//
// Error feedback: columns that are coded later make up for what earlier ones lost.
//
// Problem: a weight's own error is not what a linear loses. With inputs x that loses
// E[(eᵀx)²] = e H eᵀ for a row's error e, where H = E[x xᵀ]; correlated inputs let one column's error
// cancel another's. Approach (GPTQ and LDLQ are this): H = U D Uᵀ with U unit upper triangular, so
//
//   e H eᵀ = Σ_j D_j (e_j + Σ_{i<j} e_i U_ij)²
//
// and column j is rounded not at w_j but at its target w_j + Σ_{i<j} (w_i − ŵ_i) U_ij. Rounding alone is
// left in the bracket: the loss falls from tr(H) to tr(D) times the variance of rounding.
//
// An encoding that codes a block B of 32 columns at once takes as targets w_B + (Σ_{i<B} e_i U_iB) U_BB⁻¹
// and loses e H_B eᵀ there, with H_B = U_BB D_B U_BBᵀ. H_B is far from diagonal: first blocks hold the direction
// that all inputs share, so a search must weigh errors together (Survivors.h).
//
// Feedback looks ahead only. Once all columns have codes, a block can be coded again for the errors that all others
// have: its loss is then that of H_BB itself, around w_B + (Σ_{i∉B} e_i H_iB) H_BB⁻¹.
//
// Columns stand in the order of coding: that of the weight's column index, outliers last. Those are
// stored in f16 and take up what the background has lost.
#ifndef OTF_ENCODING_FEEDBACK_H
#define OTF_ENCODING_FEEDBACK_H

#include "BlockForm.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace otf {

class Feedback {
public:
  static constexpr int64_t kBlock = 32; ///< columns; kChunkColumns of Layout.h

  /// Factors a Hessian.
  ///   columns   of the weight, K
  ///   hessian   (i, j) with j <= i, columns of the weight: any positive multiple of Σ x_i x_j
  ///   order     K columns in the order of coding, or null for 0, 1, 2, …
  ///   damping   added to the diagonal, a fraction of its mean; ten times more while H is not
  ///             positive definite in float64, at most 1
  /// Returns false and says a clause in `error` where H is not finite, or zero.
  /// Takes 12 K² bytes while it works and keeps 4 K², and 550 K.
  bool factor(int64_t columns, const std::function<double(int64_t, int64_t)> &hessian,
              const uint32_t *order, double damping, std::string &error);

  int64_t columns() const { return size; }
  /// What was added to the diagonal, as a fraction of its mean.
  double damping() const { return damped; }
  /// tr(D) / tr(H): what feedback leaves of the loss of equal, independent rounding errors.
  double gain() const { return traceD / traceH; }

  /// Row i of U, K values; only those from i on mean something, the i-th is 1.
  const float *upper(int64_t i) const { return factors.data() + i * size; }
  /// The variance of column j's bracket: D_j.
  double variance(int64_t j) const { return variances[size_t(j)]; }
  /// H_B of the block [32 b, 32 b + 32) or what there is of it, and H_BB.
  const BlockForm &ahead(int64_t b) const { return forms[size_t(2 * b)]; }
  const BlockForm &among(int64_t b) const { return forms[size_t(2 * b + 1)]; }
  /// The form of errors of columns [begin, begin + count), at most kBlock, where only brackets of columns before `last` count: with
  /// last = begin + count it is H_B, with K it is H_BB.
  BlockForm form(int64_t begin, int64_t count, int64_t last) const;
  /// Turns the sums Σ e_i U_iB of one row into what is added to w_B, in place. `count` columns from `begin`, a
  /// multiple of kBlock.
  void solveBlock(int64_t begin, int64_t count, float *sums) const;

  /// Adds what errors of some columns ask of others: sums[row][j] += Σ_i errors[row][i] U_(begin+i)j for j from `first` to
  /// `last` − 1, all of them past the columns [begin, begin + count). The order of additions does not depend on the machine.
  void spread(int64_t begin, int64_t count, const float *errors, int64_t errorStride, int64_t rows,
              float *sums, int64_t sumStride, int64_t first, int64_t last) const;

  /// What brackets say of columns [begin, begin + count): sums[row][i] = Σ_j U_(begin+i)j values[row][j], j from begin to K − 1; with
  /// values D_j (e U)_j it is e H at these columns. The order of additions does not depend on the machine.
  void gather(int64_t begin, int64_t count, const float *values, int64_t valueStride, int64_t rows, float *sums,
              int64_t sumStride) const;

  /// e H eᵀ of one row, K errors in the order of coding. H is damped.
  double loss(const double *error) const;

private:
  int64_t size = 0;
  double damped = 0, traceD = 0, traceH = 0;
  std::vector<float> factors; // U, row-major; below the diagonal 0
  std::vector<double> variances;
  std::vector<BlockForm> forms;
};

} // namespace otf

#endif // OTF_ENCODING_FEEDBACK_H
