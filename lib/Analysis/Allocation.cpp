// SPDX-License-Identifier: Apache-2.0
#include "lib/Analysis/Allocation.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

namespace otf {

namespace {

/// Choices of the items before some item.
struct Partial {
  double weight, value;
  uint32_t before; // index in the front of the item before
  uint32_t choice;
};

using Items = llvm::ArrayRef<std::vector<Choice>>;

struct Sums {
  double weight = 0, value = 0;
};

/// What each item does where a unit of weight costs `price`. At equal cost the lighter choice.
Sums relaxed(Items items, double price, std::vector<unsigned> *chosen = nullptr) {
  Sums sums;
  for (const std::vector<Choice> &choices : items) {
    auto cost = [&](const Choice &c) { return c.value + price * c.weight; };
    const Choice *best = &choices.front();
    for (const Choice &c : choices)
      if (cost(c) < cost(*best) || (cost(c) == cost(*best) && c.weight < best->weight))
        best = &c;
    sums.weight += best->weight;
    sums.value += best->value;
    if (chosen)
      chosen->push_back(unsigned(best - choices.data()));
  }
  return sums;
}

/// The least price at which the relaxation keeps the limit, to a part in 2^50.
double fairPrice(Items items, double limit) {
  if (relaxed(items, 0).weight <= limit)
    return 0;
  double low = 0, high = 1e-12;
  while (relaxed(items, high).weight > limit)
    low = high, high *= 16;
  for (int step = 0; step < 200 && high - low > high * 0x1p-50; ++step) {
    double middle = low + (high - low) / 2;
    (relaxed(items, middle).weight > limit ? low : high) = middle;
  }
  return high;
}

/// What is left of the limit, spent on the exchanges that gain most for a unit of weight, while one
/// fits.
Sums spend(Items items, double limit, std::vector<unsigned> &chosen, Sums sums) {
  for (;;) {
    double best = 0;
    size_t item = 0;
    unsigned to = 0;
    for (size_t i = 0; i < items.size(); ++i)
      for (unsigned c = 0; c < items[i].size(); ++c) {
        const Choice &from = items[i][chosen[i]], &candidate = items[i][c];
        double gain = from.value - candidate.value, more = candidate.weight - from.weight;
        if (gain <= 0 || sums.weight + more > limit)
          continue;
        double rate = more <= 0 ? HUGE_VAL : gain / more;
        if (rate > best)
          best = rate, item = i, to = c;
      }
    if (best == 0)
      return sums;
    sums.weight += items[item][to].weight - items[item][chosen[item]].weight;
    sums.value += items[item][to].value - items[item][chosen[item]].value;
    chosen[item] = to;
  }
}

} // namespace

std::optional<std::vector<unsigned>> allocate(Items items, double limit) {
  double least = 0;
  for (const std::vector<Choice> &choices : items)
    least += std::min_element(choices.begin(), choices.end(), [](auto &a, auto &b) {
               return a.weight < b.weight;
             })->weight;
  if (least > limit)
    return std::nullopt;

  // Sums are formed in another order below, so a little is allowed for their rounding.
  double price = fairPrice(items, limit);
  std::vector<unsigned> greedy;
  Sums start = relaxed(items, price, &greedy);
  double most = spend(items, limit, greedy, start).value;
  most += std::abs(most) * 1e-12;

  // bound[i]: the least that items from i on add to value + price · weight.
  std::vector<double> bound(items.size() + 1, 0), lightest(items.size() + 1, 0);
  for (size_t i = items.size(); i-- > 0;) {
    Sums one = relaxed(items.slice(i, 1), price);
    bound[i] = bound[i + 1] + one.value + price * one.weight;
    lightest[i] = lightest[i + 1] + relaxed(items.slice(i, 1), 1e300).weight;
  }
  std::vector<std::vector<Partial>> fronts(1, {{0, 0, 0, 0}});
  for (size_t i = 0; i < items.size(); ++i) {
    std::vector<Partial> grown;
    for (auto [index, partial] : llvm::enumerate(fronts.back()))
      for (auto [c, choice] : llvm::enumerate(items[i])) {
        Partial next{partial.weight + choice.weight, partial.value + choice.value, uint32_t(index),
                     uint32_t(c)};
        double room = limit - next.weight;
        if (room >= lightest[i + 1] && next.value + bound[i + 1] - price * room <= most)
          grown.push_back(next);
      }
    llvm::sort(grown, [](const Partial &a, const Partial &b) {
      return std::tie(a.weight, a.value, a.before, a.choice) < std::tie(b.weight, b.value, b.before, b.choice);
    });
    std::vector<Partial> front;
    for (const Partial &p : grown)
      if (front.empty() || p.value < front.back().value)
        front.push_back(p);
    fronts.push_back(std::move(front));
  }
  // Rounding may cut the last front off where the limit is met exactly.
  if (fronts.back().empty())
    return greedy;
  std::vector<unsigned> chosen(items.size());
  size_t at = fronts.back().size() - 1;
  for (size_t i = items.size(); i-- > 0;) {
    const Partial &partial = fronts[i + 1][at];
    chosen[i] = partial.choice;
    at = partial.before;
  }
  return chosen;
}

} // namespace otf
