// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/Levels.h"

namespace otf::runtime {

bool supportsLevel(std::string_view level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  if (level == "avx2")
    return avx2;
  if (level == "avx512vnni")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
#endif
  return false;
}

std::string_view nativeLevel() {
  for (std::string_view level : kCpuLevels)
    if (supportsLevel(level))
      return level;
  return {};
}

} // namespace otf::runtime
