// SPDX-License-Identifier: Apache-2.0
//
// What the code generators make of a planned module, as the bytes that go into a plan.
#ifndef OTF_LIB_COMPILE_TARGETS_H
#define OTF_LIB_COMPILE_TARGETS_H

#include "lib/Compile/PlanAssembly.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace otf {

struct CodeBlob {
  std::string level; // "avx2", "sm_90"
  std::string bytes;
};

struct CudaCode {
  std::string source;
  std::vector<CodeBlob> cubins;
  std::map<std::string, LaunchGeometry> geometry;
  std::map<std::string, std::string> host; ///< kernels without CUDA form, and why
  std::vector<MergedStep> merged;
};

/// A shared object for each instruction set level ("avx2"; "native" is what this machine runs best).
mlir::FailureOr<std::vector<CodeBlob>> generateCpu(mlir::ModuleOp planned, llvm::ArrayRef<std::string> levels);

/// The same of the kernels in `host` alone.
mlir::FailureOr<std::vector<CodeBlob>>
generateHost(mlir::ModuleOp planned, const std::map<std::string, std::string> &host, llvm::ArrayRef<std::string> levels);

/// LLVM IR of a level, as text.
mlir::FailureOr<std::string> generateLlvmText(mlir::ModuleOp planned, llvm::StringRef level);

/// The CUDA source, and a cubin for each architecture ("sm_90"). `missing` becomes true where the
/// failure is this machine's: there is no NVRTC on it.
mlir::FailureOr<CudaCode> generateCuda(mlir::ModuleOp planned,
                                       llvm::ArrayRef<std::string> architectures, bool &missing);

} // namespace otf

#endif // OTF_LIB_COMPILE_TARGETS_H
