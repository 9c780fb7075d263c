// SPDX-License-Identifier: Apache-2.0
#include "runtime/Arena.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace otf::runtime;

namespace {

/// Only memory, and a count of it.
struct HeapQueue final : Queue {
  Result<void *> allocate(uint64_t bytes) override {
    if (bytes > limit)
      return deviceError("memory: too much");
    ++allocations, ++live;
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  void release(void *memory) override {
    live -= memory != nullptr;
    std::free(memory);
  }
  Status copyIn(void *, uint64_t, const void *, uint64_t, uint64_t, uint64_t) override { return {}; }
  Status copyOut(void *, uint64_t, const void *, uint64_t, uint64_t, uint64_t) override { return {}; }
  Status run(const Launch &) override { return {}; }
  Status synchronize() override { return {}; }
  int allocations = 0, live = 0;
  uint64_t limit = 1 << 30;
};

Status reserve(Arena &arena, std::vector<int64_t> bytes, bool &moved) {
  return arena.reserve(bytes, moved);
}

TEST(Arena, BlocksAreAlignedAndDoNotOverlap) {
  HeapQueue queue;
  Arena arena(queue, true);
  bool moved;
  ASSERT_TRUE(reserve(arena, {1, 0, 65, 1000}, moved).ok());
  auto blocks = arena.blocks();
  const int64_t sizes[] = {1, 0, 65, 1000};
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(uintptr_t(blocks[i]) % 64, 0u);
    if (i)
      EXPECT_GE(static_cast<char *>(blocks[i]),
                static_cast<char *>(blocks[i - 1]) + sizes[i - 1]);
  }
}

TEST(Arena, SmallerSizesAllocateNothing) {
  HeapQueue queue;
  Arena arena(queue, true);
  bool moved;
  ASSERT_TRUE(reserve(arena, {1000, 1000}, moved).ok());
  EXPECT_TRUE(moved);
  ASSERT_TRUE(reserve(arena, {10, 1000}, moved).ok());
  EXPECT_FALSE(moved);
  EXPECT_EQ(queue.allocations, 1);
}

TEST(Arena, SlowGrowthMovesSeldom) {
  HeapQueue queue;
  Arena arena(queue, true);
  bool moved;
  for (int64_t n = 1; n <= 100000; n += 8)
    ASSERT_TRUE(reserve(arena, {n, 64}, moved).ok());
  EXPECT_LT(queue.allocations, 50);
  EXPECT_EQ(queue.live, 1);
}

TEST(Arena, FailureLeavesItUsable) {
  HeapQueue queue;
  {
    Arena arena(queue, false);
    bool moved;
    EXPECT_EQ(reserve(arena, {int64_t(1) << 40}, moved).code(), Code::device);
    EXPECT_EQ(reserve(arena, {INT64_MAX}, moved).code(), Code::device);
    EXPECT_TRUE(reserve(arena, {100}, moved).ok());
  }
  EXPECT_EQ(queue.live, 0);
}

} // namespace
