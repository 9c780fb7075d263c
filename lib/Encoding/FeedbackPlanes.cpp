// SPDX-License-Identifier: Apache-2.0
//
// A trellis codes 32 columns of a row at once, and its scale is that of a whole group.
//
// Problem: the best scale depends on the codes, codes on targets, and targets on errors that depend on the scale. Approach:
// a group is coded with the scale that a Gaussian of its targets' variance wants, then with the one that minimises the loss of these
// codes, and the loss's minimum for the codes that this gives is what is stored. What is minimised is the part of the loss that
// the group's own columns bear (Feedback.h): Σ_j D_j b_j² with b = (e U)_j, and e = w − s q is a line in s.

#include "Encoding/FeedbackPlanes.h"

#include "Encoding/Codec.h"
#include "Encoding/Trellis.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace otf {

namespace {

constexpr int64_t kBlock = Feedback::kBlock;
constexpr int64_t kMostRows = 32; // of targets and their changes at K = 1536: 600 KB
constexpr int kSearches = 2;      // of a group, with a better scale each

/// Some rows while they are coded. All arrays are [rows][columns] in the order of coding.
class Rows {
public:
  Rows(EncodingKind kind, const WeightLayout &layout, const Feedback &feedback)
      : code(planesCode(kind)), kind(kind), layout(layout), feedback(feedback), columns(layout.columns),
        encoder(kind), weight(at(kMostRows)), target(at(kMostRows)), trial(at(kMostRows)),
        unit(at(kMostRows)), change(at(kMostRows)), error(at(kMostRows)), scales(kMostRows),
        fits(kMostRows), words(size_t(kMostRows * code.planes)),
        wanted(size_t(kMostRows * kBlock)) {}

  EncodeStatus encode(const uint32_t *index, const float *weights, int64_t rowStride, int64_t count,
                      uint8_t *tiles) {
    rows = count;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < columns; ++i) {
        float w = weights[row * rowStride + (index ? index[i] : uint32_t(i))];
        if (!std::isfinite(w))
          return EncodeStatus::NotFinite;
        weight[at(row) + size_t(i)] = target[at(row) + size_t(i)] = w;
      }
    for (int64_t begin = 0; begin < layout.background; begin += layout.group)
      if (EncodeStatus status = encodeGroup(begin, std::min(begin + layout.group, layout.background), tiles);
          status != EncodeStatus::Ok)
        return status;
    return encodeOutliers(tiles);
  }

private:
  struct Fit {
    double along = 0, square = 0; // Σ D b q, Σ D q², of brackets
  };

  size_t at(int64_t row) const { return size_t(row * columns); }

  EncodeStatus encodeGroup(int64_t begin, int64_t end, uint8_t *tiles) {
    for (int64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (int64_t i = begin; i < end; ++i)
        squares += double(target[at(row) + size_t(i)]) * target[at(row) + size_t(i)];
      scales[size_t(row)] = roundToHalf(planesScale(kind, squares / double(end - begin)));
    }
    for (int search = 0; search < kSearches; ++search) {
      std::copy_n(target.begin(), at(rows), trial.begin());
      std::fill_n(change.begin(), at(rows), 0.0f);
      std::fill_n(fits.begin(), rows, Fit());
      for (int64_t block = begin; block < end; block += kBlock)
        encodeBlock(block, std::min(block + kBlock, end), end, tiles);
      for (int64_t row = 0; row < rows; ++row)
        if (const Fit &fit = fits[size_t(row)]; fit.square > 0)
          scales[size_t(row)] = roundToHalf(std::max(0.0, scales[size_t(row)] + fit.along / fit.square));
    }
    uint8_t *parameters = tiles + parameterOffset(begin, end);
    for (int64_t row = 0; row < rows; ++row) {
      uint16_t half = floatToHalf(scales[size_t(row)]);
      if (!halfIsFinite(half))
        return EncodeStatus::OutOfRange;
      storeHalf(parameters + row / kTileRows * layout.tileBytes + row % kTileRows * 2, half);
      for (int64_t i = begin; i < end; ++i)
        error[at(row) + size_t(i)] =
            weight[at(row) + size_t(i)] - scales[size_t(row)] * unit[at(row) + size_t(i)];
    }
    feedback.spread(begin, end - begin, error.data() + begin, columns, rows, target.data(), columns, end, columns);
    return EncodeStatus::Ok;
  }

