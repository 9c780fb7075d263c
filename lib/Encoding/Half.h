// SPDX-License-Identifier: Apache-2.0
//
// IEEE binary16 by bits: scales, zero points and outlier columns are stored in it. Written with
// integers so that it needs no F16C, works in constant expressions and gives the same bytes on
// every host. Rounding is to nearest, ties to even; NaN stays NaN (quiet), and what is too large
// becomes infinity, which callers test for with halfIsFinite.
#ifndef OTF_ENCODING_HALF_H
#define OTF_ENCODING_HALF_H

#include <bit>
#include <cstdint>

namespace otf {

/// The largest finite half.
inline constexpr double kHalfMax = 65504;

/// Half of the distance between neighbouring subnormal halves: no finite value below kHalfMax is
/// rounded by more than this plus 2^-11 of itself.
inline constexpr double kHalfTiny = 0x1p-25;

constexpr bool halfIsFinite(uint16_t half) { return (half & 0x7c00) != 0x7c00; }

constexpr float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = (half >> 10) & 31;
  uint32_t fraction = half & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // A subnormal is fraction · 2^-24, which a float holds exactly.
  float value = float(fraction) * 0x1p-24f;
  return sign ? -value : value;
}

/// Rounds a double once. (Going through float first would round twice.)
constexpr uint16_t doubleToHalf(double value) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = uint16_t(bits >> 48 & 0x8000);
  bits &= ~(uint64_t(1) << 63);
  if (bits > uint64_t(0x7ff) << 52)
    return sign | 0x7e00;
  int exponent = int(bits >> 52) - 1023;
  if (exponent >= 16)
    return sign | 0x7c00;
  if (exponent < -25)
    return sign;
  // Below 2^-14 the unit in the last place stays 2^-24, so more of the significand is dropped.
  int dropped = 42 + (exponent < -14 ? -14 - exponent : 0);
  uint64_t significand = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  uint64_t kept = significand >> dropped;
  uint64_t rest = significand & ((uint64_t(1) << dropped) - 1);
  uint64_t half = uint64_t(1) << (dropped - 1);
  kept += rest > half || (rest == half && (kept & 1));
  // The hidden bit, and a carry out of the fraction, go up into the exponent by addition.
  if (exponent >= -14)
    kept += uint64_t(exponent + 14) << 10;
  return uint16_t(sign | kept);
}

/// A float is a double, so one rounding serves both.
constexpr uint16_t floatToHalf(float value) { return doubleToHalf(value); }

} // namespace otf

#endif // OTF_ENCODING_HALF_H
