// SPDX-License-Identifier: Apache-2.0
//
// Finds a module among those that KernelBitcode.S embeds.
#include "KernelBitcode.h"

extern "C" const char otf_bitcode_avx2[], otf_bitcode_avx2_end[];
extern "C" const char otf_bitcode_avx512vnni[], otf_bitcode_avx512vnni_end[];

std::string_view otf::cpu::kernelBitcode(std::string_view level) {
  if (level == "avx2")
    return {otf_bitcode_avx2, otf_bitcode_avx2_end};
  if (level == "avx512vnni")
    return {otf_bitcode_avx512vnni, otf_bitcode_avx512vnni_end};
  return {};
}
