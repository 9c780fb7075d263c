// SPDX-License-Identifier: Apache-2.0
//
// planes<w,k>, written planes3x2 for w = 3, k = 2: k bits a weight. The 32 weights of a row in a chunk are k words of 32 bits, one a
// plane, and weight i reads the w bits of each word that begin at bit i, the word being a circle:
//
//     sum    = Σ_p table[p][rotr32(word_p, i) mod 2^w]           an integer from 0 to 127
//     weight = scale · (sum − offset)
//
// A chunk (8 rows × 32 columns) is 32·k bytes; with one scale a row that is k bits a weight and 16/K:
//
//   byte 32·p + 4·row …  =  word p of the row, lowest byte first                       p 0…k−1, row 0…7
//
//   plane 0   | row 0: u32 | row 1: u32 | ... | row 7: u32 |   32 bytes
//   ...
//   one word  | b0 b1 b2 b3 … b31 |      weight 0 reads b0 b1 b2, weight 1 b1 b2 b3, …, weight 31 b31 b0 b1    (w = 3)
//
// So neighbours share bits and the code is a trellis of 2^((w−1)k) states; Trellis.h searches it. The tables were found by
// alternating that search with least squares on Gaussian rows; sums stay below 128, so planes add as bytes and products with int8
// activations fit 16 bits in pairs (lib/Codegen/CPU/kernels/Dot.h). The offset is the trained one rounded to an integer, which keeps dot products
// exact. On a Gaussian that gives .312 / .084 / .0216 / .0054 at 1 / 2 / 3 / 4 bits with w = 3, where the best scalar quantizer has
// .363 / .1175 / .0345 / .0095. Columns past the last have whatever codes suit their neighbours.
#ifndef OTF_ENCODING_PLANES_H
#define OTF_ENCODING_PLANES_H

#include "Layout.h"

#include <bit>

namespace otf {

struct PlanesCode {
  int window, planes;
  double step;  ///< scale of a row of variance 1, which the first search takes
  int offset;   ///< what a sum means 0 by
  double error; ///< mean squared error of a Gaussian of variance 1
  uint8_t table[4][16];
};

/// In the order of the kinds.
inline constexpr PlanesCode kPlanesCodes[] = {
    {3, 1, 0.01886, 63, .3115, {{126, 43, 2, 83, 44, 127, 84, 0}}},
    {3, 2, 0.03652, 62, .0843, {{30, 0, 22, 45, 7, 65, 44, 23}, {16, 50, 45, 21, 56, 15, 0, 62}}},
    {3,
     3,
     0.04888,
     63,
     .0217,
     {{6, 28, 43, 4, 33, 0, 14, 33}, {15, 48, 12, 20, 0, 27, 27, 40}, {21, 9, 15, 36, 11, 30, 24, 0}}},
    {3,
     4,
     0.05302,
     60,
     .0054,
     {{11, 26, 18, 5, 21, 12, 0, 35},
      {36, 26, 0, 36, 20, 16, 22, 3},
      {23, 6, 16, 0, 6, 12, 31, 21},
      {12, 13, 25, 0, 14, 5, 0, 23}}},
    {4, 1, 0.02696, 62, .305, {{91, 36, 37, 86, 127, 47, 72, 24, 35, 90, 86, 44, 50, 99, 0, 79}}},
    {4,
     2,
     0.04409,
     65,
     .0807,
     {{12, 34, 28, 57, 36, 16, 49, 0, 40, 65, 33, 14, 24, 42, 16, 52},
      {22, 58, 12, 37, 41, 20, 31, 62, 44, 31, 41, 0, 21, 44, 49, 23}}},
    {4,
     3,
     0.05591,
     65,
     .021,
     {{6, 12, 21, 8, 21, 17, 25, 33, 0, 25, 17, 28, 35, 29, 14, 22},
      {48, 15, 24, 39, 0, 19, 23, 41, 19, 18, 29, 33, 23, 27, 11, 23},
      {18, 39, 24, 17, 44, 7, 7, 0, 8, 17, 7, 25, 22, 31, 44, 16}}},
};

constexpr const PlanesCode &planesCode(EncodingKind kind) {
  return kPlanesCodes[int(kind) - int(EncodingKind::Planes3x1)];
}

/// The sum of weight `column` of a row, 0 to 127; word p of the row is words[p · stride].
constexpr int planesSum(const PlanesCode &code, const uint32_t *words, int64_t stride, int column) {
  int sum = 0;
  for (int p = 0; p < code.planes; ++p)
    sum += code.table[p][std::rotr(words[p * stride], column) & ((1u << code.window) - 1)];
  return sum;
}

} // namespace otf

#endif // OTF_ENCODING_PLANES_H
