// SPDX-License-Identifier: Apache-2.0
//
// A second packer, written from the drawings only and bit by bit: for every bit of a tile it asks
// which bit of which code belongs there. Slow and independent of lib/Encoding's put and get.
#ifndef OTF_TEST_ENCODING_DRAWING_H
#define OTF_TEST_ENCODING_DRAWING_H

#include "Encoding/Codec.h"

#include <functional>
#include <vector>

namespace otf::test {

/// What a group stores for one row.
struct RowGroup {
  uint16_t scale, zero;
};

/// code(row, column) is the stored bit pattern of a background column, 0 where there is none.
inline std::vector<uint8_t>
drawTile(EncodingKind kind, int64_t background, int64_t group,
         const std::function<unsigned(int, int64_t)> &code,
         const std::function<RowGroup(int, int64_t)> &parameters,
         const std::vector<std::vector<uint16_t>> &panel) {
  std::vector<uint8_t> tile;
  int64_t chunks = (background + 31) / 32;
  int64_t perGroup = group == 0 ? chunks : group / 32;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int bits = kind == EncodingKind::Int8 ? 8 : kind == EncodingKind::Int4 ? 4 : 2;
    for (int byte = 0; byte < 32 * bits; ++byte) {
      int vector = byte / 32, row = byte % 32 / 4, b = byte % 4;
      unsigned value = 0;
      for (int bit = 0; bit < 8; ++bit) {
        int column = 0;
        if (kind == EncodingKind::Int8)
          column = 4 * vector + b;
        else if (kind == EncodingKind::Int4)
          column = bit < 4 ? 4 * vector + b : 16 + 4 * vector + b;
        else
          column = 16 * vector + 4 * (bit / 2) + b;
        unsigned codeBit = code(row, 32 * chunk + column) >> (bit % bits) & 1;
        value |= codeBit << bit;
      }
      tile.push_back(uint8_t(value));
    }
    if ((chunk + 1) % perGroup != 0 && chunk + 1 != chunks)
      continue;
    auto halves = [&](auto half) {
      for (int row = 0; row < 8; ++row) {
        uint16_t h = half(row);
        tile.push_back(uint8_t(h & 0xff));
        tile.push_back(uint8_t(h >> 8));
      }
    };
    halves([&](int row) { return parameters(row, chunk / perGroup).scale; });
    if (kind == EncodingKind::Codebook2)
      halves([&](int row) { return parameters(row, chunk / perGroup).zero; });
  }
  for (const std::vector<uint16_t> &column : panel)
    for (uint16_t half : column) {
      tile.push_back(uint8_t(half & 0xff));
      tile.push_back(uint8_t(half >> 8));
    }
  return tile;
}

} // namespace otf::test

#endif // OTF_TEST_ENCODING_DRAWING_H
