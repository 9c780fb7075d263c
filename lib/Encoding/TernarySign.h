// SPDX-License-Identifier: Apache-2.0
//
// ternary_sign: weight = scale · t + zero · (2 · bit − 1), t = −1, 0, 1: a ternary code and one bit
// of what it leaves, six levels in three bits. A chunk (8 rows × 32 columns) is 96 bytes, 3.5 bits
// a weight at group 64. The code is (t + 1) + 4 · bit.
//
//   byte 32·v + 4·row + b       bits 2j+1, 2j  =  t + 1 of q[row][16·v + 4·j + b]     v 0…1, row
//   0…7, b 0…3, j 0…3, as in codebook2 byte 64 + 4·row + b         bit j          =  bit of
//   q[row][4·j + b]              j 0…7
//
//   bits  | row 0: c0 c4 … c28 | c1 c5 … | c2 … | c3 … || row 1: ... |   32 bytes (low bits first
//   within a byte)
//
// So a shift and an AND give a step of eight rows, of either part. Both products with activations
// are exact integers: weight · x = scale · Σ t x + zero · (2 · Σ bit x − Σ x).
//
// The published code (turboquant): scale = mean|w|, t = the nearest of −1, 0, 1; zero = mean|w −
// scale · t| with the scale as it is stored, bit its sign. `joint` takes the nearest of all six
// levels and fits both parameters by least squares, three times over: for a normal distribution
// .0553 of its energy instead of .1316, groups of 64.
#ifndef OTF_ENCODING_TERNARYSIGN_H
#define OTF_ENCODING_TERNARYSIGN_H

#include "Grouped.h"

#include <algorithm>

namespace otf {

struct TernarySignCodec {
  static constexpr EncodingKind kind = EncodingKind::TernarySign;
  static constexpr int rounds = 3; ///< of the joint fit

  bool joint = false;

  template <typename WeightAt>
  EncodeStatus fit(int64_t count, WeightAt weightAt, Group &group) const {
    double n = double(count), magnitude = 0;
    for (int64_t i = 0; i < count; ++i)
      magnitude += std::abs(weightAt(i));
    magnitude /= n;
    if (joint)
      return fitBoth(count, weightAt, magnitude, group);
    group.scale = doubleToHalf(magnitude);
    if (!halfIsFinite(group.scale))
      return EncodeStatus::OutOfRange;
    set(group);
    double rest = 0;
    for (int64_t i = 0; i < count; ++i)
      rest += std::abs(weightAt(i) - group.center * ternary(group, weightAt(i)));
    group.zero = doubleToHalf(rest / n);
    return halfIsFinite(group.zero) ? EncodeStatus::Ok : EncodeStatus::OutOfRange;
  }

  /// Levels are its own.
  static EncodeStatus take(float, float, Group &) { return EncodeStatus::NoGivenGrid; }

  unsigned code(const Group &group, double weight) const {
    if (joint)
      return nearest(group.center, group.divisor, weight);
    double t = ternary(group, weight);
    return unsigned(int(t) + 1) + (weight - group.center * t >= 0 ? 4 : 0);
  }
  static void put(uint8_t *chunk, int row, int column, unsigned code) {
    chunk[byteOf(row, column)] |= uint8_t((code & 3) << shiftOf(column));
    chunk[signByteOf(row, column)] |= uint8_t((code >> 2) << column / 4);
  }
  static unsigned get(const uint8_t *chunk, int row, int column) {
    unsigned t = chunk[byteOf(row, column)] >> shiftOf(column) & 3u;
    return t | (chunk[signByteOf(row, column)] >> column / 4 & 1u) << 2;
  }
  static int ternaryOf(unsigned code) { return int(code & 3) - 1; }
  static int signOf(unsigned code) { return code & 4 ? 1 : -1; }
  static double decode(unsigned code, double scale, double zero) {
    return scale * ternaryOf(code) + zero * signOf(code);
  }

  /// What the ternary part leaves is at most half a step, or what is beyond the last one; the sign
  /// moves it by its mean.
  static double errorBound(const float *group, int64_t count) {
    double magnitude = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      magnitude += std::abs(double(group[i])) / double(count);
      largest = std::max(largest, std::abs(double(group[i])));
    }
    double rest = std::max(largest - magnitude, magnitude / 2) + magnitude * 0x1p-10;
    return 2 * rest + 4 * kHalfTiny;
  }

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
  static int byteOf(int row, int column) { return 32 * (column / 16) + 4 * row + column % 4; }
  static int shiftOf(int column) { return column % 16 / 4 * 2; }
  static int signByteOf(int row, int column) { return 64 + 4 * row + column % 4; }

  /// What codes are computed with: the scale as stored, and what to divide by.
  static void set(Group &group) {
    group.center = halfToFloat(group.scale);
    group.divisor = group.center == 0 ? 1 : group.center;
  }
  static double ternary(const Group &group, double weight) {
    return std::clamp(std::rint(weight / group.divisor), -1.0, 1.0);
  }

  /// The nearest level; of two the higher.
  static unsigned nearest(double scale, double zero, double weight) {
    unsigned best = 0;
    double least = 0, level = 0;
    for (unsigned code : {0u, 1u, 2u, 4u, 5u, 6u}) {
      double here = decode(code, scale, zero), distance = std::abs(weight - here);
      if (code == 0 || distance < least || (distance == least && here > level)) {
        best = code;
        least = distance;
        level = here;
      }
    }
    return best;
  }

  template <typename WeightAt>
  EncodeStatus fitBoth(int64_t count, WeightAt weightAt, double magnitude, Group &group) const {
    double sigma = magnitude / .798, scale = 1.44 * sigma, zero = .38 * sigma;
    for (int round = 0; round < rounds; ++round) {
      // The normal equations of Σ (w − scale · t − zero · s)²; s² is 1.
      double tt = 0, ts = 0, tw = 0, sw = 0, n = double(count);
      for (int64_t i = 0; i < count; ++i) {
        unsigned code = nearest(scale, zero, weightAt(i));
        double t = ternaryOf(code), s = signOf(code);
        tt += t * t;
        ts += t * s;
        tw += t * weightAt(i);
        sw += s * weightAt(i);
      }
      double determinant = tt * n - ts * ts;
      if (determinant <=
          0) { // t is the sign throughout, or 0: the weights are ±their mean magnitude
        scale = magnitude;
        zero = 0;
        break;
      }
      scale = (tw * n - sw * ts) / determinant;
      zero = (sw * tt - tw * ts) / determinant;
    }
    group.scale = doubleToHalf(scale);
    group.zero = doubleToHalf(zero);
    group.center = halfToFloat(group.scale);
    group.divisor = halfToFloat(group.zero); // of no division here: the other level
    return halfIsFinite(group.scale) && halfIsFinite(group.zero) ? EncodeStatus::Ok
                                                                 : EncodeStatus::OutOfRange;
  }
};

} // namespace otf

#endif // OTF_ENCODING_TERNARYSIGN_H
