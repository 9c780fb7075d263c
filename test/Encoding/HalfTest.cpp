// SPDX-License-Identifier: Apache-2.0
//
// binary16 against arithmetic: every half, and the halfway points between neighbours.
#include "Encoding/Half.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace otf;

static_assert(floatToHalf(1.0f) == 0x3c00);
static_assert(halfToFloat(0x3c00) == 1.0f);

TEST(Half, RoundTripsEveryValue) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float value = halfToFloat(uint16_t(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(value))));
    else
      EXPECT_EQ(floatToHalf(value), bits);
  }
}

TEST(Half, ReadsTheDefinition) {
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    int exponent = int(bits >> 10);
    double fraction = double(bits & 0x3ff);
    double value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    EXPECT_EQ(halfToFloat(uint16_t(bits)), value);
    EXPECT_EQ(halfToFloat(uint16_t(bits | 0x8000)), -value);
  }
}

TEST(Half, RoundsTiesToEvenAndTheRestToNearest) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    double low = halfToFloat(uint16_t(bits)), high = halfToFloat(uint16_t(bits + 1));
    double middle = (low + high) / 2;
    EXPECT_EQ(doubleToHalf(middle), bits + (bits & 1));
    EXPECT_EQ(doubleToHalf(std::nextafter(middle, 0)), bits);
    EXPECT_EQ(doubleToHalf(std::nextafter(middle, 1e9)), bits + 1);
    EXPECT_EQ(doubleToHalf(-middle), 0x8000 | (bits + (bits & 1)));
  }
}

TEST(Half, OverflowsToInfinityFromTheMiddle) {
  EXPECT_EQ(doubleToHalf(kHalfMax), 0x7bff);
  EXPECT_EQ(doubleToHalf(65519.999), 0x7bff);
  EXPECT_EQ(doubleToHalf(65520), 0x7c00);
  EXPECT_EQ(doubleToHalf(1e300), 0x7c00);
  EXPECT_FALSE(halfIsFinite(doubleToHalf(-INFINITY)));
  EXPECT_FALSE(halfIsFinite(doubleToHalf(NAN)));
  EXPECT_TRUE(halfIsFinite(0x7bff));
}

TEST(Half, FlushesOnlyWhatIsBelowHalfTheSmallest) {
  EXPECT_EQ(doubleToHalf(kHalfTiny), 0);
  EXPECT_EQ(doubleToHalf(kHalfTiny * 1.0001), 1);
  EXPECT_EQ(doubleToHalf(-1e-300), 0x8000);
}
