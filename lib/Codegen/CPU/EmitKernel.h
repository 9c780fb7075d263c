// SPDX-License-Identifier: Apache-2.0
//
// plan.kernel to functions of include/otf/KernelABI.h.
#ifndef OTF_CODEGEN_CPU_EMITKERNEL_H
#define OTF_CODEGEN_CPU_EMITKERNEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace otf::cpu {

/// A module with one llvm.func for each plan.kernel of `planned`, in scf, arith, math and llvm
/// operations. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> emitKernels(mlir::ModuleOp planned);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_EMITKERNEL_H
