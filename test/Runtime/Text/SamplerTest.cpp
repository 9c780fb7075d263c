// SPDX-License-Identifier: Apache-2.0
#include "runtime/Text/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace otf::text {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

int32_t sampleOnce(const SamplerOptions &options, std::vector<float> logits,
                   std::vector<int32_t> history = {}) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler);
  return sampler->sample(logits, history).value_or(-1);
}

/// How often each token comes out of `count` draws.
std::map<int32_t, int> histogram(const SamplerOptions &options,
                                 std::vector<float> logits,
                                 int count = 20000) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler);
  std::map<int32_t, int> counts;
  for (int i = 0; i < count; ++i)
    ++counts[sampler->sample(logits, {}).value_or(-1)];
  return counts;
}

/// Probabilities 0.4, 0.3, 0.2, 0.1 for tokens 1, 3, 0, 2.
const std::vector<float> fourTokens = {std::log(0.2f), std::log(0.4f),
                                       std::log(0.1f), std::log(0.3f)};

TEST(Sampler, GreedyTakesTheLargestAndTheLowerIdOnATie) {
  EXPECT_EQ(sampleOnce({}, {1, 3, 3, 2}), 1);
}

TEST(Sampler, TemperatureOneDrawsWithTheModelsProbabilities) {
  auto counts = histogram({.temperature = 1}, fourTokens);
  const double expected[] = {0.2, 0.4, 0.1, 0.3};
  // Five standard deviations of a binomial count.
  for (int id = 0; id < 4; ++id)
    EXPECT_NEAR(counts[id], 20000 * expected[id],
                5 * std::sqrt(20000 * expected[id] * (1 - expected[id])));
}

TEST(Sampler, TinyTemperatureIsGreedy) {
  EXPECT_EQ(histogram({.temperature = 1e-30f}, fourTokens).size(), 1u);
}

TEST(Sampler, TopKKeepsTheBestK) {
  auto counts = histogram({.temperature = 1, .topK = 2}, fourTokens);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_TRUE(counts.contains(1) && counts.contains(3));
}

TEST(Sampler, TopPKeepsTheFewestThatReachTheSum) {
  EXPECT_EQ(histogram({.temperature = 1, .topP = 0.35f}, fourTokens).size(), 1u);
  EXPECT_EQ(histogram({.temperature = 1, .topP = 0.65f}, fourTokens).size(), 2u);
  EXPECT_EQ(histogram({.temperature = 1, .topP = 0.95f}, fourTokens).size(), 4u);
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  EXPECT_EQ(histogram({.temperature = 1, .minP = 0.45f}, fourTokens).size(), 3u);
  EXPECT_EQ(histogram({.temperature = 1, .minP = 1}, fourTokens).size(), 1u);
}

TEST(Sampler, RepetitionPenaltyLowersBothSigns) {
  SamplerOptions options{.repetitionPenalty = 2};
  EXPECT_EQ(sampleOnce(options, {3, 2}, {0}), 1);
  EXPECT_EQ(sampleOnce(options, {-1, -1.5f}, {0, 0}), 1);
}

TEST(Sampler, NgramGuardBansOnlyTheCompletion) {
  SamplerOptions options{.uniqueNgramLength = 3};
  EXPECT_EQ(sampleOnce(options, {0, 0, 9, 1}, {0, 1, 2, 0, 1}), 3);
  EXPECT_EQ(sampleOnce(options, {0, 0, 9, 1}, {0, 1, 2, 1, 0}), 2);
  // Length 1: every token of the history.
  EXPECT_EQ(sampleOnce({.uniqueNgramLength = 1}, {3, 2, 1}, {0, 1}), 2);
}

TEST(Sampler, GuardedGreedyOutputNeverRepeatsAnNgram) {
  auto sampler = Sampler::create({.uniqueNgramLength = 3});
  std::vector<float> logits = {4, 3, 2, 1, 0};
  std::vector<int32_t> history;
  std::map<std::vector<int32_t>, int> seen;
  // It ends when all five tokens are banned.
  while (auto id = sampler->sample(logits, history)) {
    history.push_back(*id);
    if (history.size() >= 3)
      EXPECT_EQ(++seen[std::vector<int32_t>(history.end() - 3, history.end())], 1);
  }
  // Then the last two tokens have begun five different n-grams.
  EXPECT_GE(history.size(), 7u);
}

TEST(Sampler, SameSeedSameTokens) {
  SamplerOptions options{.temperature = 1, .topP = 0.9f, .seed = 42};
  EXPECT_EQ(histogram(options, fourTokens), histogram(options, fourTokens));
  SamplerOptions other = options;
  other.seed = 43;
  EXPECT_NE(histogram(options, fourTokens), histogram(other, fourTokens));
}

TEST(Sampler, BrokenLogitsGiveNothingOrTheRest) {
  EXPECT_EQ(sampleOnce({.temperature = 1}, {}), -1);
  EXPECT_EQ(sampleOnce({.temperature = 1}, {NAN, -inf}), -1);
  EXPECT_EQ(sampleOnce({.temperature = 1}, {NAN, -inf, -7}), 2);
  EXPECT_EQ(sampleOnce({.temperature = 1}, {0, inf}), 1);
}

TEST(Sampler, HistoryOutsideTheVocabularyIsIgnored) {
  EXPECT_EQ(sampleOnce({.repetitionPenalty = 2, .uniqueNgramLength = 1}, {1, 2},
                       {-5, 99}),
            1);
}

TEST(Sampler, OptionsOutOfRangeAreRefused) {
  EXPECT_FALSE(Sampler::create({.temperature = -1}));
  EXPECT_FALSE(Sampler::create({.temperature = NAN}));
  EXPECT_FALSE(Sampler::create({.topK = -1}));
  EXPECT_FALSE(Sampler::create({.topP = 0}));
  EXPECT_FALSE(Sampler::create({.minP = 2}));
  EXPECT_FALSE(Sampler::create({.repetitionPenalty = 0}));
  EXPECT_FALSE(Sampler::create({.uniqueNgramLength = -1}));
}

} // namespace
} // namespace otf::text
