// SPDX-License-Identifier: Apache-2.0
#include "runtime/Text/ByteLevel.h"
#include "runtime/Text/Utf8.h"

#include <gtest/gtest.h>

namespace otf::text {
namespace {

TEST(Utf8, EveryCodePointRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000)
      continue;
    std::string text;
    appendUtf8(c, text);
    Utf8Step step = decodeUtf8(text);
    ASSERT_TRUE(step.valid);
    ASSERT_EQ(step.codePoint, c);
    ASSERT_EQ(step.length, text.size());
  }
}

TEST(Utf8, EveryProperPrefixOfACharacterIsTruncated) {
  for (std::string character : {"é", "你", "😀"})
    for (size_t size = 1; size < character.size(); ++size) {
      Utf8Step step = decodeUtf8(character.substr(0, size));
      EXPECT_TRUE(step.truncated);
      EXPECT_EQ(step.length, size);
    }
}

TEST(Utf8, RepairReplacesMaximalInvalidParts) {
  // Overlong form, surrogate, beyond U+10FFFF: each byte on its own.
  EXPECT_EQ(repairUtf8("\xC0\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(repairUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repairUtf8("\xF4\x90"), "\uFFFD\uFFFD");
  // A cut character is one part.
  EXPECT_EQ(repairUtf8("a\xF0\x9F\x98z"), "a\uFFFDz");
}

TEST(ByteLevel, EveryByteRoundTrips) {
  std::string bytes;
  for (int i = 0; i < 256; ++i)
    bytes += static_cast<char>(i);
  EXPECT_EQ(fromByteLevel(toByteLevel(bytes)), bytes);
  EXPECT_EQ(countCodePoints(toByteLevel(bytes)), 256u);
}

TEST(ByteLevel, SpaceIsG) { EXPECT_EQ(toByteLevel(" a"), "Ġa"); }

TEST(ByteLevel, TokenOutsideTheAlphabetStandsForItself) {
  EXPECT_EQ(fromByteLevel("你 Ġ"), "你 Ġ");
}

} // namespace
} // namespace otf::text
