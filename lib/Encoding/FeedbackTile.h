// SPDX-License-Identifier: Apache-2.0
//
// Tiles of grouped encodings coded with error feedback (Feedback.h): the same bytes as Grouped.h
// writes, other codes. A group's parameters are fitted to its columns' targets when coding reaches it.
#ifndef OTF_ENCODING_FEEDBACKTILE_H
#define OTF_ENCODING_FEEDBACKTILE_H

#include "Codec.h"
#include "Feedback.h"

#include <algorithm>
#include <vector>

namespace otf {

/// The columns of some rows as they are still to be coded, in the order of coding.
class Targets {
public:
  /// Rows of weights, `rowStride` floats apart; `index` is the order, or null.
  Targets(const Feedback &feedback, const uint32_t *index, const float *weights, int64_t rowStride,
          int64_t rows)
      : feedback(feedback), columns(feedback.columns()), values(size_t(rows * columns)),
        weights(values.size()), errors(size_t(rows * Feedback::kBlock)), rows(rows) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < columns; ++i)
        this->weights[size_t(row * columns + i)] =
            weights[row * rowStride + (index ? index[i] : uint32_t(i))];
    values = this->weights;
  }

  /// As before any column was settled.
  void reset() { values = weights; }

  /// w_j + Σ e_i U_ij over all blocks that are done; `begin` is the block at hand.
  float *row(int64_t row) { return values.data() + row * columns; }

  /// Column `column` became `decoded`: tells the columns of its block that follow, up to `end`.
  void settle(int64_t row, int64_t begin, int64_t end, int64_t column, double decoded) {
    float *at = this->row(row);
    auto error = float(weights[size_t(row * columns + column)] - decoded);
    errors[size_t(row * Feedback::kBlock + column - begin)] = error;
    const float *factors = feedback.upper(column);
    for (int64_t j = column + 1; j < end; ++j)
      at[j] += error * factors[j];
  }

  /// All columns of [begin, end) are settled: tells those after them.
  void carry(int64_t begin, int64_t end) {
    feedback.spread(begin, end - begin, errors.data(), Feedback::kBlock, rows, values.data(),
                    columns, end, columns);
  }

private:
  const Feedback &feedback;
  int64_t columns;
  std::vector<float> values, weights;
  std::vector<float> errors; // of the block at hand, kBlock a row
  int64_t rows;
};

/// Codecs that choose a code for one weight at a time. Grids are kept and not chosen.
template <typename Codec>
concept CodesColumns = requires(Codec codec, Group group) { codec.code(group, 0.0); } &&
                       !hasFloatParameters(Codec::kind);

/// What rows lose as zeros: w H wᵀ.
inline void addZeroLosses(Targets &targets, const Feedback &feedback, int64_t rows, double *losses) {
  for (int64_t begin = 0; begin < feedback.columns(); begin += Feedback::kBlock) {
    int64_t end = std::min(begin + Feedback::kBlock, feedback.columns());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = begin; i < end; ++i) {
        double bracket = targets.row(row)[i];
        losses[row] += feedback.variance(i) * bracket * bracket;
        targets.settle(row, begin, end, i, 0);
      }
    targets.carry(begin, end);
  }
}

