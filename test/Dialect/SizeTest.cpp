// SPDX-License-Identifier: Apache-2.0
//
// Polynomial sizes: one canonical text, exact arithmetic, and refusal of what no tensor has.

#include "dialects/OTF/Size.h"

#include <gtest/gtest.h>

using otf::Size;

static Size parsed(const char *text) { return Size::parse(text).value(); }

TEST(Size, EqualPolynomialsHaveOneText) {
  EXPECT_EQ(parsed("s + past").str(), "past + s");
  EXPECT_EQ(parsed("2*(b + 1)*s - s").str(), "2*b*s + s");
  EXPECT_EQ(parsed("s - s").str(), "0");
  EXPECT_EQ(parsed("-s + 3").str(), "-s + 3");
}

TEST(Size, TextReadsBackAsItself) {
  for (const char *text : {"0", "7", "b", "2*b*s - 1", "past_sequence_length + sequence_length", "-b*b + s"})
    EXPECT_EQ(parsed(text).str(), text);
}

TEST(Size, OtherTextIsNoSize) {
  for (const char *text : {"", "a b", "a/2", "max(a, b)", "1.5", "(a", "a +", "9223372036854775808"})
    EXPECT_FALSE(Size::parse(text)) << text;
}

TEST(Size, FreeFormNamesBecomeOneSymbol) {
  EXPECT_EQ(Size::fromDimParam("num heads").str(), "num_heads");
  EXPECT_EQ(Size::fromDimParam("64").str(), "64");
}

TEST(Size, DividesWhereNothingIsLeft) {
  EXPECT_EQ(parsed("6*b*s").divide(parsed("2*b"))->str(), "3*s");
  EXPECT_FALSE(parsed("6*b*s + 1").divide(parsed("2*b")));
  EXPECT_FALSE(parsed("b").divide(parsed("b + s")));
  EXPECT_FALSE(parsed("b").divide(0));
}

TEST(Size, ComparesOnlyWhatHoldsForAllSymbols) {
  EXPECT_TRUE(parsed("past + s").isAtLeast(parsed("s")));
  EXPECT_FALSE(parsed("s").isAtLeast(512));
  EXPECT_FALSE(parsed("s").isAtLeast(parsed("b")));
}

TEST(Size, OverflowIsNotASize) {
  Size huge = INT64_MAX;
  EXPECT_FALSE((huge * 2).isValid());
  EXPECT_FALSE((huge + 1).isValid());
  EXPECT_FALSE((huge * 2 - huge * 2).constant());
  EXPECT_FALSE(Size::parse("9223372036854775807*2"));
  EXPECT_FALSE((Size(INT64_MIN)).divide(-1));
}

TEST(Size, ProductsOfManySumsEnd) {
  std::string text = "1";
  for (int i = 0; i != 40; ++i)
    text += "*(a" + std::to_string(i) + " + 1)";
  EXPECT_FALSE(Size::parse(text));
}

TEST(Size, EvaluatesWithinInt64) {
  EXPECT_EQ(parsed("2*b*s - 1").evaluate({{"b", 3}, {"s", 5}}), 29);
  EXPECT_FALSE(parsed("b*s").evaluate({{"b", INT64_MAX}, {"s", 2}}));
  EXPECT_FALSE(parsed("b").evaluate({}));
}
