// SPDX-License-Identifier: Apache-2.0
//
// Element types that scalar programs do not compute in: floats of 8 and 4 bits ("coded": tensors hold their bits, a
// byte each) and integers of 4 and 2 bits (tensors hold their values, a byte each). Scalar arithmetic converts them,
// so code generators know nothing of them.
#ifndef OTF_PASSES_RAISE_ELEMENTS_H
#define OTF_PASSES_RAISE_ELEMENTS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringRef.h"

namespace otf::raise {

/// fp8 and fp4.
bool isCoded(int64_t elementType);

/// Whether an operator of ONNX takes elements of 8-bit floats and of fewer than 8 bits: those that move elements, and
/// those that turn them into others. All else would compute with bits as if they were numbers.
bool takesSmallElements(llvm::StringRef op);

/// A number of `type`, a float or an integer.
mlir::Value number(mlir::OpBuilder &, mlir::Location, mlir::Type type, double value);

/// How Cast rounds to fp8: `saturate` turns what is too large into the largest number, and `roundMode` ("up", "down" or
/// "nearest") is for float8e8m0.
struct Rounding {
  bool saturate = true;
  llvm::StringRef mode = "up";
};

/// The f32 that i8 `bits` of the coded type stand for; exact.
mlir::Value decodeElement(mlir::OpBuilder &, mlir::Location, mlir::Value bits, int64_t coded);
/// The bits in i8 of an f32 or f64 rounded to the coded type, to nearest and ties to even.
mlir::Value encodeElement(mlir::OpBuilder &, mlir::Location, mlir::Value real, int64_t coded, Rounding);

/// An i8 cut to the width of a 4- or 2-bit type: of integers the value, of others the bits.
mlir::Value narrowed(mlir::OpBuilder &, mlir::Location, mlir::Value byte, int64_t elementType);

/// ONNX's Cast of one element, between any two types but strings and complex numbers. `x` has the internal type of
/// `from` (Raiser::internalType), and `internal` is that of `to`.
mlir::Value castElement(mlir::OpBuilder &, mlir::Location, mlir::Value x, int64_t from, int64_t to,
                        mlir::Type internal, Rounding = {});

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_ELEMENTS_H
