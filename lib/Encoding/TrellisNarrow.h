// SPDX-License-Identifier: Apache-2.0
//
// The search of Trellis.h where states are many: costs of 8 bits, 32 blocks at a time. It is included by TrellisSearch.h.
//
// A metric of 3 units for what a column typically costs loses nothing that can be measured (planes3x4: .00548 beside .00547), since
// what decides is how far walks are apart, and one that is 80 columns' worth behind is never the best. So after each position the
// least cost of a lane comes off all states, and what is beyond 255 stays there.
//
// An open search over 48 positions from the cut at 0 says the states at 16, after 16 positions, and at 0, after 32. A closed search
// from each gives a walk. Where there is time for it, each walk says a state at the other cut, and is searched again from there.
// The better one is kept, by its cost in f32. Where that is more than the search has seen, something was beyond 255, and the wide
// search has to do it.

template <EncodingKind kind> class Narrow {
  using Wide = Search<kind>;
  static constexpr const PlanesCode &code = planesCode(kind);
  static constexpr int kDigits = Wide::kDigits, kStates = Wide::kStates, kHigh = Wide::kHigh;
  static constexpr const typename Wide::Values &values = Wide::values;
  static constexpr int kTogether = kDigits < 8 ? kDigits : 8;
  static constexpr bool kRefines = kStates <= 64;
  static constexpr int kWidth = 2 * kLanes, kOpen = kColumns + kColumns / 2;
  static constexpr float kTypicalColumn = 3, kSlack = 48;
  static constexpr uint8_t kBeyond = 255;
  typedef uint8_t Bytes __attribute__((vector_size(kWidth)));

  Bytes metric[kColumns][values.count];
  Bytes history[kOpen + 1][kStates];
  uint16_t taken[kWidth]; ///< what came off in a search
  float target[kColumns][kWidth], shift[kColumns][kWidth], weight[kColumns][kWidth], unit[kWidth];

  struct Walk {
    uint8_t digits[kColumns];
    float cost; ///< in units
    bool isSure;
  };
  Walk walks[2][kWidth];
  struct States {
    int of[kWidth];
  };

  static int position(int cut, int n) { return (cut - n) & (kColumns - 1); }

  void measure() {
    for (int i = 0; i < kColumns; ++i)
      for (int half = 0; half < kWidth; half += kLanes) {
        Floats t, s, w, u;
        std::memcpy(&t, target[i] + half, sizeof t);
        std::memcpy(&s, shift[i] + half, sizeof s);
        std::memcpy(&w, weight[i] + half, sizeof w);
        std::memcpy(&u, unit + half, sizeof u);
        Floats factor = w * u;
        for (int v = 0; v < values.count; ++v) {
          float value = values.occurs[v];
          Floats cost = __builtin_elementwise_min(factor * ((value - t) * (value + s)), Floats{} + float(kBeyond)) + 0.5f;
          typedef uint8_t Half __attribute__((vector_size(kLanes)));
          Half bytes = __builtin_convertvector(__builtin_convertvector(cost, Ints), Half);
          std::memcpy(reinterpret_cast<char *>(&metric[i][v]) + half, &bytes, sizeof bytes);
        }
      }
  }

  /// Returns what came off.
  static Bytes take(const Bytes *metric, const Bytes *from, Bytes *to) {
    Bytes least = Bytes{} + kBeyond;
    for (int h = 0; h < kHigh; ++h)
      for (int part = 0; part < kDigits; part += kTogether) { // as many as there are registers for
        Bytes before[kTogether];
#pragma clang loop unroll(full)
        for (int d = 0; d < kTogether; ++d)
          before[d] = from[h + kHigh * (part + d)];
        for (int first = 0; first < kDigits; ++first) {
          int s = h * kDigits + first;
          const uint16_t *place = Wide::places.of + s * kDigits + part;
          auto at = [&](int d) { return *reinterpret_cast<const Bytes *>(reinterpret_cast<const char *>(metric) + place[d]); };
          Bytes best = __builtin_elementwise_add_sat(before[0], at(0));
#pragma clang loop unroll(full)
          for (int d = 1; d < kTogether; ++d)
            best = __builtin_elementwise_min(best, __builtin_elementwise_add_sat(before[d], at(d)));
          if (part)
            best = __builtin_elementwise_min(best, to[s]);
          to[s] = best;
          if (part + kTogether == kDigits)
            least = __builtin_elementwise_min(least, best);
        }
      }
    for (int s = 0; s < kStates; ++s)
      to[s] -= least;
    return least;
  }

  void forward(int cut, int count) {
    std::memset(taken, 0, sizeof taken);
    for (int n = 1; n <= count; ++n) {
      Bytes off = take(metric[position(cut, n)], history[n - 1], history[n]);
      for (int l = 0; l < kWidth; ++l)
        taken[l] = uint16_t(taken[l] + off[l]);
    }
  }

  int previous(int lane, int i, int state, int n, int &dropped) const {
    const uint8_t *row = values.row + state * kDigits;
    const Bytes *from = history[n - 1] + state / kDigits;
    unsigned least = ~0u;
#pragma clang loop unroll(full)
    for (unsigned d = 0; d < kDigits; ++d)
      least = std::min(least, (unsigned(from[kHigh * d][lane]) + metric[i][row[d]][lane]) * kDigits + d);
    dropped = int(least % kDigits);
    return state / kDigits + kHigh * dropped;
  }

  /// The states at a cut of 16 and of 0 of the best walks that need not close.
  void open(States &at16, States &at0) {
    for (Bytes &cost : history[0])
      cost = Bytes{};
    forward(0, kOpen);
    for (int l = 0; l < kWidth; ++l) {
      int state = 0, dropped = 0;
      for (int s = 1; s < kStates; ++s)
        if (history[kOpen][s][l] < history[kOpen][state][l])
          state = s;
      for (int n = kOpen; n > kColumns / 2; --n) {
        if (n == kColumns)
          at0.of[l] = state;
        state = previous(l, position(0, n), state, n, dropped);
      }
      at16.of[l] = state;
    }
  }

  /// The best walks that are in `state` at the cut.
  void close(int cut, const States &state, Walk *found) {
    for (Bytes &cost : history[0])
      cost = Bytes{} + kBeyond;
    for (int l = 0; l < kWidth; ++l)
      history[0][state.of[l]][l] = 0;
    forward(cut, kColumns);
    for (int l = 0; l < kWidth; ++l) {
      Walk &walk = found[l];
      uint8_t last = history[kColumns][state.of[l]][l];
      int at = state.of[l];
      float cost = 0;
      for (int n = kColumns; n > 0; --n) {
        int i = position(cut, n), dropped = 0;
        walk.digits[i] = uint8_t(at % kDigits);
        int before = previous(l, i, at, n, dropped);
        float value = values.sum[at * kDigits + dropped];
        cost += weight[i][l] * unit[l] * ((value - target[i][l]) * (value + shift[i][l]));
        at = before;
      }
      walk.cost = cost;
      walk.isSure = last != kBeyond && at == state.of[l] && cost <= float(taken[l] + last) + kSlack;
    }
  }

  static States statesAt(const Walk *found, int column) {
    States state;
    for (int l = 0; l < kWidth; ++l) {
      int s = 0;
      for (int j = code.window - 2; j >= 0; --j)
        s = s * kDigits + found[l].digits[(column + j) & (kColumns - 1)];
      state.of[l] = s;
    }
    return state;
  }

public:
  static constexpr int width = kWidth;

  /// Where to put the column of a lane: its nearest sum, and what Search calls shift and weight.
  void set(int lane, int column, float nearest, float shifted, float w) {
    target[column][lane] = nearest;
    shift[column][lane] = shifted;
    weight[column][lane] = w;
  }
  /// Per column and weight of 1, the reciprocal of what it typically costs.
  void setUnit(int lane, float reciprocal) { unit[lane] = reciprocal * kTypicalColumn; }

  void search(bool draft) {
    measure();
    States at16, at0;
    open(at16, at0);
    close(0, at0, walks[0]);
    if (draft)
      return;
    if (kRefines)
      close(kColumns / 2, statesAt(walks[0], kColumns / 2), walks[0]);
    close(kColumns / 2, at16, walks[1]);
    if (kRefines)
      close(0, statesAt(walks[1], 0), walks[1]);
    for (int l = 0; l < kWidth; ++l)
      if (walks[1][l].isSure && !(walks[0][l].isSure && walks[0][l].cost <= walks[1][l].cost))
        walks[0][l] = walks[1][l];
  }

  /// The digits of a lane's walk, or null where the wide search has to find it.
  const uint8_t *found(int lane) const { return walks[0][lane].isSure ? walks[0][lane].digits : nullptr; }
};
