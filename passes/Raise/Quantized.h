// SPDX-License-Identifier: Apache-2.0
//
// Scalars of quantized tensors: integers of any width seen as i32, and the scale or zero point that belongs to an element.
#ifndef OTF_PASSES_RAISE_QUANTIZED_H
#define OTF_PASSES_RAISE_QUANTIZED_H

#include "passes/Raise/Raiser.h"

namespace otf::raise {

/// The least and the greatest value of an integer type that tensors are quantized to; nothing for other types.
std::optional<std::pair<int64_t, int64_t>> quantizedRange(int64_t elementType);

/// An integer element as i32 (wider ones stay as they are), by the sign of its ONNX type.
mlir::Value widened(mlir::OpBuilder &, mlir::Location, mlir::Value x, int64_t elementType);
/// `x` of f32 or f64 as the nearest integer of `elementType` after adding `zero` (i32 or null), clamped.
mlir::Value quantized(mlir::OpBuilder &, Raiser &, mlir::Value x, mlir::Value zero, int64_t elementType);
mlir::Value toFloat(mlir::OpBuilder &, mlir::Location, mlir::Type type, mlir::Value integer, int64_t elementType);

/// How a scale or a zero point spreads over a tensor: one for all, one for each index along an axis, or one for each
/// block along an axis.
struct Spread {
  enum Kind { tensor, axis, block } kind = tensor;
  int64_t along = 0, size = 1; // axis, and the elements of a block
};

/// How `parameter` spreads over `sizes`; complains at the node where it does not.
mlir::FailureOr<Spread> spreadOf(Raiser &, onnx::NodeOp, mlir::ArrayRef<Size> sizes, const Known &parameter, int64_t axis,
                                 int64_t block);
/// The parameter's element for the tensor's element at `indices`.
mlir::Value parameterAt(mlir::OpBuilder &, Raiser &, Known &parameter, const Spread &, mlir::ValueRange indices);

/// Raises a node of the default domain (or of another that `op` names as "domain::op") whose inputs are known, as if it
/// stood before `before`; its results, or nothing after a complaint. What an operator means in terms of others is then
/// said in one place.
mlir::FailureOr<mlir::ValueRange> raiseAs(Raiser &, onnx::NodeOp before, llvm::StringRef op, int64_t version,
                                          mlir::ValueRange inputs,
                                          llvm::ArrayRef<mlir::NamedAttribute> attributes = {}, unsigned results = 1);

/// y = x Wᵀ + bias for a constant W, which the file holds as K x N if `transposed`.
Known raiseLinear(Raiser &, onnx::NodeOp, Known &x, Known &weight, bool transposed, mlir::Value bias);
/// Sets the node to its first input times `matrix`, K x N, plus `bias` if there is one.
mlir::LogicalResult raiseProduct(Raiser &, onnx::NodeOp, Known matrix, mlir::Value bias);

/// What a linear by a weight that the file quantizes reads: what was quantized, to be rounded to a grid, where `x` is codes of 8
/// bits dequantized; else `x` as it is, and no grid.
struct Activations {
  Known *value;
  mlir::Value grid;
};
Activations activationsOf(Raiser &, Known &x, const Known &weight);
/// `x` rounded to `grid`, or `x` where there is none.
mlir::Value roundedTo(Raiser &, mlir::Value x, mlir::Value grid);
/// What is known of a tensor of codes of 8 bits when one scale and zero point dequantize it to `result`.
std::optional<OnGrid> onGrid(Raiser &, onnx::NodeOp dequantize, const Known &result);

/// Is it a constant matrix, or a convolution's weight, of codes of 8 bits in the file?
bool isGivenWeight(const Known &codes);

/// What the file says of a matrix that is `x` dequantized, where all of it is constant. `x` may be read turned too.
std::optional<GivenCodes> givenCodes(Raiser &, const Known &x, const Known &scale, const Known *zero, const Spread &);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_QUANTIZED_H
