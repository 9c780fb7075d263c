// SPDX-License-Identifier: Apache-2.0
//
// Tiles of encodings with groups: the walk over groups, chunks and the outlier panel that they all
// share (drawn in Layout.h). A codec adds what is its own:
//
//   static constexpr EncodingKind kind;
//   EncodeStatus fit(count, weightAt, Group &)        parameters of one group of one row
//   EncodeStatus take(scale, zero, Group &)           the same where they are given
//   unsigned code(const Group &, double weight)
//   static void put(uint8_t *chunk, int row, int column, unsigned code)   chunk starts as zeros
//   static unsigned get(const uint8_t *chunk, int row, int column)
//   double decode(unsigned code, double scale, double zero)
//
// Rows past the last and columns past the last are zero bits.
#ifndef OTF_ENCODING_GROUPED_H
#define OTF_ENCODING_GROUPED_H

#include "Half.h"
#include "Layout.h"

#include <cmath>
#include <cstring>

namespace otf {

/// Parameters of one group of one row: what is stored, and what codes are computed with.
struct Group {
  uint16_t scale = 0;
  uint16_t zero = 0;
  double center = 0;  ///< subtracted from a weight before ...
  double divisor = 1; ///< ... it is divided by this
  bool flat = false;  ///< all weights equal
  bool whole = false; ///< the least code of the type is used too
  float wideScale = 0, wideZero = 0; ///< what is stored where parameters are f32
};

/// A grid that somebody else chose: f32 scale and zero of each group of each row of a tile, at row · stride + group.
struct GivenGroups {
  const float *scale = nullptr, *zero = nullptr; ///< zero may be null
  int64_t stride = 0;
};

inline void storeHalf(uint8_t *at, uint16_t half) { std::memcpy(at, &half, 2); }
inline void storeFloat(uint8_t *at, float value) { std::memcpy(at, &value, 4); }

inline float loadFloat(const uint8_t *at) {
  float value;
  std::memcpy(&value, at, 4);
  return value;
}

inline uint16_t loadHalf(const uint8_t *at) {
  uint16_t half;
  std::memcpy(&half, at, 2);
  return half;
}

/// What ends a group, for one row.
template <typename Codec> void storeParameters(uint8_t *at, int64_t row, const Group &group) {
  if (hasFloatParameters(Codec::kind)) {
    storeFloat(at + 4 * row, group.wideScale);
    if (hasZeros(Codec::kind))
      storeFloat(at + 32 + 4 * row, group.wideZero);
    return;
  }
  storeHalf(at + 2 * row, group.scale);
  if (hasZeros(Codec::kind))
    storeHalf(at + 16 + 2 * row, group.zero);
}

/// Outlier column `outlier` of one row.
inline EncodeStatus storeOutlier(const WeightLayout &layout, uint8_t *tile, int64_t outlier,
                                 int64_t row, float value) {
  if (!std::isfinite(value))
    return EncodeStatus::NotFinite;
  uint16_t half = floatToHalf(value);
  if (!halfIsFinite(half))
    return EncodeStatus::OutOfRange;
  storeHalf(tile + layout.panelOffset + (outlier * kTileRows + row) * 2, half);
  return EncodeStatus::Ok;
}

/// The columns of a tile that are kept in f16.
inline EncodeStatus encodeOutlierPanel(const WeightLayout &layout, const uint32_t *index, const float *weights,
                                       int64_t rowStride, int64_t rows, uint8_t *tile) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < layout.outliers; ++i) {
      EncodeStatus status = storeOutlier(layout, tile, i, row, weights[row * rowStride + index[layout.background + i]]);
      if (status != EncodeStatus::Ok)
        return status;
    }
  return EncodeStatus::Ok;
}

template <typename Codec>
EncodeStatus encodeGroupedTile(const Codec &codec, const WeightLayout &layout,
                               const uint32_t *index, const float *weights, int64_t rowStride,
                               int64_t rows, uint8_t *tile, const GivenGroups *given) {
  constexpr int64_t codeBytes = chunkBytes(Codec::kind);
  std::memset(tile, 0, size_t(layout.tileBytes));
  for (int64_t row = 0; row < rows; ++row) {
    const float *w = weights + row * rowStride;
    uint8_t *at = tile;
    int64_t place = given ? row * given->stride : 0;
    for (int64_t begin = 0; begin < layout.background; begin += layout.group) {
      int64_t left = layout.background - begin;
      int64_t count = left < layout.group ? left : layout.group;
      auto weightAt = [&](int64_t i) {
        return double(w[index ? index[begin + i] : uint32_t(begin + i)]);
      };
      for (int64_t i = 0; i < count; ++i)
        if (!std::isfinite(weightAt(i)))
          return EncodeStatus::NotFinite;
      Group group;
      EncodeStatus status = given ? codec.take(given->scale[place], given->zero ? given->zero[place] : 0.0f, group)
                                  : codec.fit(count, weightAt, group);
      if (status != EncodeStatus::Ok)
        return status;
      ++place;
      for (int64_t i = 0; i < count; ++i)
        codec.put(at + i / kChunkColumns * codeBytes, int(row), int(i % kChunkColumns),
                  codec.code(group, weightAt(i)));
      at += (count + kChunkColumns - 1) / kChunkColumns * codeBytes;
      storeParameters<Codec>(at, row, group);
      at += groupParameterBytes(Codec::kind);
    }
  }
  return encodeOutlierPanel(layout, index, weights, rowStride, rows, tile);
}

template <typename Codec>
void decodeGroupedTile(const Codec &codec, const WeightLayout &layout, const uint32_t *index,
                       const uint8_t *tile, double *out) {
  constexpr int64_t codeBytes = chunkBytes(Codec::kind);
  for (int64_t row = 0; row < kTileRows; ++row) {
    double *w = out + row * layout.columns;
    const uint8_t *at = tile;
    for (int64_t begin = 0; begin < layout.background; begin += layout.group) {
      int64_t left = layout.background - begin;
      int64_t count = left < layout.group ? left : layout.group;
      const uint8_t *parameters = at + (count + kChunkColumns - 1) / kChunkColumns * codeBytes;
      constexpr bool wide = hasFloatParameters(Codec::kind);
      double scale = wide ? loadFloat(parameters + 4 * row) : halfToFloat(loadHalf(parameters + 2 * row));
      double zero = 0;
      if (hasZeros(Codec::kind))
        zero = wide ? loadFloat(parameters + 32 + 4 * row) : halfToFloat(loadHalf(parameters + 16 + 2 * row));
      for (int64_t i = 0; i < count; ++i)
        w[index ? index[begin + i] : uint32_t(begin + i)] =
            codec.decode(codec.get(at + i / kChunkColumns * codeBytes, int(row),
                                   int(i % kChunkColumns)),
                         scale, zero);
      at = parameters + groupParameterBytes(Codec::kind);
    }
    for (int64_t i = 0; i < layout.outliers; ++i)
      w[index[layout.background + i]] =
          halfToFloat(loadHalf(tile + layout.panelOffset + (i * kTileRows + row) * 2));
  }
}

} // namespace otf

#endif // OTF_ENCODING_GROUPED_H
