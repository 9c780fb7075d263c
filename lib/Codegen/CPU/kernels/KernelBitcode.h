// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernels (Kernels.h) as LLVM bitcode, ready to be linked into generated code.
#ifndef OTF_CODEGEN_CPU_KERNELBITCODE_H
#define OTF_CODEGEN_CPU_KERNELBITCODE_H

#include <string_view>

namespace otf::cpu {

/// The module for "avx2" or "avx512vnni"; empty for any other level.
///
/// Its functions carry that level's target features, which the caller's must include for LLVM to
/// inline them. Undefined symbols are sinf and cosf. Functions are external; internalise what is
/// not an entry. It was compiled with loop-to-memcpy conversion off: an optimiser that runs it again
/// with that on may introduce calls of memcpy and memset.
std::string_view kernelBitcode(std::string_view level);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_KERNELBITCODE_H