/// Codes a tile, whose bytes are zeros. Rows of `zero` have groups of scale 0. Adds e H eᵀ of each row to `losses`.
template <CodesColumns Codec>
EncodeStatus encodeTargets(const Codec &codec, const WeightLayout &layout, Targets &targets, int64_t rows,
                           const Feedback &feedback, const bool *zero, double *losses, uint8_t *tile) {
  Group groups[kTileRows];
  auto settle = [&](int64_t row, int64_t begin, int64_t end, int64_t column, double decoded) {
    double bracket = targets.row(row)[column] - decoded;
    losses[row] += feedback.variance(column) * bracket * bracket;
    targets.settle(row, begin, end, column, decoded);
  };
  uint8_t *at = tile;
  for (int64_t begin = 0; begin < layout.background; begin += kChunkColumns) {
    int64_t end = std::min(begin + kChunkColumns, layout.background);
    int64_t groupEnd = std::min((begin / layout.group + 1) * layout.group, layout.background);
    for (int64_t row = 0; row < rows; ++row) {
      Group &group = groups[row];
      float *target = targets.row(row);
      if (begin % layout.group == 0) {
        group = Group();
        EncodeStatus status =
            zero[row] ? EncodeStatus::Ok
                      : codec.fit(groupEnd - begin, [&](int64_t i) { return double(target[begin + i]); }, group);
        if (status != EncodeStatus::Ok)
          return status;
      }
      double scale = halfToFloat(group.scale), offset = halfToFloat(group.zero);
      for (int64_t i = begin; i < end; ++i) {
        unsigned code = codec.code(group, zero[row] ? 0.0 : double(target[i]));
        codec.put(at, int(row), int(i - begin), code);
        settle(row, begin, end, i, codec.decode(code, scale, offset));
      }
    }
    targets.carry(begin, end);
    at += chunkBytes(Codec::kind);
    if (end == groupEnd) {
      for (int64_t row = 0; row < rows; ++row)
        storeParameters<Codec>(at, row, groups[row]);
      at += groupParameterBytes(Codec::kind);
    }
  }
  // Outliers are exact but for f16, so one may take up what another has lost.
  for (int64_t i = layout.background; i < layout.columns; ++i) {
    for (int64_t row = 0; row < rows; ++row) {
      uint16_t half = floatToHalf(targets.row(row)[i]);
      EncodeStatus status = storeOutlier(layout, tile, i - layout.background, row, targets.row(row)[i]);
      if (status != EncodeStatus::Ok)
        return status;
      settle(row, i, i + 1, i, halfToFloat(half));
    }
    targets.carry(i, i + 1);
  }
  return EncodeStatus::Ok;
}

/// As encodeGroupedTile; `feedback` has layout.columns columns in the order of `index`. A row whose codes would lose more than
/// zeros do becomes zeros: one that inputs hardly see (all alike, where inputs have no mean) has errors that they do see.
template <CodesColumns Codec>
EncodeStatus encodeTileWithFeedback(const Codec &codec, const WeightLayout &layout,
                                    const uint32_t *index, const float *weights, int64_t rowStride,
                                    int64_t rows, const Feedback &feedback, uint8_t *tile) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < layout.columns; ++i)
      if (!std::isfinite(weights[row * rowStride + i]))
        return EncodeStatus::NotFinite;
  Targets targets(feedback, index, weights, rowStride, rows);
  double asZeros[kTileRows] = {};
  addZeroLosses(targets, feedback, rows, asZeros);
  bool zero[kTileRows] = {};
  for (bool again = true; again;) {
    double losses[kTileRows] = {};
    std::memset(tile, 0, size_t(layout.tileBytes));
    targets.reset();
    if (EncodeStatus status = encodeTargets(codec, layout, targets, rows, feedback, zero, losses, tile); status != EncodeStatus::Ok)
      return status;
    again = false;
    for (int64_t row = 0; row < rows; ++row)
      if (!zero[row] && losses[row] > asZeros[row] * (1 + 1e-6))
        zero[row] = again = true;
  }
  return EncodeStatus::Ok;
}

/// The same for an encoding that is known at run time.
inline EncodeStatus encodeTileWithFeedback(const Encoding &encoding, const WeightLayout &layout,
                                           const uint32_t *index, const float *weights,
                                           int64_t rowStride, int64_t rows,
                                           const Feedback &feedback, uint8_t *tile) {
  return dispatch(encoding, [&](auto codec) {
    if constexpr (CodesColumns<decltype(codec)>)
      return encodeTileWithFeedback(codec, layout, index, weights, rowStride, rows, feedback, tile);
    else
      return EncodeStatus::NoFeedback;
  });
}

} // namespace otf

#endif // OTF_ENCODING_FEEDBACKTILE_H
