// SPDX-License-Identifier: Apache-2.0
#include "passes/Decide/GridRange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

using namespace otf;

namespace {

struct Sample {
  std::vector<float> values;
  std::vector<int64_t> histogram = std::vector<int64_t>(4096);
  double least = 0, largest = 0;

  void add(float value) {
    values.push_back(value);
    ++histogram[value == 0 ? 0 : std::bit_cast<uint32_t>(value) >> 20];
    least = std::min(least, double(value));
    largest = std::max(largest, double(value));
  }
  Grid choose() const { return chooseGrid(histogram, least, largest); }
  double error(Grid grid) const {
    double sum = 0;
    for (float value : values) {
      double q = std::clamp(std::rint(double(value) / double(grid.scale)) + double(grid.zero), -128.0, 127.0);
      double difference = (q - double(grid.zero)) * double(grid.scale) - double(value);
      sum += difference * difference;
    }
    return sum;
  }
};

double top(Grid grid) { return (127 - double(grid.zero)) * double(grid.scale); }

} // namespace

TEST(GridRange, NothingSeenIsAGrid) {
  Sample sample;
  EXPECT_EQ(sample.choose().scale, 1);
  sample.add(0);
  EXPECT_EQ(sample.choose().scale, 1);
}

TEST(GridRange, ReluOutputsGetAllCodes) {
  Sample sample;
  for (int i = 0; i <= 6000; ++i)
    sample.add(float(i) / 1000);
  EXPECT_EQ(sample.choose().zero, -128);
  EXPECT_NEAR(top(sample.choose()), 6, 0.3);
}

TEST(GridRange, NegativeValuesGetAllCodes) {
  Sample sample;
  for (int i = 0; i <= 6000; ++i)
    sample.add(-float(i) / 1000);
  EXPECT_EQ(sample.choose().zero, 127);
}

TEST(GridRange, OneFarValueIsClipped) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Sample sample;
  for (int i = 0; i < 2000000; ++i)
    sample.add(normal(random));
  sample.add(20);
  Grid whole{float((20 - sample.least) / 255), std::rint(-128 - float(sample.least) / float((20 - sample.least) / 255))};
  // 8 (20 − c)² + n ((c + 5) / 255)² / 12 is least near c = 14, where the error is .6 of what it is at 20.
  EXPECT_LT(sample.error(sample.choose()), 0.65 * sample.error(whole));
}

TEST(GridRange, NeverWorseThanTheWholeRange) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float tail : {0.0f, 0.5f, 1.0f, 2.0f}) {
    Sample sample;
    for (int i = 0; i < 50000; ++i)
      sample.add(normal(random) * std::exp(tail * normal(random)));
    double scale = (sample.largest - sample.least) / 255;
    Grid whole{float(scale), float(std::clamp(std::rint(-128 - sample.least / scale), -128.0, 127.0))};
    EXPECT_LT(sample.error(sample.choose()), 1.01 * sample.error(whole)) << tail;
  }
}
