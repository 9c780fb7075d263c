// SPDX-License-Identifier: Apache-2.0
#include "KernelBitcode.h"

#include <gtest/gtest.h>

TEST(KernelBitcode, HoldsAModulePerLevel) {
  for (const char *level : {"avx2", "avx512vnni"})
    EXPECT_EQ(otf::cpu::kernelBitcode(level).substr(0, 4), "BC\xc0\xde") << level;
}

TEST(KernelBitcode, IsEmptyForAnUnknownLevel) {
  EXPECT_TRUE(otf::cpu::kernelBitcode("avx1024").empty());
}
