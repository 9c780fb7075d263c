// SPDX-License-Identifier: Apache-2.0
//
// In float64, by Eigen, on one thread and with block sizes that do not follow the machine's caches,
// so that a plan has the same bytes everywhere.
//
// Where N > K the eigenvectors come from the smaller SᵀEᵀE S, H = S Sᵀ: if u is one of them with
// eigenvalue λ, E S u / √λ is one of E H Eᵀ. EᵀE is added up by blocks of rows, so that a head of
// many rows takes no more memory than its floats.

#include "Encoding/LowRank.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>

#include <algorithm>
#include <cmath>

namespace otf {

using Matrix = Eigen::MatrixXd;
using RowMajorFloats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowMajorDoubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Of the largest eigenvalue: below it there is nothing but rounding, and no direction.
static constexpr double kNothing = 1e-13;

static constexpr int64_t kBlockRows = 256;

/// The last `rank` eigenvectors of a symmetric matrix, the largest eigenvalue first, and these
/// values.
static Matrix largest(const Matrix &symmetric, int64_t rank, Eigen::VectorXd &values) {
  Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  values = solver.eigenvalues().tail(rank).reverse();
  return solver.eigenvectors().rightCols(rank).rowwise().reverse();
}

/// S with S Sᵀ = H.
static Matrix root(const Matrix &moments) {
  Eigen::SelfAdjointEigenSolver<Matrix> solver(moments);
  return solver.eigenvectors() * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal();
}

/// Columns that span what `basis` does, of length 1 and at right angles.
static Matrix orthogonal(const Matrix &basis) {
  return Eigen::HouseholderQR<Matrix>(basis).householderQ() *
         Matrix::Identity(basis.rows(), basis.cols());
}

/// ±1 by a counter (SplitMix64): the same on any machine.
static Matrix signs(int64_t rows, int64_t columns) {
  Matrix result(rows, columns);
  uint64_t state = 0; // the seed
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) {
      uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      result(i, j) = (z ^ (z >> 31)) >> 63 ? 1 : -1;
    }
  return result;
}

/// EᵀE, a block of rows after another.
static Matrix gram(const Eigen::Map<const RowMajorFloats> &error) {
  Matrix sum = Matrix::Zero(error.cols(), error.cols());
  for (int64_t first = 0; first < error.rows(); first += kBlockRows) {
    int64_t count = std::min(kBlockRows, error.rows() - first);
    Matrix block = error.middleRows(first, count).cast<double>();
    sum.selfadjointView<Eigen::Lower>().rankUpdate(block.transpose());
  }
  return sum.selfadjointView<Eigen::Lower>();
}

int64_t lowRankBytes(int64_t rows, int64_t columns) {
  bool sketched = std::min(rows, columns) > kMostExact;
  return rows > columns && !sketched
             ? 8 * 6 * columns * columns
             : 8 * (3 * rows * columns + 2 * columns * columns + (sketched ? 0 : 3 * rows * rows));
}

LowRank bestLowRank(const float *error, int64_t rows, int64_t columns, const double *moments,
                    int64_t rank, int64_t mostExact) {
  Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20);
  Eigen::Map<const RowMajorFloats> given(error, rows, columns);
  LowRank result;
  result.left.resize(size_t(rows * rank));
  result.right.resize(size_t(rank * columns));
  Eigen::Map<RowMajorFloats> outLeft(result.left.data(), rows, rank),
      outRight(result.right.data(), rank, columns);
  Matrix h;
  if (moments)
    h = Eigen::Map<const RowMajorDoubles>(moments, columns, columns);
  Eigen::VectorXd values;
  auto isNothing = [&](int64_t i) { return values[i] <= kNothing * values[0]; };

  if (std::min(rows, columns) <= mostExact && rows > columns) {
    Matrix squares = gram(given), s = moments ? root(h) : Matrix();
    Matrix outputs = moments ? Matrix(s.transpose() * squares * s) : squares;
    result.total = outputs.trace();
    Matrix inputs = largest(outputs, rank, values); // u, then S u / √λ
    if (moments)
      inputs = s * inputs;
    for (int64_t i = 0; i < rank; ++i) {
      if (isNothing(i))
        inputs.col(i).setZero();
      else
        inputs.col(i) /= std::sqrt(values[i]);
    }
    for (int64_t first = 0; first < rows; first += kBlockRows) {
      int64_t count = std::min(kBlockRows, rows - first);
      Matrix block = given.middleRows(first, count).cast<double>();
      outLeft.middleRows(first, count) = (block * inputs).cast<float>();
    }
    outRight = (inputs.transpose() * squares).cast<float>();
  } else {
    Matrix e = given.cast<double>();
    auto byMoments = [&](const Matrix &x) -> Matrix { return moments ? Matrix(h * x) : x; }; // H x
    Matrix he = byMoments(e.transpose()); // H Eᵀ: K x N
    for (int64_t i = 0; i < rows; ++i)
      result.total += e.row(i).dot(he.col(i));
    Matrix left;
    if (std::min(rows, columns) > mostExact) {
      Matrix basis = e * byMoments(signs(columns, std::min(rank + 8, std::min(rows, columns))));
      for (int sweep = 0; sweep < 2; ++sweep)
        basis = e * (he * orthogonal(basis));
      basis = orthogonal(basis);
      Matrix small = basis.transpose() * (e * (he * basis));
      left = basis * largest((small + small.transpose()) / 2, rank, values);
    } else {
      left = largest(e * he, rank, values);
    }
    for (int64_t i = 0; i < rank; ++i)
      if (isNothing(i))
        left.col(i).setZero();
    outLeft = left.cast<float>();
    outRight = (left.transpose() * e).cast<float>();
  }
  for (int64_t i = 0; i < rank; ++i)
    if (!isNothing(i))
      result.captured += values[i];
  return result;
}

} // namespace otf
