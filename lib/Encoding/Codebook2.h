// SPDX-License-Identifier: Apache-2.0
//
// codebook2: weight = scale · table[q] + zero, q = 0 … 3, table of four int8 that the whole tensor
// shares. A chunk (8 rows × 32 columns) is 64 bytes, 3 bits a weight at group 32:
//
//   byte 32·v + 4·row + b                                       v 0…1, row 0…7, b 0…3
//     bits 2j+1, 2j  =  q[row][16·v + 4·j + b]                  j 0…3
//
//   v 0   | row 0: c0 c4 c8 c12 | c1 c5 c9 c13 | c2 … | c3 … || row 1: ... |   32 bytes
//   v 1   | row 0: c16 c20 c24 c28 | ...                     (low bits first within a byte)
//
// So a shift and an AND give a step of eight rows.
//
// The published code is weight = S · c[q] + Z, c = ±0.45, ±1.52: about the best four levels for a
// normal distribution, which are ±0.4528, ±1.510. Here the table is
// −125, −37, 37, 125 and scale = f16(S · 1.52 / 125). 37/125 · 1.52 = 0.44992 is 0.018 % off 0.45;
// f16 rounds S itself by up to 0.024 % (significand near 2) to 0.049 % (near 1). The inner levels
// thus move by less than storing S may move them, and integer dot products stay exact.
#ifndef OTF_ENCODING_CODEBOOK2_H
#define OTF_ENCODING_CODEBOOK2_H

#include "Grouped.h"

#include <algorithm>

namespace otf {

struct Codebook2Codec {
  static constexpr EncodingKind kind = EncodingKind::Codebook2;
  static constexpr double levels[4] = {-1.52, -0.45, 0.45, 1.52};
  static constexpr double unit = 1.52 / 125; ///< a level is about table · unit
  static constexpr double threshold = 0.985; ///< midpoint of the positive levels
  static constexpr double epsilon = 1e-8;

  uint32_t table = kCodebook2Table;

  int entry(unsigned code) const { return int8_t(table >> 8 * code); }

  template <typename WeightAt>
  EncodeStatus fit(int64_t count, WeightAt weightAt, Group &group) const {
    double n = double(count), mean = 0, low = weightAt(0), high = low;
    for (int64_t i = 0; i < count; ++i) {
      mean += weightAt(i) / n;
      low = std::min(low, weightAt(i));
      high = std::max(high, weightAt(i));
    }
    if (low == high) {
      group.flat = true;
      group.zero = doubleToHalf(low);
      return halfIsFinite(group.zero) ? EncodeStatus::Ok : EncodeStatus::OutOfRange;
    }
    double variance = 0;
    for (int64_t i = 0; i < count; ++i)
      variance += (weightAt(i) - mean) * (weightAt(i) - mean) / n;
    group.center = mean;
    if (variance > 0)
      group.divisor = std::sqrt(variance);
    // The codes are now fixed; scale and zero are their least-squares line through the weights.
    double levelMean = 0;
    for (int64_t i = 0; i < count; ++i)
      levelMean += levels[code(group, weightAt(i))] / n;
    double covariance = 0, spread = 0;
    for (int64_t i = 0; i < count; ++i) {
      double level = levels[code(group, weightAt(i))] - levelMean;
      covariance += (weightAt(i) - mean) * level;
      spread += level * level;
    }
    double scale = covariance / (spread + epsilon);
    group.scale = doubleToHalf(scale * unit);
    group.zero = doubleToHalf(mean - scale * levelMean);
    return halfIsFinite(group.scale) && halfIsFinite(group.zero) ? EncodeStatus::Ok
                                                                 : EncodeStatus::OutOfRange;
  }

  /// Levels are its own.
  static EncodeStatus take(float, float, Group &) { return EncodeStatus::NoGivenGrid; }

  static unsigned code(const Group &group, double weight) {
    if (group.flat)
      return 2;
    double t = (weight - group.center) / group.divisor;
    return unsigned(t >= -threshold) + unsigned(t >= 0) + unsigned(t >= threshold);
  }
  static void put(uint8_t *chunk, int row, int column, unsigned code) {
    chunk[byteOf(row, column)] |= uint8_t(code << shiftOf(column));
  }
  static unsigned get(const uint8_t *chunk, int row, int column) {
    return chunk[byteOf(row, column)] >> shiftOf(column) & 3u;
  }
  double decode(unsigned code, double scale, double zero) const {
    return scale * entry(code) + zero;
  }

  /// A least-squares line leaves no larger sum of squares than the mean does, so no single error
  /// above sqrt(n) σ; then the rounding of scale (times 125), of zero, and of the inner levels.
  static double errorBound(const float *group, int64_t count) {
    double n = double(count), mean = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      mean += double(group[i]) / n;
      largest = std::max(largest, std::abs(double(group[i])));
    }
    for (int64_t i = 0; i < count; ++i)
      squares += (group[i] - mean) * (group[i] - mean);
    double residual = std::sqrt(squares);
    // Levels that differ at all differ by .9, so two codes give Σ(c−c̄)² ≥ .4 and S ≤ residual/√.4.
    double scale = residual / std::sqrt(0.4);
    double zero = largest + 1.52 * scale;
    double scaleRounding = 125 * (scale * unit * 0x1p-11 + kHalfTiny);
    double levelRounding = scale * (0.45 - 37 * unit);
    return residual + scaleRounding + levelRounding + zero * 0x1p-11 + kHalfTiny;
  }

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *index, const float *weights,
                          int64_t rowStride, int64_t rows, uint8_t *tile,
                          const GivenGroups *given = nullptr) const {
    // Thresholds and levels above are those of this table only; any table decodes.
    if (table != kCodebook2Table)
      return EncodeStatus::BadTable;
    return encodeGroupedTile(*this, layout, index, weights, rowStride, rows, tile, given);
  }
  void decodeTile(const WeightLayout &layout, const uint32_t *index, const uint8_t *tile,
                  double *out) const {
    decodeGroupedTile(*this, layout, index, tile, out);
  }

private:
  static int byteOf(int row, int column) {
    return 32 * (column / 16) + 4 * row + column % 4;
  }
  static int shiftOf(int column) { return column % 16 / 4 * 2; }
};

} // namespace otf

#endif // OTF_ENCODING_CODEBOOK2_H
