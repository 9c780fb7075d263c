// SPDX-License-Identifier: Apache-2.0
//
// A row of a key or value cache: the elements of one head at one position, as memory holds them.
//
//   f32   float[width]
//   f16   half[width]; to nearest even, and what is beyond the largest half becomes that
//   i8    int8_t q[width], float scale: x = q · scale, symmetric, q from −127 to 127
//
// The scale lies behind its row, so that attention streams one pointer and a row is appended,
// copied and forgotten by itself. It keeps 16 bits of significand, rounded up: then q · scale and
// 127 · scale are exact in f32, and rows that are read as floats and written again have the same bytes.
// This is the one definition, for kernels, runtime and reference.
#ifndef OTF_ENCODING_CACHEROW_H
#define OTF_ENCODING_CACHEROW_H

#include "Half.h"

#include <cmath>
#include <cstring>

namespace otf {

inline constexpr int64_t kCacheScaleBytes = 4;

/// The scale of a row whose largest magnitude is `largest`: 0 where that is too small to be divided by, NaN, and so the whole row,
/// where it is not finite.
inline float cacheScale(float largest) {
  constexpr uint32_t dropped = 0xff;
  if (!(largest <= 0x1.fffffep127f))
    return std::bit_cast<float>(0x7fc00000u);
  const float scale = largest / 127;
  if (scale < 0x1p-126f)
    return 0;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(scale) + dropped) & ~dropped);
}

inline uint16_t cacheHalf(float value) {
  constexpr float most = float(kHalfMax);
  return doubleToHalf(value > most ? most : value < -most ? -most : value);
}

/// width + kCacheScaleBytes bytes.
inline void encodeCacheRow(const float *x, int64_t width, void *row) {
  uint32_t largest = 0; // as bits, which order infinity and NaN last
  for (int64_t i = 0; i < width; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  const float scale = cacheScale(std::bit_cast<float>(largest));
  auto *codes = static_cast<int8_t *>(row);
  for (int64_t i = 0; i < width; ++i)
    codes[i] = scale > 0 ? int8_t(std::nearbyint(x[i] / scale)) : int8_t(0);
  std::memcpy(codes + width, &scale, sizeof scale);
}

inline void decodeCacheRow(const void *row, int64_t width, float *x) {
  auto *codes = static_cast<const int8_t *>(row);
  float scale;
  std::memcpy(&scale, codes + width, sizeof scale);
  for (int64_t i = 0; i < width; ++i)
    x[i] = float(codes[i]) * scale;
}

} // namespace otf

#endif // OTF_ENCODING_CACHEROW_H
