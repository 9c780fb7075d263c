// SPDX-License-Identifier: Apache-2.0
//
// One emitter for each operator that has a kernel of its own. Each writes the loop over the work
// items [builder.begin, builder.end) that docs/Architecture.md's kernels are divided into, and
// returns false after a diagnostic.
#ifndef OTF_CODEGEN_CPU_OPERATORS_H
#define OTF_CODEGEN_CPU_OPERATORS_H

#include "lib/Codegen/CPU/KernelBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace otf::cpu {

/// `mapping` holds the scalar constants that the kernel has outside the generate or the epilogue.
bool emitGenerate(KernelBuilder &builder, mlir::tensor::GenerateOp op, const Memory &result,
                  mlir::IRMapping &mapping);
bool emitLinear(KernelBuilder &builder, LinearOp op, const Memory &result,
                mlir::IRMapping &mapping);
/// Writes rows `firstRow` to firstRow + count − 1 of the windows of `op`, whose result has the shape
/// `result`, to `panel`, `rowBytes` each: what its micro-kernels read. `x` is its input.
bool emitWindows(KernelBuilder &builder, LinearOp op, const Memory &x,
                 llvm::ArrayRef<otf::Size> result, mlir::Value panel, int64_t rowBytes,
                 mlir::Value firstRow, mlir::Value count);
bool emitEmbedding(KernelBuilder &builder, EmbeddingOp op, const Memory &result);
bool emitNorm(KernelBuilder &builder, NormOp op, const Memory &result);
bool emitRotate(KernelBuilder &builder, RotateOp op, const Memory &result);
bool emitPrologue(KernelBuilder &builder, PrologueOp op, const Memory &result);
bool emitRope(KernelBuilder &builder, RopeOp op, const Memory &result);
bool emitAppend(KernelBuilder &builder, AppendOp op);
bool emitObserve(KernelBuilder &builder, ObserveOp op);
bool emitAttention(KernelBuilder &builder, AttentionOp op, const Memory &result);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_OPERATORS_H
