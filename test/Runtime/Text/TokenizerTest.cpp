// SPDX-License-Identifier: Apache-2.0
//
// What can be checked by eye; tokenizer_oracle.py compares the rest with the
// reference.
#include "TinyTokenizer.h"
#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Utf8.h"

#include <gtest/gtest.h>

namespace otf::text {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer tiny() {
  auto tokenizer = Tokenizer::fromJson(tinyTokenizerJson());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

/// The message that refuses the tiny tokenizer after a change.
std::string refusal(const std::string &from, const std::string &to) {
  std::string json = tinyTokenizerJson();
  size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos);
  json.replace(at, from.size(), to);
  auto tokenizer = Tokenizer::fromJson(json);
  return tokenizer ? "accepted" : tokenizer.error().message;
}

TEST(Tokenizer, LowestRankMergesFirst) {
  // "b c" comes before "a b", then "a bc" follows.
  EXPECT_EQ(*tiny().encode("abc", false), (Ids{258}));
  EXPECT_EQ(*tiny().encode("abb", false), (Ids{256, 'b'}));
  // "a bc" also comes before "Ġ a".
  EXPECT_EQ(*tiny().encode("b abc", false), (Ids{'b', ' ', 258}));
  EXPECT_EQ(*tiny().encode("b ac", false), (Ids{'b', 259, 'c'}));
}

TEST(Tokenizer, DecodeInvertsEncode) {
  std::string text;
  for (char32_t c = 0; c < 0x3000; c += 7)
    appendUtf8(c, text += "ab ");
  Tokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.decode(*tokenizer.encode(text, false), false), text);
}

TEST(Tokenizer, SpecialTokensInTheTextAreFound) {
  EXPECT_EQ(*tiny().encode("a<s>b</s>", false), (Ids{'a', 260, 'b', 261}));
}

TEST(Tokenizer, PostProcessorAddsTokensOnlyWhenAsked) {
  EXPECT_EQ(*tiny().encode("a", true), (Ids{260, 'a'}));
  EXPECT_EQ(*tiny().encode("", true), (Ids{260}));
  EXPECT_EQ(*tiny().encode("", false), (Ids{}));
}

TEST(Tokenizer, SkipSpecialKeepsOtherAddedTokens) {
  EXPECT_EQ(tiny().decode(Ids{260, 'a', 262, 261}, true), "a<tool>");
  EXPECT_EQ(tiny().decode(Ids{260, 'a', 262, 261}, false), "<s>a<tool></s>");
}

TEST(Tokenizer, UnknownIdsDecodeToNothing) {
  EXPECT_EQ(tiny().decode(Ids{-1, 'a', 1000000}, false), "a");
  EXPECT_EQ(tiny().idToBytes(-1), "");
}

TEST(Tokenizer, InvalidBytesCountAsReplacementCharacters) {
  Tokenizer tokenizer = tiny();
  EXPECT_EQ(*tokenizer.encode("a\xFF", false),
            *tokenizer.encode("a\uFFFD", false));
}

TEST(Tokenizer, LookUpsTellSpecialTokensFromOthers) {
  Tokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.specialId("</s>"), 261);
  EXPECT_EQ(tokenizer.specialId("<tool>"), std::nullopt);
  EXPECT_EQ(tokenizer.tokenId("<tool>"), 262);
  EXPECT_EQ(tokenizer.tokenId("abc"), 258);
  EXPECT_EQ(tokenizer.vocabularySize(), 263u);
}

TEST(Tokenizer, LongWordsTakeNoQuadraticTime) {
  EXPECT_EQ(tiny().encode(std::string(1'000'000, 'a'), false)->size(),
            1'000'000u);
}

TEST(Tokenizer, UnsupportedPartsAreRefusedByName) {
  EXPECT_NE(refusal(R"("normalizer": null)", R"("normalizer":{"type":"NFC"})")
                .find("normalizer: type 'NFC'"),
            std::string::npos);
  EXPECT_NE(refusal(R"("type": "BPE")", R"("type": "Unigram")")
                .find("'Unigram' is not supported"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type": "ByteLevel", "add_prefix_space": false})",
                    R"({"type": "Metaspace"})")
                .find("pre_tokenizer: type 'Metaspace'"),
            std::string::npos);
  EXPECT_NE(refusal(R"("TemplateProcessing")", R"("BertProcessing")")
                .find("post_processor: type 'BertProcessing'"),
            std::string::npos);
}

TEST(Tokenizer, DamagedFilesAreErrors) {
  EXPECT_FALSE(Tokenizer::fromJson(""));
  EXPECT_FALSE(Tokenizer::fromJson("[1, 2]"));
  std::string json = tinyTokenizerJson();
  EXPECT_FALSE(Tokenizer::fromJson(json.substr(0, json.size() / 2)));
  EXPECT_NE(refusal(R"("abc": 258)", R"("abc": -1)").find("no usable id"),
            std::string::npos);
  EXPECT_NE(refusal(R"("abc": 258)", R"("abd": 258)").find("merge 2"),
            std::string::npos);
  EXPECT_NE(refusal(R"("id": 261)", R"("id": 4000000000)").find("damaged"),
            std::string::npos);
}

} // namespace
} // namespace otf::text
