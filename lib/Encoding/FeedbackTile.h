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

/// As encodeGroupedTile; `feedback` has layout.columns columns in the order of `index`.
template <CodesColumns Codec>
EncodeStatus encodeTileWithFeedback(const Codec &codec, const WeightLayout &layout,
                                    const uint32_t *index, const float *weights, int64_t rowStride,
                                    int64_t rows, const Feedback &feedback, uint8_t *tile) {
  std::memset(tile, 0, size_t(layout.tileBytes));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < layout.columns; ++i)
      if (!std::isfinite(weights[row * rowStride + i]))
        return EncodeStatus::NotFinite;
  Targets targets(feedback, index, weights, rowStride, rows);
  Group groups[kTileRows];
  uint8_t *at = tile;
  for (int64_t begin = 0; begin < layout.background; begin += kChunkColumns) {
    int64_t end = std::min(begin + kChunkColumns, layout.background);
    int64_t groupEnd = std::min((begin / layout.group + 1) * layout.group, layout.background);
    for (int64_t row = 0; row < rows; ++row) {
      Group &group = groups[row];
      float *target = targets.row(row);
      if (begin % layout.group == 0) {
        group = Group();
        EncodeStatus status = codec.fit(
            groupEnd - begin, [&](int64_t i) { return double(target[begin + i]); }, group);
        if (status != EncodeStatus::Ok)
          return status;
      }
      double scale = halfToFloat(group.scale), zero = halfToFloat(group.zero);
      for (int64_t i = begin; i < end; ++i) {
        unsigned code = codec.code(group, target[i]);
        codec.put(at, int(row), int(i - begin), code);
        targets.settle(row, begin, end, i, codec.decode(code, scale, zero));
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
      targets.settle(row, i, i + 1, i, halfToFloat(half));
    }
    targets.carry(i, i + 1);
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
