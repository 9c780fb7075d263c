// SPDX-License-Identifier: Apache-2.0
//
// Low ranks against singular values that Eigen finds in another way.

#include "Encoding/LowRank.h"

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include <random>

using namespace otf;
using Matrix = Eigen::MatrixXd;

namespace {

struct Case {
  std::vector<float> error;
  std::vector<double> moments;
  Matrix e, inputs; // N x K, n x K
};

Case draw(int64_t rows, int64_t columns, int64_t samples) {
  std::mt19937 random(uint32_t(rows * 1000 + columns));
  std::normal_distribution<double> normal;
  Case made;
  made.e = Matrix(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) {
      made.error.push_back(float(normal(random)));
      made.e(i, k) = made.error.back();
    }
  made.inputs = Matrix::NullaryExpr(
      samples, columns, [&](auto, auto k) { return normal(random) / double(1 + k % 17); });
  Matrix moments = made.inputs.transpose() * made.inputs;
  made.moments.assign(moments.data(), moments.data() + moments.size());
  return made;
}

double lossOf(const Case &given, const LowRank &low, int64_t rank, bool weighted) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix p = Eigen::Map<const RowMajor>(low.left.data(), given.e.rows(), rank).cast<double>();
  Matrix q = Eigen::Map<const RowMajor>(low.right.data(), rank, given.e.cols()).cast<double>();
  Matrix rest = given.e - p * q;
  return weighted ? (given.inputs * rest.transpose()).squaredNorm() : rest.squaredNorm();
}

TEST(LowRank, LeavesTheSmallerSingularValues) {
  for (auto [rows, columns, samples] : {std::tuple(24, 40, 300),
                                        {40, 24, 300},
                                        {16, 16, 200},
                                        {8, 33, 5},
                                        {33, 8, 100},
                                        {1, 7, 20}})
    for (bool weighted : {false, true})
      for (int64_t rank : {int64_t(1), int64_t(4)}) {
        rank = std::min<int64_t>(rank, std::min(rows, columns));
        Case given = draw(rows, columns, samples);
        LowRank low = bestLowRank(given.error.data(), rows, columns,
                                  weighted ? given.moments.data() : nullptr, rank);
        Matrix outputs = weighted ? Matrix(given.inputs * given.e.transpose()) : given.e;
        Eigen::VectorXd singular = Eigen::JacobiSVD<Matrix>(outputs).singularValues();
        double total = singular.squaredNorm(),
               left = total - singular.head(std::min<int64_t>(rank, singular.size())).squaredNorm();
        EXPECT_NEAR(low.total, total, 1e-9 * total);
        EXPECT_NEAR(low.total - low.captured, left, 1e-9 * total);
        // P and Q are f32.
        EXPECT_NEAR(lossOf(given, low, rank, weighted), left, 1e-6 * total)
            << rows << " x " << columns << ", rank " << rank;
      }
}

TEST(LowRank, RecoversAnErrorOfThatRank) {
  for (auto [rows, columns] : {std::pair(20, 50), {50, 20}}) {
    Case given = draw(rows, columns, 90);
    given.e = given.e.leftCols(3) * Matrix::Random(3, columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < columns; ++k)
        given.e(i, k) = given.error[size_t(i * columns + k)] = float(given.e(i, k));
    LowRank low = bestLowRank(given.error.data(), rows, columns, given.moments.data(), 5);
    EXPECT_LT(lossOf(given, low, 5, true), 1e-11 * low.total);
  }
}

TEST(LowRank, IsNothingForNoError) {
  std::vector<float> error(12, 0.0f);
  LowRank low = bestLowRank(error.data(), 3, 4, nullptr, 2);
  EXPECT_EQ(low.captured, 0);
  EXPECT_EQ(low.left, std::vector<float>(6, 0.0f));
  EXPECT_EQ(low.right, std::vector<float>(8, 0.0f));
}

TEST(LowRank, ASketchIsAlmostAsGood) {
  Case given = draw(90, 120, 400);
  LowRank exact = bestLowRank(given.error.data(), 90, 120, given.moments.data(), 6),
          sketched =
              bestLowRank(given.error.data(), 90, 120, given.moments.data(), 6, /*mostExact=*/10);
  EXPECT_NEAR(sketched.total, exact.total, 1e-9 * exact.total);
  EXPECT_LE(sketched.captured, exact.captured * (1 + 1e-12));
  EXPECT_GT(sketched.captured, 0.99 * exact.captured);
}

} // namespace
