// SPDX-License-Identifier: Apache-2.0
//
// A decode step allocates nothing: this binary counts what is asked of malloc.
#include "runtime/Decoder.h"
#include "runtime/Draft.h"
#include "runtime/Text/Sampler.h"
#include "test/Runtime/TestPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define OTF_COUNTS_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OTF_COUNTS_MALLOC 0
#endif
#endif
#ifndef OTF_COUNTS_MALLOC
#define OTF_COUNTS_MALLOC 1
#endif

static std::atomic<int64_t> allocations{0};

#if OTF_COUNTS_MALLOC
// glibc's own, under the names that it keeps for this.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return ++allocations, __libc_realloc(old, bytes); }
}
#endif

using namespace otf::runtime;

namespace {

struct Opened {
  explicit Opened(int64_t capacity) {
    char path[] = "/tmp/otf-allocation-XXXXXX";
    close(mkstemp(path));
    EXPECT_TRUE(otf::test::writePlan(path, otf::test::languagePlan(otf::test::testKernels().size())));
    plan = std::move(PlanFile::open(path).value());
    unlink(path);
    device = std::move(makeDevice(*plan, "cpu").value());
    session = std::move(Session::create(*plan, *device, {2, capacity}).value());
    decoder = std::move(Decoder::create(*session).value());
  }
  std::unique_ptr<PlanFile> plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
  std::unique_ptr<Decoder> decoder;
};

TEST(Allocation, ADecodeStepAllocatesNothing) {
  if (!OTF_COUNTS_MALLOC)
    GTEST_SKIP() << "a sanitizer has its own malloc";
  Opened o(2000);
  auto sampler = otf::text::Sampler::create({.temperature = 0});
  ASSERT_TRUE(sampler);
  ASSERT_TRUE(o.decoder->start(std::vector<int32_t>{5, 1, 4}).ok());
  ASSERT_TRUE(o.decoder->append(2).ok()); // the first single row
  ASSERT_TRUE(sampler->sample(o.decoder->logits(), o.decoder->history()));
  const int64_t before = allocations;
  bool good = true;
  for (int i = 0; i < 1500 && good; ++i) {
    const std::optional<int32_t> id = sampler->sample(o.decoder->logits(), o.decoder->history());
    good = id && o.decoder->append(*id).ok();
  }
  const int64_t after = allocations;
  EXPECT_TRUE(good);
  EXPECT_EQ(after - before, 0);
  EXPECT_GT(before, 0); // it does count
}

TEST(Draft, WhatFollowedBeforeIsGuessed) {
  NgramDraft draft;
  auto guess = [&](std::vector<int32_t> text, size_t most) {
    std::span<const int32_t> g = draft.guess(text, most);
    return std::vector<int32_t>(g.begin(), g.end());
  };
  EXPECT_EQ(guess({1, 2, 3, 4, 5, 1, 2}, 3), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(guess({1, 2, 3, 1, 2, 9, 1, 2}, 1), (std::vector<int32_t>{9})); // the latest place
  EXPECT_EQ(guess({7, 7, 7}, 4), (std::vector<int32_t>{7, 7, 7, 7}));       // a short period goes on
  EXPECT_EQ(guess({1, 2, 3}, 4), std::vector<int32_t>{});
  EXPECT_EQ(guess({1, 1}, 0), std::vector<int32_t>{});
  EXPECT_EQ(guess({}, 4), std::vector<int32_t>{});
  EXPECT_EQ(draft.drafted, 8u);
}

TEST(Draft, RightGuessesMakeLongerOnes) {
  NgramDraft draft;
  std::vector<int32_t> text(40, 3);
  const size_t first = draft.guess(text, 100).size();
  draft.learn(first);
  const size_t second = draft.guess(text, 100).size();
  EXPECT_GT(second, first);
  draft.learn(0);
  EXPECT_LT(draft.guess(text, 100).size(), first);
}

TEST(Draft, SeveralTokensAtOnceGiveTheLogitsOfEach) {
  Opened one(100), several(100);
  const std::vector<int32_t> prompt = {5, 1, 4}, more = {2, 7, 7, 9};
  ASSERT_TRUE(one.decoder->start(prompt).ok());
  ASSERT_TRUE(several.decoder->start(prompt).ok());
  ASSERT_TRUE(several.decoder->append(more).ok());
  ASSERT_EQ(several.decoder->rows(), more.size());
  auto best = [](std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
  for (size_t i = 0; i < more.size(); ++i) {
    ASSERT_TRUE(one.decoder->append(more[i]).ok());
    // This model adds up the mask, which is longer by the tokens that come after in the same run.
    EXPECT_EQ((best(one.decoder->logits()) + long(more.size() - 1 - i)) % 16, best(several.decoder->logits(i))) << i;
  }
  ASSERT_TRUE(several.decoder->forget(2).ok());
  ASSERT_TRUE(several.decoder->append(7).ok());
  ASSERT_TRUE(one.decoder->forget(2).ok());
  ASSERT_TRUE(one.decoder->append(7).ok());
  EXPECT_EQ(one.decoder->history(), several.decoder->history());
  auto a = one.decoder->logits(), b = several.decoder->logits();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  EXPECT_EQ(several.decoder->append(std::vector<int32_t>(95, 1)).code(), Code::badInput);
  EXPECT_EQ(several.decoder->forget(1000).code(), Code::usage);
}

} // namespace
