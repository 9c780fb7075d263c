// SPDX-License-Identifier: Apache-2.0
//
// int4: weight = scale · q, q = −7 … 7, stored as q + 8. A chunk (8 rows × 32 columns) is 128 bytes,
// 4.5 bits a weight at group 32, 4.125 at 128:
//
//   byte 32·v + 4·row + b                                       v 0…3, row 0…7, b 0…3
//     bits 3…0  =  q[row][4·v + b] + 8
//     bits 7…4  =  q[row][16 + 4·v + b] + 8
//
//   v 0   | row 0: c0|c16 c1|c17 c2|c18 c3|c19 | row 1: ... | row 7: ... |   32 bytes
//   v 1   | row 0: c4|c20 ...
//
// One AND and one shift give two steps of eight rows. Nibble 0 occurs only as padding, where the
// activation is 0 too. Stored unsigned, because x86 multiplies unsigned by signed bytes; kernels
// take 8 · Σx off again.
#ifndef OTF_ENCODING_INT4_H
#define OTF_ENCODING_INT4_H

#include "Symmetric.h"

namespace otf {

struct Int4Codec : Symmetric<7> {
  static constexpr EncodingKind kind = EncodingKind::Int4;

  static unsigned code(const Group &group, double weight) {
    return unsigned(quantize(group, weight) + 8);
  }
  static void put(uint8_t *chunk, int row, int column, unsigned code) {
    chunk[byteOf(row, column)] |= uint8_t(code << shiftOf(column));
  }
  static unsigned get(const uint8_t *chunk, int row, int column) {
    return chunk[byteOf(row, column)] >> shiftOf(column) & 15u;
  }
  static double decode(unsigned code, double scale, double) { return scale * (int(code) - 8); }

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *index, const float *weights,
                          int64_t rowStride, int64_t rows, uint8_t *tile,
                          const GivenGroups *given = nullptr) const {
    return encodeGroupedTile(*this, layout, index, weights, rowStride, rows, tile, given);
  }
  void decodeTile(const WeightLayout &layout, const uint32_t *index, const uint8_t *tile,
                  double *out) const {
    decodeGroupedTile(*this, layout, index, tile, out);
  }

private:
  static int byteOf(int row, int column) {
    return 32 * (column % 16 / 4) + 4 * row + column % 4;
  }
  static int shiftOf(int column) { return column / 16 * 4; }
};

} // namespace otf

#endif // OTF_ENCODING_INT4_H
