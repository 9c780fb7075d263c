// SPDX-License-Identifier: Apache-2.0
//
// f32 and f16 tiles, 32 and 16 bits a weight: no groups, no outlier columns, no padding of columns.
//
//   element 8·column + row  =  w[row][column]
//
//   column 0 | row 0 | row 1 | ... | row 7 |
//   column 1 | row 0 | ...
//
// A vector is eight rows, so a sum leaves one row a lane here as it does for the integer tiles.
#ifndef OTF_ENCODING_PLAIN_H
#define OTF_ENCODING_PLAIN_H

#include "Half.h"
#include "Grouped.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace otf {

/// `Element` says how a float is stored: its type, store() and load().
template <typename Element> struct PlainCodec {
  using Stored = typename Element::Stored;

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *, const float *weights,
                          int64_t rowStride, int64_t rows, uint8_t *tile,
                          const GivenGroups * = nullptr) const {
    std::memset(tile, 0, size_t(layout.tileBytes));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < layout.columns; ++column) {
        float value = weights[row * rowStride + column];
        if (!std::isfinite(value))
          return EncodeStatus::NotFinite;
        Stored stored = Element::store(value);
        if (!std::isfinite(Element::load(stored)))
          return EncodeStatus::OutOfRange;
        std::memcpy(tile + (column * kTileRows + row) * sizeof(Stored), &stored, sizeof(Stored));
      }
    return EncodeStatus::Ok;
  }

  void decodeTile(const WeightLayout &layout, const uint32_t *, const uint8_t *tile,
                  double *out) const {
    for (int64_t row = 0; row < kTileRows; ++row)
      for (int64_t column = 0; column < layout.columns; ++column) {
        Stored stored;
        std::memcpy(&stored, tile + (column * kTileRows + row) * sizeof(Stored), sizeof(Stored));
        out[row * layout.columns + column] = Element::load(stored);
      }
  }

  double errorBound(const float *group, int64_t count) const {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
      largest = std::max(largest, std::abs(double(group[i])));
    return Element::errorBound(largest);
  }
};

struct F32Element {
  using Stored = float;
  static float store(float value) { return value; }
  static float load(float stored) { return stored; }
  static double errorBound(double) { return 0; }
};

struct F16Element {
  using Stored = uint16_t;
  static uint16_t store(float value) { return floatToHalf(value); }
  static float load(uint16_t stored) { return halfToFloat(stored); }
  static double errorBound(double largest) { return largest * 0x1p-11 + kHalfTiny; }
};

using F32Codec = PlainCodec<F32Element>;
using F16Codec = PlainCodec<F16Element>;

} // namespace otf

#endif // OTF_ENCODING_PLAIN_H
