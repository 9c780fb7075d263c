// SPDX-License-Identifier: Apache-2.0
//
// The search of Trellis.h, sixteen blocks at a time, one a lane of 16-bit costs. It is included by one file a level of instructions,
// into a namespace of that file's own, and so compiled for each.
//
// Positions are taken downwards from a cut of the circle, 32 of them. Digit i is the k bits at position i, one of each word. A state
// is w−1 digits, those from the last position taken on; taking position i puts digit i in front and drops the last, and costs
// weight · ((t − v)² − the least of that) for the value v of the w digits. Costs saturate; a block whose best walk does is searched
// again with coarser units. History is kept as costs: a walk is found backwards by looking which predecessor gives the least.
#include "Encoding/Planes.h"
#include "Encoding/PlanesKinds.h"
#include "Encoding/TrellisEngine.h"

#include <algorithm>
#include <cstring>

namespace {

using namespace otf;

constexpr int kLanes = 16, kColumns = 32;
typedef uint16_t Costs __attribute__((vector_size(2 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));

constexpr uint16_t kNever = 65535;
/// What a block that costs what a Gaussian one does costs in units, so that rounding is no matter and eight such are no overflow.
constexpr float kTypical = 8192, kMost = 60000;
constexpr int kAttempts = 8; ///< each with units sixteen times as coarse

constexpr int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

template <EncodingKind kind> class Narrow;

template <EncodingKind kind> class Search final : public TrellisEncoder::Engine {
  friend class Narrow<kind>;
  static constexpr const PlanesCode &code = planesCode(kind);
  static constexpr int kDigits = 1 << code.planes;
  static constexpr int kStates = power(kDigits, code.window - 1);
  static constexpr int kHigh = kStates / kDigits; ///< what the oldest digit of a state counts
  static constexpr bool kExact = kStates * kStates * kDigits <= 1 << 14;

  /// value[s · kDigits + d]: the sum where s is the state after a position and d the digit that it dropped.
  struct Values {
    uint8_t sum[kStates * kDigits] = {};
    uint8_t row[kStates * kDigits] = {}; ///< place of the sum among those that occur
    uint8_t occurs[128] = {};
    int count = 0;
    constexpr Values() {
      int place[128];
      for (int &p : place)
        p = -1;
      for (int s = 0; s < kStates; ++s)
        for (int d = 0; d < kDigits; ++d) {
          int total = 0;
          for (int p = 0; p < code.planes; ++p) {
            int window = 0;
            for (int j = 0, rest = s + d * kStates; j < code.window; ++j, rest /= kDigits)
              window |= (rest % kDigits >> p & 1) << j;
            total += code.table[p][window];
          }
          if (place[total] < 0) {
            place[total] = count;
            occurs[count++] = uint8_t(total);
          }
          sum[s * kDigits + d] = uint8_t(total);
          row[s * kDigits + d] = uint8_t(place[total]);
        }
    }
  };
  static constexpr Values values{};

  /// Byte offsets of the metrics of `values.row`, for vectors of 32 bytes.
  struct Places {
    uint16_t of[kStates * kDigits] = {};
    constexpr Places() {
      for (int i = 0; i < kStates * kDigits; ++i)
        of[i] = uint16_t(values.row[i] * 32);
    }
  };
  static constexpr Places places{};

  Costs metric[kColumns][values.count];
  Costs history[kColumns + 1][kStates];
  uint8_t walk[kLanes][kColumns]; ///< digits
  Floats target[kColumns], shift[kColumns], weight[kColumns];

  /// Costs of all values at all positions; `unit` is the reciprocal of one.
  void measure(const Floats &unit) {
    for (int i = 0; i < kColumns; ++i) {
      Floats factor = weight[i] * unit;
      for (int v = 0; v < values.count; ++v) {
        // (t − v)² − (t − r)² for r the value nearest to t: (v − r)(v + r − 2t).
        float value = values.occurs[v];
        Floats cost = factor * ((value - target[i]) * (value + shift[i]));
        cost = __builtin_elementwise_min(cost, Floats{} + kMost) + 0.5f;
        metric[i][v] = __builtin_convertvector(__builtin_convertvector(cost, Ints), Costs);
      }
    }
  }

  static void take(const Costs *metric, const Costs *from, Costs *to) {
#pragma clang loop unroll_count(kStates * kDigits <= 256 ? kHigh : 1)
    for (int h = 0; h < kHigh; ++h) {
      Costs before[kDigits];
#pragma clang loop unroll(full)
      for (int d = 0; d < kDigits; ++d)
        before[d] = from[h + kHigh * d];
#pragma clang loop unroll(full)
      for (int first = 0; first < kDigits; ++first) {
        int s = h * kDigits + first;
        const uint8_t *row = values.row + s * kDigits;
        Costs best = __builtin_elementwise_add_sat(before[0], metric[row[0]]);
#pragma clang loop unroll(full)
        for (int d = 1; d < kDigits; ++d)
          best = __builtin_elementwise_min(best, __builtin_elementwise_add_sat(before[d], metric[row[d]]));
        to[s] = best;
      }
    }
  }

  static int position(int cut, int taken) { return (cut - taken) & (kColumns - 1); }

  void forward(int cut) {
    for (int n = 1; n <= kColumns; ++n)
      take(metric[position(cut, n)], history[n - 1], history[n]);
  }

  /// From `state` of a lane after `n` positions back to `end` of them; returns the state there. Digits go to `walk`.
  int backward(int lane, int cut, int state, int n, int end) {
    for (; n > end; --n) {
      int i = position(cut, n);
      walk[lane][i] = uint8_t(state % kDigits);
      unsigned least = ~0u;
      int from = state / kDigits, best = 0;
      for (int d = 0; d < kDigits; ++d) {
        unsigned cost = unsigned(history[n - 1][from + kHigh * d][lane]) +
                        metric[i][values.row[state * kDigits + d]][lane];
        if (cost < least) {
          least = cost;
          best = d;
        }
      }
      state = from + kHigh * best;
    }
    return state;
  }

  struct States {
    int of[kLanes];
  };

  /// The best walks that are in `state` at the cut, left in history; returns what they cost.
  Costs closed(int cut, const States &state) {
    for (Costs &cost : history[0])
      cost = Costs{} + kNever;
    for (int l = 0; l < kLanes; ++l)
      history[0][state.of[l]][l] = 0;
    forward(cut);
    Costs total;
    for (int l = 0; l < kLanes; ++l)
      total[l] = history[kColumns][state.of[l]][l];
    return total;
  }

  /// The states opposite to the cut of the best walks that need not close.
  States open(int cut) {
    for (Costs &cost : history[0])
      cost = Costs{};
    forward(cut);
    States state;
    for (int l = 0; l < kLanes; ++l) {
      int best = 0;
      for (int s = 1; s < kStates; ++s)
        if (history[kColumns][s][l] < history[kColumns][best][l])
          best = s;
      state.of[l] = backward(l, cut, best, kColumns, kColumns / 2);
    }
    return state;
  }

  States stateAt(int column) const {
    States state;
    for (int l = 0; l < kLanes; ++l) {
      int s = 0;
      for (int j = code.window - 2; j >= 0; --j)
        s = s * kDigits + walk[l][(column + j) & (kColumns - 1)];
      state.of[l] = s;
    }
    return state;
  }

  void followAll(int cut, const States &state) {
    for (int l = 0; l < kLanes; ++l)
      backward(l, cut, state.of[l], kColumns, 0);
  }

  Costs searchExact() {
    Costs least = Costs{} + kNever;
    States best{};
    for (int start = 0; start < kStates; ++start) {
      Costs cost[2][kStates];
      for (Costs &c : cost[0])
        c = Costs{} + kNever;
      cost[0][start] = Costs{};
      for (int n = 1; n <= kColumns; ++n)
        take(metric[position(0, n)], cost[(n - 1) & 1], cost[n & 1]);
      Costs total = cost[0][start];
      for (int l = 0; l < kLanes; ++l)
        if (total[l] < least[l])
          best.of[l] = start;
      least = __builtin_elementwise_min(least, total);
    }
    closed(0, best);
    followAll(0, best);
    return least;
  }

  Costs searchFrom(int cut) {
    int opposite = cut ^ (kColumns / 2);
    States state = open(opposite);
    closed(cut, state);
    followAll(cut, state);
    state = stateAt(opposite);
    Costs total = closed(opposite, state);
    followAll(opposite, state);
    return total;
  }

  Costs search(bool draft) {
    if (kExact && !draft)
      return searchExact();
    Costs first = searchFrom(0);
    if (draft)
      return first;
    uint8_t kept[kLanes][kColumns];
    std::memcpy(kept, walk, sizeof walk);
    Costs second = searchFrom(kColumns / 2);
    for (int l = 0; l < kLanes; ++l)
      if (first[l] <= second[l])
        std::memcpy(walk[l], kept[l], kColumns);
    return __builtin_elementwise_min(first, second);
  }

  /// A column of a block, in sums.
  struct Column {
    float nearest, shift, weight;
  };
  static Column columnOf(const TrellisBlocks &blocks, int64_t b, int i) {
    float scale = blocks.scales[b];
    float x = scale > 0 ? blocks.targets[b * blocks.targetStride + i] / scale + float(code.offset) : 0;
    x = std::min(std::max(x, -1e6f), 1e6f);
    float nearest = float(int(std::min(std::max(x, 0.0f), 127.0f) + 0.5f));
    return {nearest, nearest - 2 * x, blocks.weights ? blocks.weights[b * blocks.weightStride + i] : 1};
  }
  static constexpr float typical = float(code.error / (code.step * code.step)); ///< cost of a column

  /// `count` blocks, those that `which` numbers.
  void lanes(const TrellisBlocks &blocks, const int64_t *which, int count) {
    Floats unit{};
    for (int l = 0; l < kLanes; ++l) {
      int64_t b = which[std::min(l, count - 1)]; // lanes to spare repeat the last
      float sum = 0;
      for (int i = 0; i < kColumns; ++i) {
        Column column = columnOf(blocks, b, i);
        target[i][l] = column.nearest;
        shift[i][l] = column.shift;
        weight[i][l] = column.weight;
        sum += column.weight;
      }
      unit[l] = blocks.scales[b] > 0 && sum > 0 ? kTypical / (typical * sum) : 0;
    }
    bool done[kLanes] = {};
    for (int attempt = 0, left = count; left > 0; ++attempt, unit *= 1.0f / 16) {
      measure(unit);
      Costs total = search(blocks.draft);
      for (int l = 0; l < count; ++l)
        if (!done[l] && (total[l] != kNever || attempt == kAttempts)) {
          done[l] = true;
          --left;
          put(blocks, which[l], walk[l]);
        }
    }
  }

  void put(const TrellisBlocks &blocks, int64_t b, const uint8_t *digits) const {
    uint32_t words[4] = {};
    float scale = blocks.scales[b];
    if (scale > 0)
      for (int i = 0; i < kColumns; ++i)
        for (int p = 0; p < code.planes; ++p)
          words[p] |= uint32_t(digits[i] >> p & 1) << i;
    for (int p = 0; p < code.planes; ++p)
      blocks.words[b * code.planes + p] = words[p];
    if (blocks.decoded)
      for (int i = 0; i < kColumns; ++i)
        blocks.decoded[b * blocks.decodedStride + i] = scale * float(planesSum(code, words, 1, i) - code.offset);
  }

  /// Of a column, beside the mean: where it is more, 8 bits are too few.
  static constexpr float kMostWeight = 4;

  /// Blocks from `first` on, as many as go into the lanes.
  void narrowly(const TrellisBlocks &blocks, int64_t first) {
    int count = int(std::min<int64_t>(Narrow<kind>::width, blocks.count - first));
    bool isWide[Narrow<kind>::width] = {};
    for (int l = 0; l < Narrow<kind>::width; ++l) {
      int64_t b = first + std::min(l, count - 1);
      float sum = 0, most = 0;
      int counting = 0; // columns that do
      for (int i = 0; i < kColumns; ++i) {
        Column column = columnOf(blocks, b, i);
        narrow->set(l, i, column.nearest, column.shift, column.weight);
        sum += column.weight;
        most = std::max(most, column.weight);
        counting += column.weight > 0;
      }
      narrow->setUnit(l, blocks.scales[b] > 0 && sum > 0 ? float(counting) / (typical * sum) : 0);
      isWide[l] = most * float(counting) > kMostWeight * sum;
    }
    narrow->search(blocks.draft);
    int64_t left[Narrow<kind>::width];
    int lefts = 0;
    for (int l = 0; l < count; ++l)
      if (const uint8_t *digits = narrow->found(l); digits && !isWide[l])
        put(blocks, first + l, digits);
      else
        left[lefts++] = first + l;
    for (int at = 0; at < lefts; at += kLanes)
      lanes(blocks, left + at, std::min(kLanes, lefts - at));
  }

  std::unique_ptr<Narrow<kind>> narrow;

public:
  void encode(const TrellisBlocks &blocks) override {
    if constexpr (!kExact) {
      if (!narrow)
        narrow = std::make_unique<Narrow<kind>>();
      for (int64_t first = 0; first < blocks.count; first += Narrow<kind>::width)
        narrowly(blocks, first);
    } else {
      for (int64_t first = 0; first < blocks.count; first += kLanes) {
        int64_t which[kLanes];
        int count = int(std::min<int64_t>(kLanes, blocks.count - first));
        for (int l = 0; l < count; ++l)
          which[l] = first + l;
        lanes(blocks, which, count);
      }
    }
  }
};

#include "Encoding/TrellisNarrow.h"

std::unique_ptr<TrellisEncoder::Engine> makeSearch(EncodingKind kind) {
  return makeForPlanes<Search, TrellisEncoder::Engine>(kind);
}

} // namespace
