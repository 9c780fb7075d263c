// SPDX-License-Identifier: Apache-2.0
//
// grid8, grid4, grid2 and, with zeros, grid8z, grid4z, grid2z: the grid that a model's file has its weights on, kept as it is.
// weight = scale · q, and + zero with zeros; q = −2^(N−1) … 2^(N−1) − 1. Codes lie as in int8 (grid8), as in int4, stored as q + 8
// (grid4), or as in codebook2, stored as q + 2 (grid2). A group ends with its parameters:
//
//   f32 scale[8]                                                32 bytes
//   f32 zero[8]     grid8z, grid4z, grid2z                      32 bytes
//
// So group 32 takes 5 bits a weight with grid4 and 6 with grid4z, group 128 4.25 and 4.5. Scales are f32, because files have f32
// scales, and what is kept must not change; a file's zero point p becomes zero = −scale · (p − offset), rounded to f32 once.
#ifndef OTF_ENCODING_GRID_H
#define OTF_ENCODING_GRID_H

#include "Codebook2.h"
#include "Int4.h"
#include "Int8.h"

#include <type_traits>

namespace otf {

template <int bits, bool zeros> struct GridCodec {
  static_assert(bits == 8 || bits == 4 || bits == 2);
  static constexpr EncodingKind kind = bits == 8   ? (zeros ? EncodingKind::Grid8z : EncodingKind::Grid8)
                                       : bits == 4 ? (zeros ? EncodingKind::Grid4z : EncodingKind::Grid4)
                                                   : (zeros ? EncodingKind::Grid2z : EncodingKind::Grid2);
  static constexpr int low = -(1 << (bits - 1)), high = -low - 1;
  using Place = std::conditional_t<bits == 8, Int8Codec, std::conditional_t<bits == 4, Int4Codec, Codebook2Codec>>;

  /// Symmetric, where nobody gave a grid.
  template <typename WeightAt> static EncodeStatus fit(int64_t count, WeightAt weightAt, Group &group) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
      largest = std::max(largest, std::abs(weightAt(i)));
    return take(float(largest / high), 0, group);
  }
  static EncodeStatus take(float scale, float zero, Group &group) {
    if (!std::isfinite(scale) || !std::isfinite(zero))
      return EncodeStatus::NotFinite;
    group.wideScale = scale;
    group.wideZero = zero;
    group.center = zero;
    if (scale != 0)
      group.divisor = scale;
    return EncodeStatus::Ok;
  }

  static unsigned code(const Group &group, double weight) {
    double q = std::rint((weight - group.center) / group.divisor);
    int clamped = int(std::clamp(q, double(low), double(high)));
    return bits == 8 ? unsigned(clamped) & 0xff : unsigned(clamped - low);
  }
  static void put(uint8_t *chunk, int row, int column, unsigned code) { Place::put(chunk, row, column, code); }
  static unsigned get(const uint8_t *chunk, int row, int column) { return Place::get(chunk, row, column); }
  static double decode(unsigned code, double scale, double zero) {
    return scale * (bits == 8 ? int(int8_t(code)) : int(code) + low) + zero;
  }

  /// Half a step, and what the largest weight loses to the rounding of its scale.
  static double errorBound(const float *group, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
      largest = std::max(largest, std::abs(double(group[i])));
    return largest / high / 2 + largest * 0x1p-22 + 0x1p-149 * high;
  }

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *index, const float *weights, int64_t rowStride,
                          int64_t rows, uint8_t *tile, const GivenGroups *given) const {
    return encodeGroupedTile(*this, layout, index, weights, rowStride, rows, tile, given);
  }
  void decodeTile(const WeightLayout &layout, const uint32_t *index, const uint8_t *tile, double *out) const {
    decodeGroupedTile(*this, layout, index, tile, out);
  }
};

} // namespace otf

#endif // OTF_ENCODING_GRID_H
