// SPDX-License-Identifier: Apache-2.0
#include "lib/Analysis/EncodingCost.h"

#include "lib/Encoding/Planes.h"

#include <cmath>

namespace otf {

uint64_t storedBytes(int kind, int64_t group, int64_t rows, int64_t columns, int64_t outliers) {
  WeightLayout layout;
  Encoding encoding;
  encoding.kind = EncodingKind(kind);
  encoding.group = group;
  bool isLaidOut = makeLayout(encoding, rows, columns, outliers, layout) == EncodeStatus::Ok;
  return isLaidOut ? uint64_t(layout.blobBytes) : 0;
}

/// E[max x²] of `count` independent normal values: ∫ 2x (1 − P(|x| < x)^count) dx.
static double largestSquare(int64_t count) {
  double sum = 0;
  constexpr double step = 1.0 / 256;
  for (double x = step / 2; x < 10; x += step)
    sum += 2 * x * (1 - std::pow(std::erf(x * 0.7071067811865476), double(count))) * step;
  return sum;
}

double gaussianDistortion(int number, int64_t columns) {
  auto kind = EncodingKind(number);
  if (isPlain(kind))
    return 0;
  if (isPlanes(kind))
    return planesCode(kind).error;
  // Rounding to steps of the largest over 7 or 127 is uniform within a step, and exact for the
  // largest.
  if (kind == EncodingKind::Int4 || kind == EncodingKind::Int8) {
    double levels = kind == EncodingKind::Int4 ? 7 : 127;
    return largestSquare(columns) / (12 * levels * levels) * double(columns - 1) / double(columns);
  }
  return -1;
}

} // namespace otf
