// SPDX-License-Identifier: Apache-2.0
//
// A draw says how often each window was taken. Means of a draw are weighted sums over windows. Its
// quantiles are found in the one sorted list of all divergences, in which an element counts as
// often as its window: nothing is sorted again.
#include "runtime/Evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace otf::runtime {

namespace {

enum Figure : size_t {
  mean,
  median,
  q99,
  q999,
  sameBest,
  bestInFive,
  referencePerplexity,
  perplexity,
  ratio,
  kFigures
};
constexpr double kQuantiles[] = {0.5, 0.99, 0.999}; // of median, q99, q999
using Values = std::array<double, kFigures>;

/// SplitMix64 (Steele, Lea and Flood): the same numbers on every machine.
class Random {
public:
  /// Below `limit`, from the upper bits of a product.
  unsigned below(unsigned limit) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return unsigned(((unsigned __int128)z * limit) >> 64);
  }

private:
  uint64_t state = 0x6f7466; // any; fixed, so that figures come out the same again
};

} // namespace

double quantile(const std::vector<double> &ascending, double q) {
  const double position = q * double(ascending.size() - 1);
  const size_t below = size_t(position), above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (position - double(below)) * (ascending[above] - ascending[below]);
}

void Evaluation::beginWindow() { windows.emplace_back(); }

void Evaluation::add(const Prediction &prediction) {
  Sums &sums = windows.back();
  sums.count += 1;
  sums.divergence += prediction.divergence;
  sums.referenceLoss += prediction.referenceLoss;
  sums.loss += prediction.loss;
  sums.sameBest += prediction.sameBest;
  sums.bestInFive += prediction.bestInFive;
  divergences.push_back({prediction.divergence, unsigned(windows.size() - 1)});
  logitsSquare += prediction.logitsSquare;
  differenceSquare += prediction.differenceSquare;
}

Figures Evaluation::figures(unsigned resamples) const {
  Figures result;
  result.windows = windows.size();
  result.predictions = divergences.size();
  if (divergences.empty())
    return result;
  std::vector<Divergence> descending = divergences;
  std::sort(descending.begin(), descending.end(),
            [](const Divergence &a, const Divergence &b) { return a.value > b.value; });

  auto compute = [&](const std::vector<unsigned> &taken) {
    Sums sums;
    for (size_t w = 0; w < windows.size(); ++w) {
      const double times = taken[w];
      sums.count += times * windows[w].count;
      sums.divergence += times * windows[w].divergence;
      sums.referenceLoss += times * windows[w].referenceLoss;
      sums.loss += times * windows[w].loss;
      sums.sameBest += times * windows[w].sameBest;
      sums.bestInFive += times * windows[w].bestInFive;
    }
    Values values;
    values[mean] = sums.divergence / sums.count;
    values[sameBest] = sums.sameBest / sums.count;
    values[bestInFive] = sums.bestInFive / sums.count;
    values[referencePerplexity] = std::exp(sums.referenceLoss / sums.count);
    values[perplexity] = std::exp(sums.loss / sums.count);
    values[ratio] = std::exp((sums.loss - sums.referenceLoss) / sums.count);
    // From the largest down: the quantiles that are asked for lie in its first half.
    const size_t count = size_t(sums.count);
    size_t passed = 0, at = 0;
    for (size_t i = std::size(kQuantiles); i-- > 0;) {
      const double position = kQuantiles[i] * double(count - 1);
      const size_t below = size_t(position), above = std::min(below + 1, count - 1);
      auto seek = [&](size_t fromAbove) { // the element with so many before it
        if (fromAbove < passed)           // few elements, whose quantiles have neighbours in common
          passed = at = 0;
        while (passed + taken[descending[at].window] <= fromAbove)
          passed += taken[descending[at++].window];
        return descending[at].value;
      };
      const double upper = seek(count - 1 - above), lower = seek(count - 1 - below);
      values[median + i] = lower + (position - double(below)) * (upper - lower);
    }
    return values;
  };

  std::vector<unsigned> taken(windows.size(), 1);
  const Values values = compute(taken);
  std::array<std::vector<double>, kFigures> drawn;
  if (windows.size() > 1) {
    Random random;
    for (unsigned r = 0; r < resamples; ++r) {
      std::fill(taken.begin(), taken.end(), 0);
      for (size_t w = 0; w < windows.size(); ++w)
        ++taken[random.below(unsigned(windows.size()))];
      const Values again = compute(taken);
      for (size_t f = 0; f < kFigures; ++f)
        drawn[f].push_back(again[f]);
    }
  }
  auto estimate = [&](Figure figure) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> &all = drawn[figure];
    std::sort(all.begin(), all.end());
    return all.empty() ? Estimate{values[figure], nan, nan}
                       : Estimate{values[figure], quantile(all, 0.025), quantile(all, 0.975)};
  };
  result.divergence = estimate(mean);
  result.divergenceMedian = estimate(median);
  result.divergence99 = estimate(q99);
  result.divergence999 = estimate(q999);
  result.sameBest = estimate(sameBest);
  result.bestInFive = estimate(bestInFive);
  result.referencePerplexity = estimate(referencePerplexity);
  result.perplexity = estimate(perplexity);
  result.ratio = estimate(ratio);
  result.logitsError = logitsSquare > 0 ? std::sqrt(differenceSquare / logitsSquare) : 0;
  return result;
}

} // namespace otf::runtime
