// SPDX-License-Identifier: Apache-2.0
//
// Rotations against the matrix that their header defines, written out; and what they are for.
#include "Encoding/Rotation.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace otf;

namespace {

const Rotation kRotations[] = {{1, 1, 3},   {2, 1, 0},   {8, 1, 5},  {64, 1, 0},  {1, 3, 0},
                               {1, 9, 2},   {64, 9, 0},  {64, 9, 7}, {4, 12, 0},  {2, 20, 1},
                               {32, 43, 0}, {16, 63, 9}, {1, 2, 0},  {512, 3, 1}, {1024, 1, 6}};

/// Rows of R for one segment that begins at column `first`: entry (i', j'), (i, j) is F[i', i] /
/// sqrt(block) · H[j', j] · ±1, and H[j', j] is −1 to the number of bits that j' and j share
/// (Sylvester).
std::vector<double> matrixOf(const Rotation &r, int64_t first) {
  std::vector<double> f = rotationFactor(r), matrix;
  for (int64_t row = 0; row < r.segment(); ++row)
    for (int64_t column = 0; column < r.segment(); ++column) {
      int64_t k = first + column;
      bool negative = __builtin_popcountll(uint64_t(row % r.block & column % r.block)) % 2;
      negative ^= (rotationSigns(r.seed, uint64_t(k / 32)) >> (k % 32) & 1) != 0;
      double entry = f[size_t(row / r.block * r.factor + column / r.block)];
      matrix.push_back(negative ? -entry : entry);
    }
  return matrix;
}

std::vector<double> row(int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<size_t>(columns));
  for (double &v : x)
    v = float(normal(random));
  return x;
}

} // namespace

TEST(Rotation, IsTheMatrixOfTheDefinition) {
  for (const Rotation &r : kRotations) {
    int64_t columns = 2 * r.segment();
    std::vector<double> x = row(columns, 1), y = x, factor = rotationFactor(r);
    rotateExact(r, factor.data(), columns, y.data());
    for (int64_t first : {int64_t(0), r.segment()}) {
      std::vector<double> matrix = matrixOf(r, first);
      for (int64_t i = 0; i < r.segment(); ++i) {
        double want = 0;
        for (int64_t k = 0; k < r.segment(); ++k)
          want += matrix[size_t(i * r.segment() + k)] * x[size_t(first + k)];
        ASSERT_NEAR(y[size_t(first + i)], want, 1e-12)
            << r.block << " " << r.factor << " " << r.seed;
      }
    }
  }
}

TEST(Rotation, MatricesAreOrthogonal) {
  for (const Rotation &r : kRotations) {
    std::vector<double> f = rotationFactor(r);
    for (int64_t a = 0; a < r.factor; ++a)
      for (int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < r.factor; ++i)
          dot += f[size_t(a * r.factor + i)] * f[size_t(b * r.factor + i)];
        ASSERT_NEAR(dot * double(r.block), a == b, 1e-14) << r.factor;
      }
  }
}

/// The bar of the issue: products of rotated rows as the plan computes them.
TEST(Rotation, ProductsDoNotChange) {
  for (const Rotation &r : kRotations)
    EXPECT_LE(rotationError(r, 3 * r.segment()), kRotationTolerance) << r.block << " " << r.factor;
}

/// That test sees what it must see: a rotation whose factor is off by as little as 4e-6.
TEST(Rotation, TheErrorSeesAWrongLength) {
  Rotation r{64, 9, 1};
  std::vector<float> factor = rotationFactor32(r), x(576, 1.0f);
  for (float &entry : factor)
    entry *= 1 + 4e-6f;
  rotateCanonical(r, factor.data(), 576, x.data());
  double square = 0;
  for (float v : x)
    square += double(v) * v;
  EXPECT_GT(std::abs(square / 576 - 1), kRotationTolerance);
}

TEST(Rotation, FactorsOfPaleyAreHadamard) {
  for (int64_t factor : {4, 8, 12, 20, 24, 44, 60})
    for (double entry : rotationFactor({1, factor, 0}))
      ASSERT_NEAR(std::abs(entry), 1 / std::sqrt(double(factor)), 1e-15) << factor;
}

/// Plans of today are read tomorrow: the numbers are part of the format.
TEST(Rotation, NumbersArePinned) {
  EXPECT_EQ(rotationSigns(0, 5), 0u);
  EXPECT_EQ(rotationNumber(0, 0), 0xe220a8397b1dcdafu); // splitmix64's first of seed 0
  EXPECT_EQ(rotationSigns(1, 0), 0x910a2decu);          // upper half of its first of seed 1
  uint64_t hash = 0;
  for (double entry : rotationFactor({64, 9, 1})) {
    uint64_t bits;
    std::memcpy(&bits, &entry, 8);
    hash = rotationNumber(hash ^ bits, 0);
  }
  EXPECT_EQ(hash, 1525994781638800612u);
}

TEST(Rotation, SpreadsOneLargeColumn) {
  std::vector<double> x(576), factor = rotationFactor({64, 9, 1});
  x[100] = 24;
  rotateExact({64, 9, 1}, factor.data(), 576, x.data());
  for (double v : x)
    EXPECT_LE(std::abs(v), 24 / 8.0 * .8);
}

TEST(Rotation, RefusesWhatItIsNot) {
  EXPECT_EQ(problemOf(Rotation{64, 9, 0}), nullptr);
  EXPECT_EQ(problemOf(Rotation{256, 43, 0}), nullptr);
  for (Rotation wrong : {Rotation{0, 1, 0}, Rotation{-2, 1, 0}, Rotation{3, 1, 0},
                         Rotation{16384, 1, 0}, Rotation{2, 0, 0}, Rotation{2, 64, 0},
                         Rotation{8192, 3, 0}, Rotation{int64_t(1) << 62, 63, 0}})
    EXPECT_NE(problemOf(wrong), nullptr) << wrong.block << " " << wrong.factor;
}
