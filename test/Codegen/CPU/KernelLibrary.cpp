// SPDX-License-Identifier: Apache-2.0
//
// Loads kernel modules; maps guarded memory.
#include "KernelLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace otf::test {
namespace {

bool cpuHas(const std::string &level) {
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  if (level == "avx2")
    return avx2;
  return avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

/// A module, or that of its name in the folder OTF_KERNEL_MODULES: tests may run where they were not built.
bool load(std::string path, Kernels &kernels) {
  if (const char *folder = getenv("OTF_KERNEL_MODULES"))
    path = folder + path.substr(path.rfind('/'));
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return false;
  bool found = true;
#define OTF_LOAD(name)                                                                            \
  kernels.name = reinterpret_cast<decltype(kernels.name)>(dlsym(library, "otf_" #name));          \
  found &= kernels.name != nullptr;
  OTF_KERNEL_NAMES(OTF_LOAD)
#undef OTF_LOAD
  return found;
}

const Kernels *kernelsOf(const std::string &level) {
  static Kernels avx2, avx512vnni;
  static bool haveAvx2 = cpuHas("avx2") && load(OTF_KERNELS_avx2, avx2);
  static bool haveAvx512 = cpuHas("avx512vnni") && load(OTF_KERNELS_avx512vnni, avx512vnni);
  if (level == "avx2")
    return haveAvx2 ? &avx2 : nullptr;
  return haveAvx512 ? &avx512vnni : nullptr;
}

} // namespace

void KernelTest::SetUp() {
  kernels = kernelsOf(GetParam());
  if (kernels)
    return;
  ASSERT_FALSE(cpuHas(GetParam())) << "cannot load the kernels of " << GetParam();
  GTEST_SKIP() << "this CPU has no " << GetParam();
}

GuardedBytes::GuardedBytes(size_t size) {
  size_t page = size_t(sysconf(_SC_PAGESIZE));
  size_t usable = (size + page - 1) / page * page;
  mapped = usable + page;
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(static_cast<uint8_t *>(memory) + usable, page, PROT_NONE))
    abort();
  base = static_cast<uint8_t *>(memory);
  begin = base + usable - size;
}

GuardedBytes::~GuardedBytes() { munmap(base, mapped); }

} // namespace otf::test
