// SPDX-License-Identifier: Apache-2.0
//
// Tiles of planes, scales, and the search as it is defined.
#include "Encoding/Trellis.h"

#include "Encoding/PlanesCodec.h"
#include "Encoding/TrellisEngine.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace otf {

TrellisEncoder::Level TrellisEncoder::best() {
  return __builtin_cpu_supports("avx2") ? Level::Avx2 : Level::Baseline;
}

TrellisEncoder::TrellisEncoder(EncodingKind planes, Level level)
    : engine(level == Level::Avx2 ? makeAvx2Trellis(planes) : makeBaselineTrellis(planes)) {}
TrellisEncoder::~TrellisEncoder() = default;

void TrellisEncoder::encode(const TrellisBlocks &blocks) { engine->encode(blocks); }

double planesScale(EncodingKind kind, double meanSquare) { return std::sqrt(meanSquare) * planesCode(kind).step; }

namespace {

/// One group of every row of a tile: `chunks` blocks a row, the last of which may be short. Where they are many, a part of them says
/// the scale: of 256 weights the least-squares scale is within half a percent at 4 bits, and 2 percent at 2 bits, which costs
/// a two-hundredth of the error.
class GroupEncoder {
public:
  GroupEncoder(EncodingKind kind, int64_t rows, int64_t chunks)
      : kind(kind), code(planesCode(kind)), rows(rows), chunks(chunks), targets(size_t(rows * chunks * 32)),
        decoded(targets.size()), scales(size_t(rows * chunks)), stride(std::max(int64_t(1), std::min(kMostStride, chunks / kSample))) {
    for (Try *t : {&first, &second})
      t->words.resize(size_t(rows * chunks * code.planes));
  }

  float *row(int64_t r) { return targets.data() + r * chunks * 32; }

  /// After the targets are there; false where a scale is beyond f16.
  bool encode(TrellisEncoder &encoder, int64_t count) {
    // The padding is free to be what suits its neighbours.
    std::vector<float> weights;
    if (count < chunks * 32) {
      weights.assign(targets.size(), 1);
      for (int64_t r = 0; r < rows; ++r)
        std::fill_n(weights.begin() + r * chunks * 32 + count, chunks * 32 - count, 0.0f);
    }
    for (int64_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (int64_t i = 0; i < count; ++i)
        squares += double(row(r)[i]) * row(r)[i];
      power[r] = squares;
      first.scale[r] = doubleToHalf(planesScale(kind, squares / double(count)));
    }
    if (!search(encoder, first, weights, count, stride, /*draft=*/true))
      return false;
    for (int64_t r = 0; r < rows; ++r)
      second.scale[r] = first.fitted[r];
    if (!search(encoder, second, weights, count, 1, /*draft=*/false))
      return false;
    for (int64_t r = 0; r < rows; ++r)
      refit(second, r);
    return true;
  }

  /// Writes the better words and scale of a row of the group whose chunks begin at `at`.
  void put(int64_t r, uint8_t *at) {
    const Try &best = stride > 1 || second.error[r] < first.error[r] ? second : first;
    int64_t chunk = 32 * code.planes;
    // Where even that loses more than the weights are, they are zeros.
    bool zero = best.error[r] > power[r];
    for (int64_t c = 0; c < chunks && !zero; ++c)
      storePlanes(code, at + c * chunk, int(r), &best.words[size_t((r * chunks + c) * code.planes)]);
    storeHalf(at + chunks * chunk + 2 * r, zero ? uint16_t(0) : best.scale[r]);
  }

private:
  struct Try {
    std::vector<uint32_t> words;
    uint16_t scale[kTileRows], fitted[kTileRows];
    double error[kTileRows], product[kTileRows], square[kTileRows]; ///< Σ (t − d)², Σ t d, Σ d²
  };

  static constexpr int64_t kSample = 4, kMostStride = 4; ///< chunks

  /// The scale that fits the codes that were found.
  void refit(Try &t, int64_t r) const {
    double ratio = double(halfToFloat(t.fitted[r])) / halfToFloat(t.scale[r]);
    double error = power[r] - 2 * ratio * t.product[r] + ratio * ratio * t.square[r];
    if (halfIsFinite(t.fitted[r]) && error < t.error[r]) {
      t.scale[r] = t.fitted[r];
      t.error[r] = error;
    }
  }

