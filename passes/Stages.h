// SPDX-License-Identifier: Apache-2.0
//
// The contracts between stages as functions; otf-verify-stage lists them.
#ifndef OTF_PASSES_STAGES_H
#define OTF_PASSES_STAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace otf {

// Each reports every breach at its operator.
mlir::LogicalResult verifyImported(mlir::ModuleOp module);
mlir::LogicalResult verifyAnnotated(mlir::ModuleOp module);
mlir::LogicalResult verifyQuantized(mlir::ModuleOp module);
mlir::LogicalResult verifyFused(mlir::ModuleOp module);
mlir::LogicalResult verifyPlanned(mlir::ModuleOp module);

} // namespace otf

#endif // OTF_PASSES_STAGES_H
