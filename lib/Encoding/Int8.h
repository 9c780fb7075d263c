// SPDX-License-Identifier: Apache-2.0
//
// int8: weight = scale · q, q = −127 … 127. A chunk (8 rows × 32 columns) is 256 bytes,
// 8.5 bits a weight at group 32, 8.125 at 128:
//
//   byte 32·step + 4·row + b  =  q[row][4·step + b]            step 0…7, row 0…7, b 0…3
//
//   step 0   | row 0: c0 c1 c2 c3 | row 1: c0 c1 c2 c3 | ... | row 7: c0 c1 c2 c3 |   32 bytes
//   step 1   | row 0: c4 c5 c6 c7 | ...
//   ...
//   step 7   | row 0: c28 … c31   | ...
//
// q is two's complement; −128 never occurs, so |q| fits 7 bits and no ISA needs to widen it.
#ifndef OTF_ENCODING_INT8_H
#define OTF_ENCODING_INT8_H

#include "Symmetric.h"

namespace otf {

struct Int8Codec : Symmetric<127> {
  static constexpr EncodingKind kind = EncodingKind::Int8;

  static unsigned code(const Group &group, double weight) {
    return unsigned(quantize(group, weight)) & 0xff;
  }
  static void put(uint8_t *chunk, int row, int column, unsigned code) {
    chunk[32 * (column / 4) + 4 * row + column % 4] = uint8_t(code);
  }
  static unsigned get(const uint8_t *chunk, int row, int column) {
    return chunk[32 * (column / 4) + 4 * row + column % 4];
  }
  static double decode(unsigned code, double scale, double) { return scale * int8_t(code); }

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *index, const float *weights,
                          int64_t rowStride, int64_t rows, uint8_t *tile,
                          const GivenGroups *given = nullptr) const {
    return encodeGroupedTile(*this, layout, index, weights, rowStride, rows, tile, given);
  }
  void decodeTile(const WeightLayout &layout, const uint32_t *index, const uint8_t *tile,
                  double *out) const {
    decodeGroupedTile(*this, layout, index, tile, out);
  }
};

} // namespace otf

#endif // OTF_ENCODING_INT8_H
