// SPDX-License-Identifier: Apache-2.0
#include "runtime/Text/Regex.h"

#include <gtest/gtest.h>

#include <string>

namespace otf::text {
namespace {

std::vector<std::string> matches(std::string_view pattern,
                                 std::string_view text) {
  auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex) << regex.error().message;
  auto spans = regex->findAll(text);
  EXPECT_TRUE(spans);
  std::vector<std::string> out;
  for (Span span : *spans)
    out.emplace_back(text.substr(span.begin, span.end - span.begin));
  return out;
}

using Strings = std::vector<std::string>;

TEST(Regex, SpaceIsUnicodeWhiteSpaceWithoutTheMongolianSeparator) {
  EXPECT_EQ(matches(R"(\s)", "a\u3000\u180e\u0085"),
            (Strings{"\u3000", "\u0085"}));
  EXPECT_EQ(matches(R"([^\S\r\n]+)", "a \u2003\nb"), (Strings{" \u2003"}));
}

TEST(Regex, ScriptMeansScriptNotExtensions) {
  // U+3001 is used with Han but belongs to no script.
  EXPECT_EQ(matches(R"(\p{Han}+)", "你、好"), (Strings{"你", "好"}));
}

TEST(Regex, LiteralTakesNoCharacterAsSpecial) {
  std::string text = "a.b\\E[\\Q*$^|é";
  auto regex = Regex::literal(text);
  ASSERT_TRUE(regex);
  EXPECT_EQ(regex->findAll("x" + text + "x")->size(), 1u);
  EXPECT_TRUE(regex->findAll("aXb")->empty());
}

TEST(Regex, EmptyMatchesAdvanceByWholeCharacters) {
  EXPECT_EQ(matches("x*", "é😀").size(), 3u);
}

TEST(Regex, UnsupportedConstructsAreNamed) {
  for (const char *pattern : {"[a[b]]", "[a&&b]", "a{1,2}+", R"(\h)"}) {
    auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex) << pattern;
    EXPECT_NE(regex.error().message.find("not supported"), std::string::npos);
  }
}

TEST(Regex, RunawayBacktrackingIsAnError) {
  auto regex = Regex::compile("(a+)+$");
  ASSERT_TRUE(regex);
  EXPECT_FALSE(regex->findAll(std::string(60, 'a') + "b"));
}

} // namespace
} // namespace otf::text
