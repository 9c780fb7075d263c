// SPDX-License-Identifier: Apache-2.0
//
// The bodies of tensor.generate and the epilogues of linears: programs from indices to one element.
#ifndef OTF_CODEGEN_CPU_SCALARPROGRAM_H
#define OTF_CODEGEN_CPU_SCALARPROGRAM_H

#include "lib/Codegen/CPU/KernelBuilder.h"

#include "mlir/IR/IRMapping.h"

namespace otf::cpu {

/// The element that is being computed: its indices and its row-major offset.
struct Position {
  llvm::SmallVector<mlir::Value> indices;
  mlir::Value offset;
  llvm::ArrayRef<otf::Size> shape;
};

/// Copies the operations of `block`, with its arguments and outer values mapped, to the insertion
/// point. Returns what its terminator yields, or nothing after a diagnostic.
std::optional<llvm::SmallVector<mlir::Value>> emitProgram(KernelBuilder &builder,
                                                          mlir::Block &block,
                                                          mlir::IRMapping &mapping,
                                                          const Position &position);

/// One operation of a scalar program; false after a diagnostic.
bool emitScalar(KernelBuilder &builder, mlir::Operation &op, mlir::IRMapping &mapping,
                const Position &position);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_SCALARPROGRAM_H
