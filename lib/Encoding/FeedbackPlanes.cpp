// SPDX-License-Identifier: Apache-2.0
//
// A trellis codes 32 columns of a row at once, and its scale is that of a whole group.
//
// Problem: the best scale depends on the codes, codes on targets, and targets on errors that depend on the scale. Approach: a
// group is coded with the scale that a Gaussian of its targets' variance wants; then its scale becomes the one that minimises the
// loss of these codes, as far as the group's own columns bear it (Feedback.h): Σ_j D_j b_j² with b = (e U)_j, and e = w − s q is a
// line in s. Sweeps (FeedbackSweeps.cpp) then change codes and scales in turn.

#include "Encoding/FeedbackPlanes.h"

#include "Encoding/FeedbackRows.h"

#include <cmath>
#include <cstring>

namespace otf {

namespace {

constexpr int kSweeps = 1;

/// The first pass, and what is stored after the last.
class Rows : FeedbackRows {
public:
  Rows(EncodingKind kind, const WeightLayout &layout, const Feedback &feedback)
      : FeedbackRows(kind, layout, feedback), kind(kind), target(at(kMost)), trial(at(kMost)), change(at(kMost)),
        fits(kMost) {}

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
      if (EncodeStatus status = encodeGroup(begin, std::min(begin + layout.group, layout.background));
          status != EncodeStatus::Ok)
        return status;
    sweep(*this, kSweeps);
    for (int64_t block = 0; block < blocks; ++block)
      store(block, tiles);
    return encodeOutliers(tiles);
  }

private:
  struct Fit {
    double along = 0, square = 0; // Σ D b q, Σ D q², of brackets
  };

  EncodeStatus encodeGroup(int64_t begin, int64_t end) {
    int64_t group = begin / layout.group;
    for (int64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (int64_t i = begin; i < end; ++i)
        squares += double(target[at(row) + size_t(i)]) * target[at(row) + size_t(i)];
      if (EncodeStatus status = setScale(row, group, planesScale(kind, squares / double(end - begin)));
          status != EncodeStatus::Ok)
        return status;
    }
    std::copy_n(target.begin(), at(rows), trial.begin());
    std::fill_n(change.begin(), at(rows), 0.0f);
    std::fill_n(fits.begin(), rows, Fit());
    for (int64_t block = begin / kBlock; block * kBlock < end; ++block)
      encodeBlock(block, end);
    for (int64_t row = 0; row < rows; ++row) {
      if (const Fit &fit = fits[size_t(row)]; fit.square > 0)
        if (EncodeStatus status = setScale(row, group, scale(row, group) + fit.along / fit.square);
            status != EncodeStatus::Ok)
          return status;
      for (int64_t i = begin; i < end; ++i)
        error[at(row) + size_t(i)] = weight[at(row) + size_t(i)] - scale(row, group) * unit[at(row) + size_t(i)];
    }
    feedback.spread(begin, end - begin, error.data() + begin, columns, rows, target.data(), columns, end, columns);
    return EncodeStatus::Ok;
  }

  /// Chooses codes of a block with the scales at hand, and tells the rest of the group.
  void encodeBlock(int64_t block, int64_t groupEnd) {
    int64_t begin = block * kBlock, count = width(block), end = begin + count;
    for (int64_t row = 0; row < rows; ++row) {
      float wanted[kBlock] = {}, s = scale(row, begin / layout.group);
      uint32_t *to = &words[wordsAt(row, block)];
      std::fill_n(to, code.planes, 0u);
      if (s > 0) {
        const float *w = &weight[at(row)] + begin, *t = &trial[at(row)] + begin;
        for (int64_t i = 0; i < count; ++i)
          wanted[i] = t[i] - w[i];
        feedback.solveBlock(begin, count, wanted);
        for (int64_t i = 0; i < count; ++i)
          wanted[i] = (wanted[i] + w[i]) / s + float(code.offset);
        encoder.search(ahead(block), wanted, to);
      }
      decode(row, block);
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
    if (layout.outliers == 0)
      return EncodeStatus::Ok;
    std::copy_n(weight.begin(), at(rows), target.begin());
    feedback.spread(0, layout.background, error.data(), columns, rows, target.data(), columns, layout.background, columns);
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

  /// Words of a block, and behind the last of a group its scales.
  void store(int64_t block, uint8_t *tiles) {
    int64_t begin = block * kBlock, group = begin / layout.group;
    uint8_t *chunk = tiles + group * layout.groupBytes + begin % layout.group / kBlock * chunkBytes(kind);
    bool last = (begin + kBlock) % layout.group == 0 || block + 1 == blocks;
    for (int64_t row = 0; row < rows; ++row) {
      uint8_t *to = chunk + row / kTileRows * layout.tileBytes;
      storePlanes(code, to, int(row % kTileRows), &words[wordsAt(row, block)]);
      if (last)
        storeHalf(to + chunkBytes(kind) + row % kTileRows * 2, floatToHalf(scale(row, group)));
    }
  }

  EncodeStatus setScale(int64_t row, int64_t group, double to) {
    uint16_t half = doubleToHalf(std::max(0.0, to));
    scale(row, group) = halfToFloat(half);
    return halfIsFinite(half) ? EncodeStatus::Ok : EncodeStatus::OutOfRange;
  }

  EncodingKind kind;
  std::vector<float> target; // w + Σ e U of the groups that are done
  std::vector<float> trial;  // w + Σ e U of all blocks that are done, within the group at hand
  std::vector<float> change; // Σ q U of the group at hand
  std::vector<Fit> fits;
};

} // namespace

EncodeStatus encodePlanesWithFeedback(EncodingKind kind, const WeightLayout &layout,
                                      const uint32_t *index, const float *weights,
                                      int64_t rowStride, int64_t rows, const Feedback &feedback,
                                      uint8_t *tiles) {
  std::memset(tiles, 0, size_t((rows + kTileRows - 1) / kTileRows * layout.tileBytes));
  Rows together(kind, layout, feedback);
  for (int64_t row = 0; row < rows; row += FeedbackRows::kMost) {
    EncodeStatus status =
        together.encode(index, weights + row * rowStride, rowStride, std::min(FeedbackRows::kMost, rows - row),
                        tiles + row / kTileRows * layout.tileBytes);
    if (status != EncodeStatus::Ok)
      return status;
  }
  return EncodeStatus::Ok;
}

} // namespace otf
