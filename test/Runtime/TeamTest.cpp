// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/Team.h"
#include "runtime/CPU/Cores.h"

#include <gtest/gtest.h>

#include <unistd.h>

using namespace otf::runtime;

namespace {

/// Jobs of many sizes. Each item adds to its job's sum what the job before has left.
struct Chain final : Jobs {
  std::vector<Job> list;
  std::vector<std::vector<int>> seen; // how often each item was done
  size_t at = 0;
  std::atomic<bool> good{true};
  int wait = 0; // microseconds a piece

  explicit Chain(int count) {
    for (int i = 0; i < count; ++i) {
      const int64_t extents[] = {1, 7, 100, 1000, 3, 8, 9}, grains[] = {1, 1, 3, 8, 8, 8, 8};
      list.push_back({size_t(i), extents[i % 7], grains[i % 7]});
      seen.emplace_back(list.back().extent);
    }
  }
  bool next(Job &job) override {
    if (at > 0)
      for (int times : seen[at - 1])
        if (times != 1)
          good = false; // handed on before it was done, or done twice
    if (at == list.size())
      return false;
    job = list[at++];
    return true;
  }
  void work(unsigned, const Job &job, int64_t begin, int64_t end) override {
    if (begin % job.grain != 0 || (end % job.grain != 0 && end != job.extent) || begin >= end || end > job.extent)
      good = false;
    for (int64_t i = begin; i < end; ++i)
      ++seen[job.id][size_t(i)];
    if (wait)
      usleep(useconds_t(wait));
  }
  void again() {
    at = 0;
    for (auto &items : seen)
      std::fill(items.begin(), items.end(), 0);
  }
};

TEST(Team, EachItemIsDoneOnceAndInOrderOfJobs) {
  // 7 is more than most test machines have cores.
  for (unsigned threads : {1u, 2u, 3u, 7u}) {
    auto team = Team::create(threads);
    ASSERT_TRUE(team.ok());
    Chain chain(500);
    for (int i = 0; i < 40; ++i) {
      chain.again();
      team.value()->run(chain);
      ASSERT_EQ(chain.at, chain.list.size());
    }
    EXPECT_TRUE(chain.good) << threads;
  }
}

TEST(Team, SleepingThreadsTakePartAgain) {
  auto team = Team::create(3);
  ASSERT_TRUE(team.ok());
  Chain chain(20);
  chain.wait = 2000; // longer than they spin
  for (int i = 0; i < 3; ++i) {
    usleep(20000);
    chain.again();
    team.value()->run(chain);
  }
  EXPECT_TRUE(chain.good);
}

TEST(Team, ARunWithoutJobsEnds) {
  for (unsigned threads : {1u, 4u}) {
    auto team = Team::create(threads);
    ASSERT_TRUE(team.ok());
    Chain chain(0);
    for (int i = 0; i < 1000; ++i)
      team.value()->run(chain);
    EXPECT_TRUE(chain.good);
  }
}

// Whoever ends a run may be put aside there, and the next run is on its way when it comes back.
TEST(Team, RunsFollowEachOtherOnMoreThreadsThanCores) {
  struct Few final : Jobs {
    int left = 2;
    std::atomic<int> done{0};
    bool next(Job &job) override {
      job = {0, 6, 1};
      return left-- > 0;
    }
    void work(unsigned, const Job &, int64_t begin, int64_t end) override { done += int(end - begin); }
  };
  auto team = Team::create(4 * availableCores());
  ASSERT_TRUE(team.ok());
  for (int i = 0; i < 20000; ++i) {
    Few few;
    team.value()->run(few);
    ASSERT_EQ(few.done, 12);
  }
}

TEST(Team, PartsAreDoneOnceEach) {
  for (unsigned threads : {1u, 2u, 7u}) {
    auto team = Team::create(threads);
    ASSERT_TRUE(team.ok());
    for (int64_t parts : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> done(size_t(parts) + 1);
      for (int i = 1; i <= 50; ++i) {
        team.value()->run(parts, [&](int64_t part) { ++done[size_t(part)]; });
        for (int64_t part = 0; part < parts; ++part)
          ASSERT_EQ(done[size_t(part)], i);
      }
      EXPECT_EQ(done.back(), 0);
    }
  }
}

TEST(Team, WhoIsNotThereHoldsUpNobody) {
  // One of two threads sits in a piece of the first job of another team's core: here it is kept inside
  // its first piece for a while, and the rest of that job is done by the other.
  struct Slow final : Jobs {
    bool given = false;
    std::atomic<int> done{0};
    std::atomic<bool> first{true};
    bool next(Job &job) override {
      job = {0, 64, 1};
      return !std::exchange(given, true);
    }
    void work(unsigned, const Job &, int64_t begin, int64_t end) override {
      if (first.exchange(false)) { // until the other has done all else
        for (int i = 0; i < 10000 && done + int(end - begin) < 64; ++i)
          usleep(1000);
        heldUp = done + int(end - begin) < 64;
      }
      done += int(end - begin);
    }
    std::atomic<bool> heldUp{false};
  } slow;
  auto team = Team::create(2);
  ASSERT_TRUE(team.ok());
  team.value()->run(slow);
  EXPECT_EQ(slow.done, 64);
  EXPECT_FALSE(slow.heldUp);
}

TEST(Team, ZeroMeansAvailableCoresAndTooManyAreRefused) {
  auto team = Team::create(0);
  ASSERT_TRUE(team.ok());
  EXPECT_EQ(team.value()->size(), availableCores());
  EXPECT_EQ(Team::create(100000).status().code(), Code::usage);
}

} // namespace
