// SPDX-License-Identifier: Apache-2.0
//
// The device library compiles, spills nothing and stays within its registers on every architecture
// we name, and no GPU is needed to know. Needs NVRTC; skips without it.
#include "lib/Codegen/CUDA/DeviceLibrary.h"
#include "runtime/CUDA/Nvrtc.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

extern const char otfTestEntries[];

namespace {

using namespace otf::runtime;

// __launch_bounds__(256, 2) allows 128; those of one row, fewer.
constexpr unsigned kRegisterCeiling = 128;
constexpr unsigned kSharedCeiling = 48 * 1024;

const Nvrtc *nvrtc() {
  static Result<std::unique_ptr<Nvrtc>> library = Nvrtc::open();
  return library.ok() ? library.value().get() : nullptr;
}

/// What is known to spill, in bytes, once a thread: to be won back, and not to grow.
struct KnownSpill {
  std::string_view architecture, kernel;
  unsigned bytes;
};
constexpr KnownSpill kKnownSpills[] = {
    {"sm_75", "windows_int4_24_96", 8},
    {"sm_120", "linear_ternary_77_300_11", 8},
};

/// Attention fills its 128 registers with keys and values that are on their way. What its outermost loop needs beside them, counts and
/// strides, some entries keep on the stack, and read it there between the inner loops, never in them: a few bytes, more where heads
/// have 128 values or more.
constexpr unsigned kMostOfAttention = 24, kMostOfWideHeads = 136;

unsigned knownSpill(std::string_view architecture, std::string_view kernel) {
  if (kernel.starts_with("attention_"))
    return kernel.find("_128_") != kernel.npos || kernel.find("_256_") != kernel.npos ? kMostOfWideHeads : kMostOfAttention;
  for (const KnownSpill &known : kKnownSpills)
    if (known.architecture == architecture && known.kernel == kernel)
      return known.bytes;
  return 0;
}

class Compile : public testing::TestWithParam<const char *> {};

TEST_P(Compile, EveryKernelWithoutSpills) {
  if (!nvrtc())
    GTEST_SKIP() << "needs NVRTC";
  const std::string source = std::string(otfCudaDeviceLibrary) + otfTestEntries;
  Result<CudaBinary> binary = nvrtc()->compile(source, GetParam());
  ASSERT_TRUE(binary.ok()) << binary.status().message();
  EXPECT_EQ(binary.value().log.find("warning"), std::string::npos) << binary.value().log;
  EXPECT_GT(binary.value().kernels.size(), 40u);
  // For otf-cuda-test on a machine without NVRTC.
  if (const char *directory = std::getenv("OTF_TEST_CUBIN_DIR"))
    if (FILE *file = std::fopen(cat(directory, "/", GetParam(), ".cubin").c_str(), "wb")) {
      std::vector<char> &cubin = binary.value().cubin;
      EXPECT_EQ(std::fwrite(cubin.data(), 1, cubin.size(), file), cubin.size());
      EXPECT_EQ(std::fclose(file), 0);
    }
  for (const KernelUsage &kernel : binary.value().kernels) {
    unsigned most = knownSpill(GetParam(), kernel.name);
    EXPECT_LE(kernel.spillStores, most) << kernel.name;
    EXPECT_LE(kernel.spillLoads, most) << kernel.name;
    EXPECT_LE(kernel.stack, most) << kernel.name;
    EXPECT_LE(kernel.registers, kRegisterCeiling) << kernel.name;
    EXPECT_GT(kernel.registers, 0u) << kernel.name;
    EXPECT_LE(kernel.shared, kSharedCeiling) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Architecture, Compile,
                         testing::Values("sm_75", "sm_86", "sm_89", "sm_90", "sm_120"),
                         [](const auto &info) { return std::string(info.param); });

TEST(Compile, ErrorCarriesTheLog) {
  if (!nvrtc())
    GTEST_SKIP() << "needs NVRTC";
  Result<CudaBinary> binary = nvrtc()->compile("int x = undeclared;", "sm_90");
  ASSERT_FALSE(binary.ok());
  EXPECT_EQ(binary.status().code(), Code::device);
  EXPECT_NE(binary.status().message().find("undeclared"), std::string::npos);
}

TEST(Compile, UnknownArchitectureIsAnError) {
  if (!nvrtc())
    GTEST_SKIP() << "needs NVRTC";
  EXPECT_FALSE(nvrtc()->compile("", "sm_1").ok());
}

TEST(Usage, IsReadFromTheLog) {
  std::vector<KernelUsage> kernels = parseUsage(
      "ptxas info    : 8 bytes gmem\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_90'\n"
      "ptxas info    : Function properties for f\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 156 registers, used 1 barriers, 18432 bytes smem\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "f");
  EXPECT_EQ(kernels[0].registers, 156u);
  EXPECT_EQ(kernels[0].stack, 8u);
  EXPECT_EQ(kernels[0].spillStores, 4u);
  EXPECT_EQ(kernels[0].spillLoads, 12u);
  EXPECT_EQ(kernels[0].shared, 18432u);
}

TEST(Nvrtc, AWrongNameIsASentence) {
  ASSERT_EQ(setenv("OTF_NVRTC", "/nonexistent/libnvrtc.so", 1), 0);
  Result<std::unique_ptr<Nvrtc>> library = Nvrtc::open();
  unsetenv("OTF_NVRTC");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), Code::device);
  EXPECT_NE(library.status().message().find("OTF_NVRTC"), std::string::npos);
}

} // namespace
