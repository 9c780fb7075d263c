// SPDX-License-Identifier: Apache-2.0
//
// The search that weighs a block's errors together: against the exact one where that is exact, and
// against all there is where that can be counted.
#include "Encoding/Survivors.h"
#include "Encoding/Planes.h"
#include "Encoding/Trellis.h"

#include <Eigen/LU>

#include <gtest/gtest.h>
#include <random>

using namespace otf;

namespace {

using Matrix = Eigen::Matrix<double, 32, 32>;
using Vector = Eigen::Matrix<double, 1, 32>;

/// A Hessian of which the direction that all inputs share holds `shared` of the trace.
Matrix sharing(double shared, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> one;
  Vector direction = Vector::NullaryExpr([&] { return one(random); });
  direction.normalize();
  return (1 - shared) * Matrix::Identity() + shared * 32 * direction.transpose() * direction;
}

Vector errorsOf(const PlanesCode &code, const float *wanted, const uint32_t *words) {
  return Vector::NullaryExpr(
      [&](Eigen::Index i) { return wanted[i] - planesSum(code, words, 1, int(i)); });
}

void draw(std::mt19937 &random, const PlanesCode &code, float *wanted) {
  std::normal_distribution<float> one;
  for (int i = 0; i < 32; ++i)
    wanted[i] = one(random) / float(code.step) + float(code.offset);
}

} // namespace

TEST(BlockForm, CostsAndSolves) {
  for (int count : {1, 7, 31, 32}) {
    Matrix all = sharing(.7, 3);
    Eigen::MatrixXd form = 5 * all.topLeftCorner(count, count);
    BlockForm block(form.data(), count);
    float errors[32] = {};
    for (int i = 0; i < 32; ++i)
      errors[i] = float(i * 5 % 9) - 4; // those past the count are nothing
    Eigen::RowVectorXd e(count);
    for (int i = 0; i < count; ++i)
      e[i] = errors[i];
    EXPECT_NEAR(block.cost(errors), e.dot(e * form) / (form.trace() / count),
                1e-4 * e.squaredNorm());
    float y[32] = {};
    for (int i = 0; i < count; ++i)
      y[i] = float((e * form)[i]);
    block.solve(y);
    for (int i = 0; i < 32; ++i)
      EXPECT_NEAR(y[i], i < count ? errors[i] : 0, 1e-4) << count;
  }
}

// Errors that are weighed apart: a search of all starts is the best there is, and one from one
// place is a little behind it.
TEST(Survivors, NearlyExactOnADiagonal) {
  std::mt19937 random(1);
  for (EncodingKind kind : {EncodingKind::Planes3x1, EncodingKind::Planes3x2,
                            EncodingKind::Planes4x2, EncodingKind::Planes3x3}) {
    SurvivorEncoder encoder(kind);
    const PlanesCode &code = planesCode(kind);
    Eigen::VectorXd diagonal = Eigen::VectorXd::LinSpaced(32, 1, 3);
    Matrix form = diagonal.asDiagonal();
    BlockForm block(form.data(), 32);
    double found = 0, best = 0;
    for (int trial = 0; trial < 100; ++trial) {
      float wanted[32], targets[32], weights[32];
      draw(random, code, wanted);
      for (int i = 0; i < 32; ++i) {
        targets[i] = wanted[i] - float(code.offset);
        weights[i] = float(diagonal[i]);
      }
      uint32_t words[4], exact[4];
      float said = encoder.search(block, wanted, words);
      Vector e = errorsOf(code, wanted, words);
      double cost = e.dot(e * form);
      EXPECT_NEAR(said * form.trace() / 32, cost, 1e-4 * cost);
      found += cost;
      double least = searchTrellis(kind, targets, 1, weights, exact);
      EXPECT_GE(cost, least * (1 - 1e-5));
      best += least;
    }
    EXPECT_LT(found, 1.04 * best) << "kind " << int(kind);
  }
}

// A direction that holds nine tenths of the form: its error can be made nearly nothing, which
// leaves the tenth and what the last columns, whose bits are the first ones', cannot make up. A
// search by the diagonal does not see it.
TEST(Survivors, CancelSharedErrors) {
  std::mt19937 random(2);
  for (EncodingKind kind :
       {EncodingKind::Planes3x2, EncodingKind::Planes3x3, EncodingKind::Planes3x4}) {
    SurvivorEncoder encoder(kind);
    const PlanesCode &code = planesCode(kind);
    Matrix form = sharing(.9, 7);
    BlockForm block(form.data(), 32);
    double together = 0, apart = 0, again = 0;
    for (int trial = 0; trial < 50; ++trial) {
      float wanted[32], targets[32], weights[32], scale = 1;
      draw(random, code, wanted);
      for (int i = 0; i < 32; ++i) {
        targets[i] = wanted[i] - float(code.offset);
        weights[i] = float(form(i, i));
      }
      uint32_t words[4];
      TrellisBlocks one;
      one.count = 1;
      one.targets = targets;
      one.scales = &scale;
      one.weights = weights;
      one.words = words;
      TrellisEncoder(kind).encode(one);
      Vector e = errorsOf(code, wanted, words);
      apart += e.dot(e * form);
      float improved = encoder.improve(block, wanted, words);
      e = errorsOf(code, wanted, words);
      EXPECT_NEAR(improved * form.trace() / 32, e.dot(e * form), 1e-3 * e.dot(e * form));
      again += e.dot(e * form);
      encoder.search(block, wanted, words);
      e = errorsOf(code, wanted, words);
      together += e.dot(e * form);
    }
    EXPECT_LT(together, .28 * apart) << "kind " << int(kind);
    EXPECT_LT(again, .28 * apart) << "kind " << int(kind);
  }
}

TEST(Survivors, LevelsAgree) {
  if (SurvivorEncoder::best() == SurvivorEncoder::Level::Baseline)
    GTEST_SKIP() << "one level here";
  std::mt19937 random(4);
  for (int k = int(EncodingKind::Planes3x1); k <= int(EncodingKind::Planes4x3); ++k) {
    SurvivorEncoder fast(EncodingKind(k), SurvivorEncoder::Level::Avx2),
        plain(EncodingKind(k), SurvivorEncoder::Level::Baseline);
    for (int trial = 0; trial < 10; ++trial) {
      Matrix form = sharing(.1 * trial, unsigned(trial));
      BlockForm block(form.data(), 32);
      float wanted[32];
      draw(random, planesCode(EncodingKind(k)), wanted);
      wanted[trial] *= trial == 3 ? 1e6f : 1;
      uint32_t a[4] = {}, b[4] = {};
      EXPECT_EQ(fast.search(block, wanted, a), plain.search(block, wanted, b));
      EXPECT_TRUE(std::equal(a, a + 4, b)) << "kind " << k;
    }
  }
}
