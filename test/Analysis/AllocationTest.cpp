// SPDX-License-Identifier: Apache-2.0
//
// The choice under a limit is that of trying all of them.
#include "lib/Analysis/Allocation.h"
#include "lib/Analysis/Budget.h"
#include "lib/Analysis/EncodingCost.h"
#include "lib/Analysis/Sensitivities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace otf;

namespace {

using Items = std::vector<std::vector<Choice>>;

Choice sumOf(const Items &items, const std::vector<unsigned> &chosen) {
  Choice sum{0, 0};
  for (size_t i = 0; i < items.size(); ++i)
    sum.weight += items[i][chosen[i]].weight, sum.value += items[i][chosen[i]].value;
  return sum;
}

/// The least value within the limit, of all combinations.
double bruteForce(const Items &items, double limit, size_t item = 0) {
  if (item == items.size())
    return limit >= -1e-9 ? 0 : HUGE_VAL;
  double best = HUGE_VAL;
  for (const Choice &choice : items[item])
    if (choice.weight <= limit)
      best = std::min(best, choice.value + bruteForce(items, limit - choice.weight, item + 1));
  return best;
}

/// Weights of 1 to 8 bits, whose errors cost very differently.
Items draw(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1.5);
  Items items(count);
  for (std::vector<Choice> &choices : items) {
    double size = double(1 + random() % 9), cost = std::exp(normal(random));
    for (int bits = 1; bits <= 6; ++bits)
      choices.push_back(
          {size * bits, cost * size * std::pow(0.25, bits) * (1 + 0.1 * double(random() % 10))});
  }
  return items;
}

TEST(Allocation, IsThatOfBruteForce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Items items = draw(8, seed);
    double least = 0;
    for (const auto &choices : items)
      least += choices.front().weight;
    double limit = least * (1 + 5 * (seed % 10) / 10.0);
    auto chosen = allocate(items, limit);
    ASSERT_TRUE(chosen);
    EXPECT_LE(sumOf(items, *chosen).weight, limit * (1 + 1e-12));
    EXPECT_NEAR(sumOf(items, *chosen).value, bruteForce(items, limit), 1e-12);
  }
}

TEST(Allocation, IsNeverWorseThanOneChoiceForAll) {
  Items items = draw(300, 7);
  for (unsigned choice = 0; choice < 6; ++choice) {
    Choice alike = sumOf(items, std::vector<unsigned>(items.size(), choice));
    auto chosen = allocate(items, alike.weight);
    ASSERT_TRUE(chosen);
    EXPECT_LE(sumOf(items, *chosen).value, alike.value * (1 + 1e-12));
  }
}

TEST(Allocation, NothingFitsBelowTheLightest) {
  Items items{{{2, 1}, {3, 0}}, {{1, 5}}};
  EXPECT_FALSE(allocate(items, 2.9));
  EXPECT_EQ(*allocate(items, 3), (std::vector<unsigned>{0, 0}));
  EXPECT_EQ(*allocate(items, 4), (std::vector<unsigned>{1, 0}));
  EXPECT_EQ(allocate({}, 0)->size(), 0u);
}

TEST(Budget, IsRead) {
  EXPECT_EQ(llvm::cantFail(parseBudget("2.5bpw")).value, 2.5);
  EXPECT_EQ(llvm::cantFail(parseBudget("1.2GB")).value, 1.2e9);
  EXPECT_EQ(llvm::cantFail(parseBudget("3MiB")).value, 3.0 * (1 << 20));
  EXPECT_EQ(llvm::cantFail(parseBudget("kl=0.05")).kind, Budget::Kind::loss);
  for (const char *wrong : {"", "2.5", "bpw", "-1bpw", "0bpw", "infbpw", "0x2bpw", "kl=", "kl=nan",
                            "2 GB", "1e999GB", "2.5bpwx"}) {
    llvm::Expected<Budget> parsed = parseBudget(wrong);
    EXPECT_FALSE(bool(parsed)) << wrong;
    llvm::consumeError(parsed.takeError());
  }
}

// lib/Encoding's numbers: 2 is int8, 3 int4 (a change there is a change of plans).
TEST(EncodingCost, KnowsWhatCodesLose) {
  EXPECT_EQ(gaussianDistortion(0, 0), 0);
  EXPECT_GT(gaussianDistortion(2, 32), 0);
  EXPECT_NEAR(gaussianDistortion(3, 32), 0.0094,
              0.0002); // RTN4 in groups of 32, measured over a 4096² normal matrix
  EXPECT_NEAR(gaussianDistortion(3, 128), 0.01377, 0.0003);
  EXPECT_EQ(storedBytes(3, 32, 8, 32, 0), 8u * 32 / 2 + 8 * 2);
  EXPECT_EQ(storedBytes(3, 31, 8, 32, 0), 0u);
}

TEST(Sensitivities, ForetellWhatWasMeasured) {
  Sensitivities known;
  known.noise = 0.02;
  known.weights = {{"a", 0.1}, {"b", 0.3}};
  EXPECT_EQ(known.foretell(0.2), 0.2); // nothing is known of both together
  known.together = {{0.01, 0.2}, {0.04, 1.6}};
  EXPECT_NEAR(known.foretell(0.2), 0.2, 1e-12);
  EXPECT_NEAR(known.foretell(0.1), 0.1, 1e-12); // proportional below
  EXPECT_NEAR(known.foretell(0.8), 1.6, 1e-12);
  EXPECT_NEAR(known.foretell(0.4), std::sqrt(0.2 * 1.6), 1e-12);
  EXPECT_NEAR(known.foretell(1.6), 3.2, 1e-12);
  double before = 0;
  for (double sum = 0.01; sum < 3; sum *= 1.1) {
    EXPECT_GT(known.foretell(sum), before);
    before = known.foretell(sum);
  }
}

} // namespace
