// SPDX-License-Identifier: Apache-2.0
//
// The loop around a language model, with one whose next token can be said (TestPlan.h).
#include "include/otf/otf.h"
#include "test/Runtime/TestPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unistd.h>

namespace {

struct Model {
  explicit Model(int64_t capacity = 0) {
    char path[] = "/tmp/otf-language-XXXXXX";
    close(mkstemp(path));
    EXPECT_TRUE(
        otf::test::writePlan(path, otf::test::languagePlan(otf::test::testKernels().size())));
    EXPECT_EQ(otf_plan_open(path, &plan), OTF_OK) << otf_message();
    unlink(path);
    otf_session_options options = {"cpu", 2, capacity};
    EXPECT_EQ(otf_session_create(plan, &options, &session), OTF_OK) << otf_message();
    otf_generate_options_init(&this->options);
    this->options.ignore_end = 1;
  }
  ~Model() {
    otf_session_destroy(session);
    otf_plan_close(plan);
  }
  otf_status run(const std::vector<int32_t> &prompt, int64_t tokens) {
    options.prompt_ids = prompt.data();
    options.prompt_id_count = prompt.size();
    options.max_tokens = tokens;
    otf_status status = otf_generate(session, &options, nullptr, nullptr, &result);
    ids.assign(result.ids, result.ids + (status == OTF_OK ? result.id_count : 0));
    return status;
  }
  otf_plan *plan = nullptr;
  otf_session *session = nullptr;
  otf_generate_options options;
  otf_generation result = {};
  std::vector<int32_t> ids;
};

std::vector<int32_t> expected(std::vector<int32_t> text, size_t tokens) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < tokens; ++i) {
    int64_t n = int64_t(text.size());
    ids.push_back(int32_t((std::accumulate(text.begin(), text.end(), int64_t(0)) + n - 1 + n) % 16));
    text.push_back(ids.back());
  }
  return ids;
}

TEST(Generate, InputsAreMadeFromTokens) {
  Model m;
  ASSERT_EQ(m.run({5, 1, 4}, 20), OTF_OK) << otf_message();
  EXPECT_EQ(m.ids, expected({5, 1, 4}, 20));
  EXPECT_STREQ(m.result.reason, "length");
  EXPECT_EQ(otf_session_state_length(m.session), 3 + 19);
}

TEST(Generate, LongPromptsAreFedInChunks) {
  std::vector<int32_t> prompt(1300);
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = int32_t(i * 7 % 16);
  Model m;
  ASSERT_EQ(m.run(prompt, 5), OTF_OK) << otf_message();
  EXPECT_EQ(m.ids, expected(prompt, 5));
}

TEST(Generate, WhatTheCacheHoldsIsReused) {
  Model m;
  for (const std::vector<int32_t> &prompt :
       {std::vector<int32_t>{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 9}, {1}, {8, 8}}) {
    ASSERT_EQ(m.run(prompt, 6), OTF_OK) << otf_message();
    EXPECT_EQ(m.ids, expected(prompt, 6));
  }
  ASSERT_EQ(otf_session_state_reset(m.session), OTF_OK);
  ASSERT_EQ(m.run({8, 8}, 6), OTF_OK);
  EXPECT_EQ(m.ids, expected({8, 8}, 6));
}

TEST(Generate, AnEndTokenEnds) {
  Model m;
  m.options.ignore_end = 0;
  std::vector<int32_t> all = expected({2, 2}, 100);
  size_t end = size_t(std::find(all.begin(), all.end(), 6) - all.begin());
  ASSERT_LT(end, all.size());
  ASSERT_EQ(m.run({2, 2}, 100), OTF_OK);
  EXPECT_EQ(m.ids.size(), end + 1);
  EXPECT_STREQ(m.result.reason, "end");
}

TEST(Generate, AFullContextEnds) {
  Model m(8);
  ASSERT_EQ(m.run({1, 2, 3}, 100), OTF_OK);
  EXPECT_EQ(m.ids.size(), 6u); // the last one needs no room
  EXPECT_STREQ(m.result.reason, "context");
  EXPECT_EQ(m.run(std::vector<int32_t>(9), 1), OTF_BAD_INPUT);
  EXPECT_STREQ(otf_message(),
               "prompt: 9 tokens do not fit in a context of 8 (give --context or a shorter prompt)");
}

TEST(Generate, ATokenOutsideTheVocabularyIsRefused) {
  Model m;
  EXPECT_EQ(m.run({5, 16, 4}, 1), OTF_BAD_INPUT);
  EXPECT_STREQ(otf_message(),
               "token id 16 at position 1: the model knows 0 to 15 (is this its tokenizer?)");
  EXPECT_EQ(m.run({-1}, 1), OTF_BAD_INPUT);
  EXPECT_EQ(m.run({15, 0}, 1), OTF_OK) << otf_message();
}

TEST(Generate, TheCallerMayEndIt) {
  Model m;
  const int32_t prompt[] = {1};
  m.options.prompt_ids = prompt, m.options.prompt_id_count = 1;
  int calls = 0;
  auto callback = [](void *user, const char *, size_t, int32_t) -> int { return ++*(int *)user == 3; };
  ASSERT_EQ(otf_generate(m.session, &m.options, callback, &calls, &m.result), OTF_OK);
  EXPECT_EQ(m.result.id_count, 3u);
  EXPECT_STREQ(m.result.reason, "caller");
  EXPECT_EQ(calls, 4); // and once for the end
}

TEST(Generate, WhatIsMissingIsSaid) {
  Model m;
  EXPECT_NE(m.run({}, 1), OTF_OK);
  m.options.prompt_ids = nullptr;
  EXPECT_EQ(otf_generate(m.session, &m.options, nullptr, nullptr, nullptr), OTF_USAGE);
  m.options.prompt = "hello";
  EXPECT_EQ(otf_generate(m.session, &m.options, nullptr, nullptr, nullptr), OTF_BAD_INPUT);
  EXPECT_NE(std::string(otf_message()).find("tokenizer.json"), std::string::npos);
}

} // namespace
