// SPDX-License-Identifier: Apache-2.0
//
// Instruction set levels that a plan may have code for, and what this processor runs of them.
#ifndef OTF_RUNTIME_CPU_LEVELS_H
#define OTF_RUNTIME_CPU_LEVELS_H

#include <string_view>

namespace otf::runtime {

/// The best first.
inline constexpr std::string_view kCpuLevels[] = {"avx512vnni", "avx2"};

/// Features are looked at one by one, as code is compiled: virtual machines hide single ones.
bool supportsLevel(std::string_view level);

/// What this processor runs best; empty where it runs none.
std::string_view nativeLevel();

} // namespace otf::runtime

#endif // OTF_RUNTIME_CPU_LEVELS_H
