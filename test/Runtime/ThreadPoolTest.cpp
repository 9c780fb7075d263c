// SPDX-License-Identifier: Apache-2.0
#include "runtime/ThreadPool.h"

#include <gtest/gtest.h>

#include <unistd.h>

using namespace otf::runtime;

namespace {

struct Rounds {
  ThreadPool *pool;
  std::atomic<int> count{0};
  std::atomic<bool> good{true};
};

void rounds(void *context, unsigned) {
  auto &r = *static_cast<Rounds *>(context);
  for (int i = 1; i <= 100; ++i) {
    ++r.count;
    r.pool->barrier();
    if (r.count != i * int(r.pool->size()))
      r.good = false;
    r.pool->barrier();
  }
}

TEST(ThreadPool, NobodyPassesABarrierEarly) {
  // 7 is more than most test machines have cores: threads must also meet when they cannot all run.
  for (unsigned threads : {1u, 2u, 3u, 7u}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.ok());
    Rounds r{pool.value().get()};
    for (int i = 0; i < 5; ++i) {
      r.count = 0;
      pool.value()->run(rounds, &r);
      EXPECT_EQ(r.count, 100 * int(threads));
    }
    EXPECT_TRUE(r.good);
  }
}

TEST(ThreadPool, SleepingThreadsWakeUp) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  for (int i = 0; i < 5; ++i) {
    usleep(20000); // long after they have stopped spinning
    std::atomic<int> count{0};
    pool.value()->run([](void *c, unsigned) { ++*static_cast<std::atomic<int> *>(c); }, &count);
    EXPECT_EQ(count, 3);
  }
}

TEST(ThreadPool, ZeroMeansAvailableCores) {
  auto pool = ThreadPool::create(0);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(pool.value()->size(), ThreadPool::availableCores());
}

TEST(ThreadPool, TooManyThreadsAreRefused) {
  EXPECT_EQ(ThreadPool::create(100000).status().code(), Code::usage);
}

} // namespace
