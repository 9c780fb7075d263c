// SPDX-License-Identifier: Apache-2.0
#include "TinyTokenizer.h"
#include "runtime/Text/TextStream.h"
#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Utf8.h"

#include <gtest/gtest.h>

namespace otf::text {
namespace {

/// Everything a stream returns for bytes cut into parts of one size. Each
/// part that comes out must be UTF-8 of its own.
std::string streamed(std::string_view bytes, size_t partSize,
                     const std::vector<std::string> &stops) {
  TextStream stream(stops);
  std::string out;
  auto take = [&](const std::string &part) {
    EXPECT_EQ(part, repairUtf8(part));
    out += part;
  };
  for (size_t at = 0; at < bytes.size(); at += partSize)
    take(stream.pushBytes(bytes.substr(at, partSize)));
  take(stream.finish());
  return out;
}

TEST(TextStream, OutputDoesNotDependOnHowBytesAreCut) {
  std::string bytes = "héllo 你好 😀\xFF\xF0\x9F st sto stop! more";
  for (std::vector<std::string> stops :
       {std::vector<std::string>{}, {"stop"}, {"o s", "stop"}, {"好 😀x", "!"},
        {"more and more"}, {"top", "stop!"}})
    for (size_t size = 1; size <= bytes.size(); ++size)
      EXPECT_EQ(streamed(bytes, size, stops),
                streamed(bytes, bytes.size(), stops));
}

TEST(TextStream, StopStringAndTheRestAreNotReturned) {
  EXPECT_EQ(streamed("one<|end|>two", 3, {"<|end|>"}), "one");
}

TEST(TextStream, TheStopStringThatIsCompleteFirstWins) {
  EXPECT_EQ(streamed("abcd", 4, {"abcd", "bc"}), "a");
}

TEST(TextStream, TextThatMayBecomeAStopStringIsHeldBack) {
  TextStream stream({"STOP"});
  EXPECT_EQ(stream.pushBytes("a ST"), "a ");
  EXPECT_EQ(stream.pushBytes("ST"), "ST");
  EXPECT_EQ(stream.pushBytes("X"), "STX");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.pushBytes("STOP"), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.pushBytes("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, CharactersAreNeverCut) {
  TextStream stream({});
  EXPECT_EQ(stream.pushBytes("\xF0\x9F"), "");
  EXPECT_EQ(stream.pushBytes("\x98\x80"), "😀");
  EXPECT_EQ(stream.pushBytes("\xE4\xBD"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
}

TEST(TextStream, StreamedTokensEqualDecode) {
  auto tokenizer = Tokenizer::fromJson(tinyTokenizerJson());
  ASSERT_TRUE(tokenizer);
  std::vector<int32_t> ids;
  for (int i = 0; i < 2000; ++i)
    ids.push_back(i * 7919 % 263);
  TextStream stream({});
  std::string out;
  for (int32_t id : ids)
    out += stream.push(*tokenizer, id);
  EXPECT_EQ(out + stream.finish(), tokenizer->decode(ids, true));
}

} // namespace
} // namespace otf::text
