// SPDX-License-Identifier: Apache-2.0
#include "runtime/Sizes.h"

#include <gtest/gtest.h>

#include <deque>

using namespace otf::runtime;

namespace {

// Symbols 0: past, 1: length, 2: batch.
const std::vector<std::string_view> names = {"past", "length", "batch"};
const Polynomial past = {{1, {0}}}, length = {{1, {1}}}, total = {{1, {0}}, {1, {1}}};

/// A binding keeps no copy of its equations' sizes.
const Polynomial &keep(Polynomial polynomial) {
  static std::deque<Polynomial> kept;
  return kept.emplace_back(std::move(polynomial));
}

TEST(Sizes, EqualPolynomialsAreOne) {
  SizeTable table;
  EXPECT_EQ(table.intern({{2, {1, 0}}}), table.intern({{2, {0, 1}}}));
  EXPECT_NE(table.intern({{2, {0}}}), table.intern({{2, {1}}}));
  EXPECT_EQ(table.count(), 3u);
}

TEST(Sizes, ASumIsSolvedForItsOneUnknown) {
  Binding b(names);
  b.set(0, 4);
  b.require(total, 7, "input", "mask", 1);
  ASSERT_TRUE(b.solve().ok());
  EXPECT_EQ(b.value(1), 3);
}

TEST(Sizes, OrderOfEquationsDoesNotMatter) {
  Binding b(names);
  b.require(total, 7, "input", "mask", 1);
  b.require(length, 2, "input", "ids", 1);
  ASSERT_TRUE(b.solve().ok());
  EXPECT_EQ(b.value(0), 5);
}

TEST(Sizes, AWrongExtentSaysWhatWasExpected) {
  Binding b(names);
  b.set(0, 4);
  b.require(length, 4, "input", "ids", 1);
  b.require(total, 5, "input", "mask", 1);
  EXPECT_EQ(b.solve().message(),
            "input 'mask': expected 8 on axis 1 = past + length (past = 4, length = 4), found 5");
}

TEST(Sizes, AConstantExtentIsChecked) {
  Binding b(names);
  b.require(keep({{64, {}}}), 63, "input", "x", 2);
  EXPECT_EQ(b.solve().message(), "input 'x': expected 64 on axis 2, found 63");
}

TEST(Sizes, ASizeThatDoesNotDivideIsRefused) {
  Binding b(names);
  b.require(keep({{2, {1}}}), 7, "input", "x", 0);
  EXPECT_EQ(b.solve().message(), "input 'x': 7 on axis 0 is not possible for 2*length");
}

TEST(Sizes, ANegativeSymbolIsRefused) {
  Binding b(names);
  b.require(keep({{1, {1}}, {10, {}}}), 7, "input", "x", 0);
  EXPECT_FALSE(b.solve().ok());
}

TEST(Sizes, ANegativeFactorIsSolved) {
  Binding b(names);
  b.require(keep({{10, {}}, {-1, {1}}}), 7, "input", "x", 0);
  ASSERT_TRUE(b.solve().ok());
  EXPECT_EQ(b.value(1), 3);
}

static const std::vector<uint8_t> none(8);

TEST(Sizes, ASymbolThatAStepBindsIsUnknownUntilThen) {
  SizeTable table;
  SizeId twice = table.intern({{2, {1}}}), five = table.intern({{5, {}}});
  Binding b(names);
  std::vector<uint8_t> late = {0, 1, 0};
  std::vector<int64_t> values;
  ASSERT_TRUE(table.evaluate(b, late, values).ok());
  EXPECT_EQ(values[twice], kUnknown);
  EXPECT_EQ(values[five], 5);
  b.set(1, 4);
  ASSERT_TRUE(table.evaluate(b, late, values).ok());
  EXPECT_EQ(values[twice], 8);
}

TEST(Sizes, ASymbolThatNothingBindsIsNamed) {
  SizeTable table;
  table.intern({{1, {2}}});
  Binding b(names);
  std::vector<int64_t> values;
  EXPECT_NE(table.evaluate(b, none, values).message().find("'batch'"), std::string::npos);
}

TEST(Sizes, OverflowIsAnError) {
  SizeTable table;
  table.intern({{INT64_MAX, {0}}});
  Binding b(names);
  b.set(0, 2);
  std::vector<int64_t> values;
  EXPECT_FALSE(table.evaluate(b, none, values).ok());
  b.set(0, 1);
  ASSERT_TRUE(table.evaluate(b, none, values).ok());
  EXPECT_EQ(values[0], INT64_MAX);
  for (int64_t extreme : {INT64_MIN, INT64_MAX}) {
    Binding c(names);
    c.require(keep({{-1, {1}}, {extreme, {}}}), 5, "input", "x", 0);
    (void)c.solve(); // must not trap
  }
}

TEST(Sizes, ASquareIsNotSolvedButChecked) {
  Binding b(names);
  b.require(keep({{1, {1, 1}}}), 9, "input", "x", 0);
  EXPECT_FALSE(b.solve().ok());
  b.clear();
  b.require(keep({{1, {1, 1}}}), 9, "input", "x", 0);
  b.require(length, 3, "input", "ids", 0);
  EXPECT_TRUE(b.solve().ok());
}

TEST(Sizes, TextReadsAsPeopleWriteIt) {
  Binding b(names);
  EXPECT_EQ(b.text({}), "0");
  EXPECT_EQ(b.text({{1, {0}}, {2, {1}}, {-3, {}}}), "past + 2*length - 3");
}

} // namespace