  /// Chooses codes of columns [begin, end) with the scales at hand, and tells the rest of the group.
  void encodeBlock(int64_t begin, int64_t end, int64_t groupEnd, uint8_t *tiles) {
    int64_t count = end - begin;
    float weights[kBlock] = {};
    for (int64_t i = 0; i < count; ++i)
      weights[i] = feedback.weight(begin + i);
    for (int64_t row = 0; row < rows; ++row) {
      float *to = &wanted[size_t(row * kBlock)];
      const float *w = &weight[at(row) + size_t(begin)];
      for (int64_t i = 0; i < count; ++i)
        to[i] = trial[at(row) + size_t(begin + i)] - w[i];
      feedback.solveBlock(begin, count, to);
      for (int64_t i = 0; i < kBlock; ++i)
        to[i] = i < count ? to[i] + w[i] : 0.0f;
    }
    TrellisBlocks blocks;
    blocks.count = rows;
    blocks.targets = wanted.data();
    blocks.scales = scales.data();
    blocks.weights = weights;
    blocks.words = words.data();
    encoder.encode(blocks);

    uint8_t *chunk = tiles + begin / layout.group * layout.groupBytes +
                     begin % layout.group / kBlock * chunkBytes(kind);
    for (int64_t row = 0; row < rows; ++row) {
      const uint32_t *from = &words[size_t(row * code.planes)];
      storePlanes(code, chunk + row / kTileRows * layout.tileBytes, int(row % kTileRows), from);
      for (int64_t i = 0; i < count; ++i) {
        auto place = at(row) + size_t(begin + i);
        unit[place] = float(planesSum(code, from, 1, int(i)) - code.offset);
        error[place] = weight[place] - scales[size_t(row)] * unit[place];
      }
    }
    addFits(begin, end);
    feedback.spread(begin, count, error.data() + begin, columns, rows, trial.data(), columns, end, groupEnd);
    feedback.spread(begin, count, unit.data() + begin, columns, rows, change.data(), columns, end, groupEnd);
  }

  /// Brackets of the block's columns: those of the error, (e U)_j, and those of what a scale multiplies, (q U)_j.
  void addFits(int64_t begin, int64_t end) {
    int64_t count = end - begin;
    for (int64_t row = 0; row < rows; ++row) {
      double errors[kBlock], units[kBlock];
      for (int64_t j = 0; j < count; ++j) {
        auto place = at(row) + size_t(begin + j);
        errors[j] = double(trial[place]) - weight[place] + error[place];
        units[j] = double(change[place]) + unit[place];
      }
      for (int64_t i = 0; i < count; ++i) {
        auto place = at(row) + size_t(begin + i);
        const float *factors = feedback.upper(begin + i) + begin;
        for (int64_t j = i + 1; j < count; ++j) {
          errors[j] += double(error[place]) * factors[j];
          units[j] += double(unit[place]) * factors[j];
        }
      }
      Fit &fit = fits[size_t(row)];
      for (int64_t j = 0; j < count; ++j) {
        fit.along += feedback.variance(begin + j) * errors[j] * units[j];
        fit.square += feedback.variance(begin + j) * units[j] * units[j];
      }
    }
  }

  /// As in FeedbackTile.h: exact but for f16, so they take up what the rest has lost.
  EncodeStatus encodeOutliers(uint8_t *tiles) {
    for (int64_t i = layout.background; i < columns; ++i) {
      for (int64_t row = 0; row < rows; ++row) {
        auto place = at(row) + size_t(i);
        EncodeStatus status =
            storeOutlier(layout, tiles + row / kTileRows * layout.tileBytes, i - layout.background,
                         row % kTileRows, target[place]);
        if (status != EncodeStatus::Ok)
          return status;
        error[place] = weight[place] - halfToFloat(floatToHalf(target[place]));
      }
      feedback.spread(i, 1, error.data() + i, columns, rows, target.data(), columns, i + 1, columns);
    }
    return EncodeStatus::Ok;
  }

  int64_t parameterOffset(int64_t begin, int64_t end) const {
    return begin / layout.group * layout.groupBytes + (end - begin + kBlock - 1) / kBlock * chunkBytes(kind);
  }
  static float roundToHalf(double scale) { return halfToFloat(doubleToHalf(scale)); }

  const PlanesCode &code;
  EncodingKind kind;
  const WeightLayout &layout;
  const Feedback &feedback;
  int64_t columns, rows = 0;
  TrellisEncoder encoder;
  std::vector<float> weight, target; // w, and w + Σ e U of the groups that are done
  std::vector<float> trial;          // w + Σ e U of all blocks that are done, within the group at hand
  std::vector<float> unit, change;   // q, and Σ q U of the group at hand
  std::vector<float> error;          // e = w − s q
  std::vector<float> scales;
  std::vector<Fit> fits;
  std::vector<uint32_t> words;
  std::vector<float> wanted; // what a block is to become, kBlock a row
};

} // namespace

EncodeStatus encodePlanesWithFeedback(EncodingKind kind, const WeightLayout &layout,
                                      const uint32_t *index, const float *weights,
                                      int64_t rowStride, int64_t rows, const Feedback &feedback,
                                      uint8_t *tiles) {
  std::memset(tiles, 0, size_t((rows + kTileRows - 1) / kTileRows * layout.tileBytes));
  Rows together(kind, layout, feedback);
  for (int64_t row = 0; row < rows; row += kMostRows) {
    EncodeStatus status =
        together.encode(index, weights + row * rowStride, rowStride, std::min(kMostRows, rows - row),
                        tiles + row / kTileRows * layout.tileBytes);
    if (status != EncodeStatus::Ok)
      return status;
  }
  return EncodeStatus::Ok;
}

} // namespace otf
