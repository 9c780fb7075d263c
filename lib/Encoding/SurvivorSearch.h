// SPDX-License-Identifier: Apache-2.0
//
// The search of Survivors.h, one block at a time: lanes are the states that share their
// predecessors, and the columns to come. It is included by one file a level of instructions, into a
// namespace of that file's own. Floats are not contracted and each sum has one order, so levels
// agree.
//
// Digit i is the k bits at position i, one of each word. A state is w−1 digits, those from the last
// column taken on; taking column i puts digit i in front and drops the last.
#include "Encoding/Planes.h"
#include "Encoding/PlanesKinds.h"
#include "Encoding/SurvivorEngine.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace otf;

constexpr int kColumns = BlockForm::kColumns;
constexpr float kNever = 1e30f;

constexpr int power(int base, int exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

template <EncodingKind kind> class Survivors final : public SurvivorEncoder::Engine {
  static constexpr const PlanesCode &code = planesCode(kind);
  static constexpr int kDigits = 1 << code.planes;
  static constexpr int kStates = power(kDigits, code.window - 1);
  static constexpr int kHigh = kStates / kDigits; ///< what the oldest digit of a state counts

  typedef float Digits __attribute__((vector_size(4 * kDigits)));
  typedef int32_t Choices __attribute__((vector_size(4 * kDigits)));
  typedef float Columns __attribute__((vector_size(32)));

  /// sum[h][d][f]: of the state h · kDigits + f after a column that dropped the digit d.
  struct Sums {
    float sum[kHigh][kDigits][kDigits] = {};
    constexpr Sums() {
      for (int s = 0; s < kStates; ++s)
        for (int d = 0; d < kDigits; ++d) {
          int total = 0;
          for (int p = 0; p < code.planes; ++p) {
            int window = 0;
            for (int j = 0, rest = s + d * kStates; j < code.window; ++j, rest /= kDigits)
              window |= (rest % kDigits >> p & 1) << j;
            total += code.table[p][window];
          }
          sum[s / kDigits][d][s % kDigits] = float(total);
        }
    }
  };
  static constexpr Sums sums{};

  alignas(32) float asked[2][kStates]
                         [kColumns]; ///< of the places to come, by the survivor of each state
  alignas(32) float cost[2][kStates];
  uint8_t dropped[kColumns][kStates];
  uint8_t walk[kColumns]; ///< digits
  float least;

  /// Takes all columns, with cost[0] as it is. Costs end in cost[0] too.
  void forward(const BlockForm &form, const float *wanted, int cut) {
    const BlockForm::Order &order = form.order(cut);
    for (auto &of : asked[0])
      std::memset(of, 0, sizeof of);
    for (int n = 0; n < kColumns; ++n) {
      const auto &before = asked[n & 1];
      auto &after = asked[~n & 1];
      const float *costBefore = cost[n & 1];
      float *costAfter = cost[~n & 1];
      float want = wanted[BlockForm::columnAt(cut, n)], variance = order.variance[n];
      constexpr int lanes = 8;
      int first = (n + 1) / lanes; // of those that are still asked
      for (int h = 0; h < kHigh; ++h) {
        Digits best, chosen;
        Choices digit{};
        for (int d = 0; d < kDigits; ++d) {
          int p = h + kHigh * d;
          Digits sum;
          std::memcpy(&sum, sums.sum[h][d], sizeof sum);
          Digits bracket = want + before[p][n] - sum;
          Digits total = costBefore[p] + variance * bracket * bracket;
          if (d == 0) {
            best = total;
            chosen = sum;
            continue;
          }
          Choices better = total < best;
          best = better ? total : best;
          chosen = better ? sum : chosen;
          digit = better ? Choices{} + d : digit;
        }
        std::memcpy(costAfter + h * kDigits, &best, sizeof best);
        for (int f = 0; f < kDigits; ++f) {
          int s = h * kDigits + f, d = digit[f];
          dropped[n][s] = uint8_t(d);
          float error = want - chosen[f];
          const auto *from = reinterpret_cast<const Columns *>(before[h + kHigh * d]);
          const auto *factor = reinterpret_cast<const Columns *>(order.factor[n]);
          auto *to = reinterpret_cast<Columns *>(after[s]);
          for (int m = first; m < kColumns / lanes; ++m)
            to[m] = from[m] + error * factor[m];
        }
      }
    }
  }

  /// Digits of the last `places` columns that led to `state`; returns the state before them.
  int backward(int cut, int state, int places) {
    for (int n = kColumns - 1; n >= kColumns - places; --n) {
      walk[BlockForm::columnAt(cut, n)] = uint8_t(state % kDigits);
      state = state / kDigits + kHigh * dropped[n][state];
    }
    return state;
  }

  int stateAt(int column) const {
    int s = 0;
    for (int j = code.window - 2; j >= 0; --j)
      s = s * kDigits + walk[(column + j) & (kColumns - 1)];
    return s;
  }

  /// The state opposite to the cut of the best walk that need not close.
  int open(const BlockForm &form, const float *wanted, int cut) {
    std::fill_n(cost[0], kStates, 0.0f);
    forward(form, wanted, cut);
    return backward(cut, int(std::min_element(cost[0], cost[0] + kStates) - cost[0]), kColumns / 2);
  }

  /// A walk that is in `state` at the cut; kept if it is the best so far.
  void closed(const BlockForm &form, const float *wanted, int cut, int state, uint32_t *words) {
    std::fill_n(cost[0], kStates, kNever);
    cost[0][state] = 0;
    forward(form, wanted, cut);
    backward(cut, state, kColumns);
    if (!(cost[0][state] < least))
      return;
    least = cost[0][state];
    std::fill_n(words, code.planes, 0u);
    for (int i = 0; i < kColumns; ++i)
      for (int p = 0; p < code.planes; ++p)
        words[p] |= uint32_t(walk[i] >> p & 1) << i;
  }

public:
  float search(const BlockForm &form, const float *wanted, uint32_t *words) override {
    least = 2 * kNever;
    closed(form, wanted, 0, open(form, wanted, 16), words);
    closed(form, wanted, 16, stateAt(16), words);
    return least;
  }

  float improve(const BlockForm &form, const float *wanted, uint32_t *words) override {
    least = 2 * kNever;
    for (int i = 0; i < kColumns; ++i) {
      walk[i] = 0;
      for (int p = 0; p < code.planes; ++p)
        walk[i] |= uint8_t((words[p] >> i & 1) << p);
    }
    closed(form, wanted, 0, stateAt(0), words);
    closed(form, wanted, 16, stateAt(16), words);
    return least;
  }
};

std::unique_ptr<SurvivorEncoder::Engine> makeSearch(EncodingKind kind) {
  return makeForPlanes<Survivors, SurvivorEncoder::Engine>(kind);
}

} // namespace
