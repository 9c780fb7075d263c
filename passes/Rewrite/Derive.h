// SPDX-License-Identifier: Apache-2.0
//
// Weights that are derived from others, and small programs around linears that read them.
#ifndef OTF_PASSES_REWRITE_DERIVE_H
#define OTF_PASSES_REWRITE_DERIVE_H

#include "dialects/OTF/Derived.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace otf {

/// A matrix (f16) or a vector (f32) of `shape` named `name`, beside `from`, which it is made of as
/// `derived` says. `symbols` renames it on a clash.
WeightOp deriveWeight(mlir::SymbolTable &symbols, WeightOp from, const llvm::Twine &name,
                      llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<mlir::NamedAttribute> derived);

/// `otf.use` of a matrix as f16, or of a vector.
mlir::Value useWeight(mlir::OpBuilder &builder, mlir::Location loc, WeightOp weight);

/// tensor.generate of `type` whose element at an index `body` gives.
mlir::Value
generateTensor(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
               llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

/// The weight that a linear multiplies by, or null for a matrix from elsewhere.
WeightOp weightOf(mlir::SymbolTable &symbols, LinearOp linear);

} // namespace otf

#endif // OTF_PASSES_REWRITE_DERIVE_H
