// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a plan as a shared object for one instruction set.
#ifndef OTF_CODEGEN_CPU_COMPILEOBJECT_H
#define OTF_CODEGEN_CPU_COMPILEOBJECT_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace otf::cpu {

/// An x86-64 ELF shared object with one function of include/otf/KernelABI.h for each plan.kernel,
/// under its name. Position-independent, and the same bytes for the same kernels.
///   level   "avx2" (AVX2, FMA, F16C, BMI1, BMI2) or "avx512vnni" (those and AVX-512 F, BW, VL, DQ,
///   VNNI)
/// It may need functions of libm, memcpy, memmove and memset from the program that loads it, names
/// no library itself, and needs nothing else. Fails with a diagnostic at the operation it is about.
///
/// Loads dialects into the module's context, so it cannot be called from inside a pass.
mlir::FailureOr<std::string> compileObject(mlir::ModuleOp planned, llvm::StringRef level);

enum class LlvmStage {
  Generated, ///< what the emitters wrote, before the micro-kernels are linked
  Optimised, ///< what the object is made from
};

/// The same kernels as LLVM IR text.
mlir::FailureOr<std::string> emitLlvmText(mlir::ModuleOp planned, llvm::StringRef level,
                                          LlvmStage stage = LlvmStage::Generated);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_COMPILEOBJECT_H
