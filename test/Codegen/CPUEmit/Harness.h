// SPDX-License-Identifier: Apache-2.0
//
// Compile kernels given as text, load them from memory, run them as the runtime would. No MLIR in
// this header, so that the tests compile quickly.
#ifndef OTF_TEST_CODEGEN_CPUEMIT_HARNESS_H
#define OTF_TEST_CODEGEN_CPUEMIT_HARNESS_H

#include "otf/KernelABI.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace otf::test {

struct Compilation {
  std::string object;      ///< empty if it failed
  std::string diagnostics; ///< one a line
};

Compilation compile(const std::string &text, const std::string &level);
std::string llvmText(const std::string &text, const std::string &level, bool optimised);

bool supported(const std::string &level);

/// A test of one instruction set level; the parameter is its name.
class LevelTest : public ::testing::TestWithParam<std::string> {
protected:
  std::mt19937 random{20260730};

  /// Kernel `name` of `text`; objects are compiled once a process and level. Skips the test, after
  /// compiling, where this CPU cannot run it.
  otf_kernel kernel(const std::string &text, const char *name);

  std::vector<float> floats(size_t count, float low = -2, float high = 2);
  int64_t below(int64_t limit) { return int64_t(random() % uint64_t(limit)); }
};

#define OTF_LEVELS(suite)                                                                          \
  INSTANTIATE_TEST_SUITE_P(Level, suite, ::testing::Values("avx2", "avx512vnni"),                  \
                           [](const auto &info) { return info.param; })

/// Gets a kernel or ends the test.
#define OTF_KERNEL(variable, text, name)                                                           \
  otf_kernel variable = kernel(text, name);                                                        \
  if (!variable)                                                                                   \
  return

void runRange(otf_kernel kernel, const std::vector<const void *> &buffers,
              const std::vector<int64_t> &dims, int64_t begin, int64_t end, otf_kernel_shared shared = {});

/// Runs [0, extent) into a fresh result of `count` elements, which is the last buffer; again in two
/// calls, whose bytes must be the same; and checks that nothing past the result was written.
template <typename T>
std::vector<T> run(otf_kernel kernel, std::vector<const void *> inputs,
                   const std::vector<int64_t> &dims, int64_t extent, size_t count) {
  constexpr size_t guard = 64;
  size_t bytes = count * sizeof(T);
  std::vector<uint8_t> once(bytes + guard, 0xcd), twice(bytes + guard, 0xcd);
  inputs.push_back(once.data());
  runRange(kernel, inputs, dims, 0, extent);
  inputs.back() = twice.data();
  int64_t middle = extent / 2 + extent % 2 * (extent > 2);
  runRange(kernel, inputs, dims, middle, extent);
  runRange(kernel, inputs, dims, 0, middle);
  EXPECT_TRUE(once == twice) << "two calls and one differ";
  for (size_t i = bytes; i < once.size(); ++i)
    EXPECT_EQ(once[i], 0xcd) << "wrote past the result";
  std::vector<T> result(count);
  if (bytes)
    std::memcpy(result.data(), once.data(), bytes);
  return result;
}

inline void expectNear(float actual, double expected, double tolerance, const std::string &where) {
  if (std::isfinite(expected))
    EXPECT_NEAR(actual, expected, tolerance) << where;
  else if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(actual)) << where << ": " << actual;
  else
    EXPECT_EQ(double(actual), expected) << where;
}

} // namespace otf::test

#endif // OTF_TEST_CODEGEN_CPUEMIT_HARNESS_H
