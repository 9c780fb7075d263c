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

TEST(Tokenizer, ListsAreReadAsStrictlyAsTheRest) {
  const std::string damaged = "the file is damaged";
  for (const char *id : {"2.0", "2e2", "0258", "4194304", "\"258\"", "[258]", "99999999999999999999", "true"})
    EXPECT_NE(refusal(R"("abc": 258)", std::string(R"("abc": )") + id).find("token 'abc' has no usable id"), std::string::npos) << id;
  for (const char *entry : {R"("abc" 258)", R"("abc": 258 7)", R"(abc: 258)", R"("abc": 258,)", R"("a\xbc": 258)", "\"a\nbc\": 258", "\"a\xffz\": 258",
                            R"("\ud800": 258)", R"("\udc00": 258)", R"("\u12": 258)"})
    EXPECT_NE(refusal(R"("abc": 258)", entry).find("'vocab' is not an object"), std::string::npos) << entry;
  for (const char *pair : {"[\"a\"]", R"(["a", "b", "c"])", R"(["a", 1])", "\"ab\"", "7", "null", "{}"})
    EXPECT_NE(refusal(R"(["a", "b"])", pair).find("merge 1 is not a pair"), std::string::npos) << pair;
  EXPECT_NE(refusal(R"("merges": )", R"("merges": 5, "x": )").find("'merges' is not a list"), std::string::npos);
  EXPECT_NE(refusal(R"("merges")", R"("mergers")").find("'merges' is not a list"), std::string::npos);
  EXPECT_NE(refusal(R"("vocab")", R"("vocabs")").find("'vocab' is not an object"), std::string::npos);
  EXPECT_NE(refusal(R"("a bc", "Ġ a"])", R"("a bc", "Ġ a"],)").find("not a JSON object"), std::string::npos);
}

TEST(Tokenizer, EscapesInListsAreCharacters) {
  const std::string plain = R"("abc": 258, "Ġa": 259)";
  std::string json = tinyTokenizerJson();
  json.replace(json.find(plain), plain.size(), R"("\u0061b\u0063": 258, "\u0120a": 259, "\ud83d\ude00\/": 300)");
  auto tokenizer = Tokenizer::fromJson(json);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("abc", false), (Ids{258}));
  EXPECT_EQ(tokenizer->tokenId("\U0001F600/"), 300);
  EXPECT_EQ(tokenizer->vocabularySize(), 301u);
}

TEST(Tokenizer, OrderSpacesAndAByteOrderMarkDoNotMatter) {
  std::string json = tinyTokenizerJson();
  const size_t begin = json.find(R"("merges")"), end = json.rfind("}}");
  const std::string merges = json.substr(begin, end - begin);
  json.erase(json.rfind(',', begin), end - json.rfind(',', begin));
  json.insert(json.find(R"("vocab")"), merges + " ,\n\t");
  auto tokenizer = Tokenizer::fromJson("\xEF\xBB\xBF" + json + "\n");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("abc", false), (Ids{258}));
}

TEST(Tokenizer, OfANameTwiceTheLastIdCounts) {
  std::string json = tinyTokenizerJson();
  json.insert(json.find(R"("abc": 258)"), R"("abc": 400, )");
  auto tokenizer = Tokenizer::fromJson(json);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->tokenId("abc"), 258);
  EXPECT_EQ(*tokenizer->encode("abc", false), (Ids{258}));
}

TEST(Tokenizer, SingleWordsAreFoundBetweenWords) {
  std::string json = tinyTokenizerJson();
  const std::string tool = R"("content": "<tool>")";
  json.replace(json.find(tool), tool.size(), R"("content": "xy", "single_word": true)");
  auto tokenizer = Tokenizer::fromJson(json);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer->encode("zxy", false), (Ids{'z', 'x', 'y'}));
  EXPECT_EQ(*tokenizer->encode("z.xy", false), (Ids{'z', '.', 262}));
}

} // namespace
} // namespace otf::text
