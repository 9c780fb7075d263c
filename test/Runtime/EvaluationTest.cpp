// SPDX-License-Identifier: Apache-2.0
//
// What eval prints, from numbers whose answers are known. No model and no device.
#include "runtime/Evaluation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

using namespace otf::runtime;

namespace {

/// log of probabilities, with a constant added that a softmax takes away.
std::vector<float> logitsOf(std::vector<double> probabilities, double constant = 0) {
  std::vector<float> logits;
  for (double p : probabilities)
    logits.push_back(float(std::log(p) + constant));
  return logits;
}

Prediction compare(const std::vector<float> &reference, const std::vector<float> &plan,
                   int32_t next = 0) {
  std::optional<Prediction> result = comparePredictions(reference, plan, next);
  EXPECT_TRUE(result);
  return result.value_or(Prediction{});
}

Prediction withDivergence(double divergence, double loss = 0, double referenceLoss = 0) {
  Prediction prediction;
  prediction.divergence = divergence;
  prediction.loss = loss;
  prediction.referenceLoss = referenceLoss;
  return prediction;
}

} // namespace

TEST(Divergence, OfTwoDistributionsIsThatOnPaper) {
  // .5 log(.5/.25) + .5 log(.5/.75)
  Prediction p = compare(logitsOf({0.5, 0.5}), logitsOf({0.25, 0.75}), 1);
  EXPECT_NEAR(p.divergence, 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
  EXPECT_NEAR(p.referenceLoss, std::log(2.0), 1e-6);
  EXPECT_NEAR(p.loss, -std::log(0.75), 1e-6);
}

TEST(Divergence, OfEqualLogitsIsExactlyZero) {
  std::vector<float> logits(50000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float(std::sin(double(i)) * 20);
  Prediction p = compare(logits, logits, 7);
  EXPECT_EQ(p.divergence, 0);
  EXPECT_EQ(p.loss, p.referenceLoss);
  EXPECT_EQ(p.differenceSquare, 0);
  EXPECT_TRUE(p.sameBest);
  EXPECT_TRUE(p.bestInFive);
}

TEST(Divergence, SeesNoConstantOffset) {
  Prediction p = compare(logitsOf({0.2, 0.3, 0.5}), logitsOf({0.2, 0.3, 0.5}, 80));
  EXPECT_NEAR(p.divergence, 0, 2e-5); // of logits near 80, f32 keeps 8e-6
  EXPECT_NEAR(p.differenceSquare, 0, 1e-9);
  EXPECT_GT(p.logitsSquare, 0.1);
}

TEST(Divergence, OfLogitsThatAreFarApartDoesNotOverflow) {
  Prediction p = compare({1000, 0, -1000}, {-1000, 0, 1000}, 0);
  EXPECT_NEAR(p.divergence, 2000, 1e-9);
  EXPECT_NEAR(p.loss, 2000, 1e-9);
}

TEST(Divergence, RefusesWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> good = {1, 2, 3};
  for (float bad : {nan, infinity, -infinity}) {
    std::vector<float> logits = {1, bad, 3};
    EXPECT_FALSE(comparePredictions(good, logits, 0));
    EXPECT_FALSE(comparePredictions(logits, good, 0));
  }
}

TEST(Divergence, OrdersEqualLogitsByToken) {
  EXPECT_TRUE(compare({1, 1, 0}, {2, 2, 0}).sameBest);
  EXPECT_FALSE(compare({0, 1, 1}, {1, 1, 1}).sameBest); // the reference's best is 1, the plan's 0
}

TEST(Divergence, TheReferencesBestIsLookedForInThePlansFive) {
  const std::vector<float> reference = {0, 0, 0, 0, 0, 9, 0};
  EXPECT_TRUE(compare(reference, {9, 8, 7, 6, 1, 5, 2}).bestInFive);
  EXPECT_FALSE(compare(reference, {9, 8, 7, 6, 6, 5, 2}).bestInFive);
  EXPECT_FALSE(compare(reference, {5, 5, 5, 5, 5, 5, 5}).bestInFive); // five tokens come before it
}

TEST(Quantile, LiesBetweenNeighboursLinearly) {
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3, 4}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

TEST(Evaluation, GivesMeansQuantilesAndTheRatio) {
  Evaluation e;
  e.beginWindow();
  for (int i = 1; i <= 100; ++i) // in no order
    e.add(withDivergence(double(i * 37 % 101), 2 + std::log(3.0), 2));
  Figures f = e.figures();
  EXPECT_EQ(f.windows, 1u);
  EXPECT_EQ(f.predictions, 100u);
  EXPECT_DOUBLE_EQ(f.divergence.value, 50.5);
  EXPECT_DOUBLE_EQ(f.divergenceMedian.value, 50.5);
  EXPECT_NEAR(f.divergence99.value, 99.01, 1e-12); // as numpy.quantile
  EXPECT_NEAR(f.divergence999.value, 99.901, 1e-12);
  EXPECT_NEAR(f.referencePerplexity.value, std::exp(2.0), 1e-12);
  EXPECT_NEAR(f.ratio.value, 3, 1e-12);
  EXPECT_TRUE(std::isnan(f.divergence.low)); // one window tells nothing of another
}

TEST(Evaluation, QuantilesOfAFewShareNeighbours) {
  Evaluation e;
  e.beginWindow();
  for (double value : {3.0, 1.0, 2.0})
    e.add(withDivergence(value));
  Figures f = e.figures();
  EXPECT_DOUBLE_EQ(f.divergenceMedian.value, 2);
  EXPECT_NEAR(f.divergence99.value, 2.98, 1e-12);
  EXPECT_NEAR(f.divergence999.value, 2.998, 1e-12);
}

TEST(Bootstrap, OfEqualWindowsHasNoWidth) {
  Evaluation e;
  for (int w = 0; w < 5; ++w) {
    e.beginWindow();
    for (double value : {1.0, 2.0, 3.0})
      e.add(withDivergence(value, 1, 1));
  }
  Figures f = e.figures();
  EXPECT_DOUBLE_EQ(f.divergence.low, 2);
  EXPECT_DOUBLE_EQ(f.divergence.high, 2);
  EXPECT_DOUBLE_EQ(f.ratio.low, 1);
}

TEST(Bootstrap, IsPaired) {
  // Windows differ a lot, and the plan is worse by the same factor in each.
  Evaluation e;
  for (int w = 0; w < 20; ++w) {
    e.beginWindow();
    e.add(withDivergence(0, w + 0.1, w));
  }
  Figures f = e.figures();
  EXPECT_GT(f.perplexity.high / f.perplexity.low, 5);
  EXPECT_NEAR(f.ratio.low, std::exp(0.1), 1e-9);
  EXPECT_NEAR(f.ratio.high, std::exp(0.1), 1e-9);
}

TEST(Bootstrap, OfAMeanIsNormalTheory) {
  // Windows 0 ... 99 once each: the mean of a draw has the standard deviation s/sqrt(n), with
  // s^2 = (n^2 - 1)/12.
  Evaluation e;
  const int n = 100;
  for (int w = 0; w < n; ++w) {
    e.beginWindow();
    e.add(withDivergence(w));
  }
  Figures f = e.figures();
  const double deviation = std::sqrt((n * n - 1) / 12.0 / n);
  EXPECT_NEAR(f.divergence.low, 49.5 - 1.96 * deviation, 0.2);
  EXPECT_NEAR(f.divergence.high, 49.5 + 1.96 * deviation, 0.2);
}

TEST(Bootstrap, QuantilesAreThoseOfTheDrawnValues) {
  // Of two windows, a draw is (0,0), (0,1) or (1,1) with chances 1/4, 1/2, 1/4: its median, q99 and
  // q999 all lie between those of the windows, and both ends are drawn often.
  Evaluation e;
  for (double offset : {0.0, 100.0}) {
    e.beginWindow();
    for (int i = 0; i <= 10; ++i)
      e.add(withDivergence(offset + i));
  }
  Figures f = e.figures();
  EXPECT_DOUBLE_EQ(f.divergenceMedian.value, 55); // between 10 and 100
  EXPECT_DOUBLE_EQ(f.divergenceMedian.low, 5);
  EXPECT_DOUBLE_EQ(f.divergenceMedian.high, 105);
  EXPECT_NEAR(f.divergence99.low, 10, 1e-12); // of 22 values 0, 0, 1, 1 ... 10, 10
  EXPECT_NEAR(f.divergence999.high, 110, 1e-12);
}

TEST(Bootstrap, ComesOutTheSameAgain) {
  Evaluation e;
  for (int w = 0; w < 7; ++w) {
    e.beginWindow();
    e.add(withDivergence(w * w, w, 1));
  }
  Figures a = e.figures(), b = e.figures();
  EXPECT_EQ(a.divergence.low, b.divergence.low);
  EXPECT_EQ(a.perplexity.high, b.perplexity.high);
  EXPECT_LT(a.divergence.low, a.divergence.value);
  EXPECT_GT(a.divergence.high, a.divergence.value);
}
