// SPDX-License-Identifier: Apache-2.0
//
// What int8 and int4 have in common: weight = scale · q with q in [−limit, limit] and
// scale = f16(max|w| / limit), rounded before the codes are computed from it, so that they are the
// nearest ones to what a kernel multiplies by.
// The largest weight may then lie a little outside limit · scale; it is clipped.
#ifndef OTF_ENCODING_SYMMETRIC_H
#define OTF_ENCODING_SYMMETRIC_H

#include "Grouped.h"

#include <algorithm>

namespace otf {

template <int limit> struct Symmetric {
  template <typename WeightAt>
  static EncodeStatus fit(int64_t count, WeightAt weightAt, Group &group) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
      largest = std::max(largest, std::abs(weightAt(i)));
    group.scale = doubleToHalf(largest / limit);
    if (!halfIsFinite(group.scale))
      return EncodeStatus::OutOfRange;
    if (group.scale != 0)
      group.divisor = halfToFloat(group.scale);
    return EncodeStatus::Ok;
  }

  /// A grid that is given may use −limit − 1 too; every kernel is exact there.
  static EncodeStatus take(float scale, float zero, Group &group) {
    group.scale = floatToHalf(scale);
    if (zero != 0 || halfToFloat(group.scale) != scale)
      return EncodeStatus::NoGivenGrid;
    group.whole = true;
    if (scale != 0)
      group.divisor = scale;
    return EncodeStatus::Ok;
  }

  static int quantize(const Group &group, double weight) {
    return int(std::clamp(std::rint(weight / group.divisor), double(-limit - group.whole), double(limit)));
  }

  /// Half a step, and for the clipped largest weight what rounding took from the scale: 2^-11 of it
  /// is less than half a step, but a subnormal scale loses up to kHalfTiny.
  static double errorBound(const float *group, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i)
      largest = std::max(largest, std::abs(double(group[i])));
    double scale = halfToFloat(doubleToHalf(largest / limit));
    return scale / 2 + limit * kHalfTiny;
  }
};

} // namespace otf

#endif // OTF_ENCODING_SYMMETRIC_H