  /// Of every `step`-th chunk, one row after another.
  bool search(TrellisEncoder &encoder, Try &t, const std::vector<float> &weights, int64_t count, int64_t step, bool draft) {
    int64_t used = (chunks + step - 1) / step;
    for (int64_t r = 0; r < rows; ++r) {
      if (!halfIsFinite(t.scale[r]))
        return false;
      std::fill_n(scales.begin() + r * used, used, halfToFloat(t.scale[r]));
    }
    auto sampled = [&](const std::vector<float> &all) {
      std::vector<float> result(size_t(rows * used * 32));
      for (int64_t b = 0; b < rows * used; ++b)
        std::copy_n(all.begin() + (b / used * chunks + b % used * step) * 32, 32, result.begin() + b * 32);
      return result;
    };
    std::vector<float> someTargets, someWeights;
    if (step > 1) {
      someTargets = sampled(targets);
      someWeights = weights.empty() ? weights : sampled(weights);
    }
    TrellisBlocks blocks;
    blocks.count = rows * used;
    blocks.targets = step > 1 ? someTargets.data() : targets.data();
    blocks.scales = scales.data();
    blocks.weights = weights.empty() ? nullptr : step > 1 ? someWeights.data() : weights.data();
    blocks.weightStride = 32;
    blocks.draft = draft;
    blocks.words = t.words.data();
    blocks.decoded = decoded.data();
    encoder.encode(blocks);
    for (int64_t r = 0; r < rows; ++r) {
      const float *d = decoded.data() + r * used * 32, *wanted = blocks.targets + r * used * 32;
      double scale = halfToFloat(t.scale[r]), product = 0, square = 0, error = 0;
      // Of the last chunk, what is no padding.
      int64_t real = (chunks - 1) % step == 0 ? used * 32 - (chunks * 32 - count) : used * 32;
      for (int64_t i = 0; i < real; ++i) {
        product += double(wanted[i]) * d[i];
        square += double(d[i]) * d[i];
        error += (double(wanted[i]) - d[i]) * (double(wanted[i]) - d[i]);
      }
      t.error[r] = error;
      t.product[r] = product;
      t.square[r] = square;
      t.fitted[r] = square > 0 && product > 0 ? doubleToHalf(scale * product / square) : t.scale[r];
    }
    return true;
  }

  EncodingKind kind;
  const PlanesCode &code;
  int64_t rows, chunks;
  std::vector<float> targets, decoded, scales;
  int64_t stride; ///< of chunks that a draft looks at
  double power[kTileRows];
  Try first, second;
};

/// The search of a thread, which has half a megabyte of history: kept from tile to tile.
TrellisEncoder &encoderOf(EncodingKind kind) {
  thread_local std::unique_ptr<TrellisEncoder> kept;
  thread_local EncodingKind of = EncodingKind::F32;
  if (!kept || of != kind) {
    kept = std::make_unique<TrellisEncoder>(kind);
    of = kind;
  }
  return *kept;
}

} // namespace

EncodeStatus encodePlanesTile(EncodingKind kind, const WeightLayout &layout, const uint32_t *index, const float *weights,
                              int64_t rowStride, int64_t rows, uint8_t *tile) {
  TrellisEncoder &encoder = encoderOf(kind);
  std::memset(tile, 0, size_t(layout.tileBytes));
  uint8_t *at = tile;
  for (int64_t begin = 0; begin < layout.background; begin += layout.group) {
    int64_t count = std::min(layout.group, layout.background - begin);
    int64_t chunks = (count + kChunkColumns - 1) / kChunkColumns;
    GroupEncoder group(kind, rows, chunks);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < count; ++i) {
        float value = weights[r * rowStride + (index ? index[begin + i] : begin + i)];
        if (!std::isfinite(value))
          return EncodeStatus::NotFinite;
        group.row(r)[i] = value;
      }
    if (!group.encode(encoder, count))
      return EncodeStatus::OutOfRange;
    for (int64_t r = 0; r < rows; ++r)
      group.put(r, at);
    at += chunks * chunkBytes(kind) + groupParameterBytes(kind);
  }
  return encodeOutlierPanel(layout, index, weights, rowStride, rows, tile);
}

double searchTrellis(EncodingKind kind, const float *targets, double scale, const float *weights, uint32_t *words) {
  const PlanesCode &code = planesCode(kind);
  const int digits = 1 << code.planes;
  int states = 1;
  for (int j = 1; j < code.window; ++j)
    states *= digits;
  constexpr double never = std::numeric_limits<double>::infinity();
  // Cost of digit tuple `all` (w digits, that of position i first) at position i.
  std::vector<double> metric(size_t(32 * states * digits));
  for (int all = 0; all < states * digits; ++all) {
    int sum = 0;
    for (int p = 0; p < code.planes; ++p) {
      int window = 0;
      for (int j = 0, rest = all; j < code.window; ++j, rest /= digits)
        window |= (rest % digits >> p & 1) << j;
      sum += code.table[p][window];
    }
    for (int i = 0; i < 32; ++i) {
      double error = targets[i] - scale * (sum - code.offset);
      metric[size_t(i * states * digits + all)] = (weights ? weights[i] : 1) * error * error;
    }
  }
  double least = never;
  std::vector<double> cost, next;
  std::vector<uint8_t> dropped(size_t(32 * states));
  for (int start = 0; start < states; ++start) {
    cost.assign(size_t(states), never);
    cost[size_t(start)] = 0;
    for (int i = 31; i >= 0; --i) {
      next.assign(size_t(states), never);
      for (int before = 0; before < states; ++before)
        for (int digit = 0; digit < digits; ++digit) {
          int all = before * digits + digit, after = all % states;
          double c = cost[size_t(before)] + metric[size_t(i * states * digits + all)];
          if (c < next[size_t(after)]) {
            next[size_t(after)] = c;
            dropped[size_t(i * states + after)] = uint8_t(all / states);
          }
        }
      std::swap(cost, next);
    }
    if (!(cost[size_t(start)] < least))
      continue;
    least = cost[size_t(start)];
    std::fill_n(words, code.planes, 0u);
    for (int i = 0, state = start; i < 32; ++i) {
      for (int p = 0; p < code.planes; ++p)
        words[p] |= uint32_t(state % digits >> p & 1) << i;
      state = state / digits + dropped[size_t(i * states + state)] * (states / digits);
    }
  }
  return least;
}

} // namespace otf
