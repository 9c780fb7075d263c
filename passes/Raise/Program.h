// SPDX-License-Identifier: Apache-2.0
//
// Scalar programs in few words: arithmetic by the type of its operands, loops and conditions as calls, loads and stores
// of an otf.compute's handles. Bodies that are more than an expression are written with it.
#ifndef OTF_PASSES_RAISE_PROGRAM_H
#define OTF_PASSES_RAISE_PROGRAM_H

#include "passes/Raise/Raiser.h"

namespace otf::raise {

class Program {
public:
  using Do = llvm::function_ref<void()>;
  using Give = llvm::function_ref<mlir::Value()>;

  Program(mlir::OpBuilder &builder, mlir::Location location) : b(builder), l(location) {}

  mlir::OpBuilder &b;
  mlir::Location l;

  mlir::Value index(int64_t value);
  mlir::Value extent(const Size &size);
  /// A constant of a float or integer type.
  mlir::Value number(mlir::Type type, double value);
  mlir::Value flag(bool value) { return number(b.getI1Type(), value); }

  // Floats, integers and indices.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Towards zero for integers.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value min(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value less(mlir::Value x, mlir::Value y, bool isUnsigned = false);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value either(mlir::Value x, mlir::Value y);
  mlir::Value negate(mlir::Value x);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value plus(mlir::Value x, int64_t n) { return add(x, index(n)); }

  mlir::Value toIndex(mlir::Value x);
  mlir::Value toInteger(mlir::Value index, mlir::Type type);
  /// Not zero; true for NaN.
  mlir::Value isTrue(mlir::Value x);
  /// `at` as a position from the start: negative ones count from the end of `extent`.
  mlir::Value fromStart(mlir::Value at, mlir::Value extent);
  /// 0 ≤ x < extent.
  mlir::Value inside(mlir::Value x, mlir::Value extent);
  /// The indices of row-major `position` in `sizes`.
  llvm::SmallVector<mlir::Value> split(mlir::Value position, llvm::ArrayRef<Size> sizes);

  /// for i in 0 … count - 1
  void loop(mlir::Value count, llvm::function_ref<void(mlir::Value i)> body);
  /// The same, with a value carried.
  mlir::Value fold(mlir::Value count, mlir::Value initial,
                   llvm::function_ref<mlir::Value(mlir::Value i, mlir::Value carried)> body);
  /// A loop nest over `sizes`.
  void loops(llvm::ArrayRef<Size> sizes, llvm::function_ref<void(mlir::ValueRange indices)> body);
  /// Repeats `body` on what is carried while `condition` holds.
  llvm::SmallVector<mlir::Value>
  repeat(mlir::ValueRange initial, llvm::function_ref<mlir::Value(mlir::ValueRange)> condition,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);
  void when(mlir::Value condition, Do yes);
  mlir::Value choose(mlir::Value condition, Give yes, Give no);

  mlir::Value load(mlir::Value handle, mlir::ValueRange indices);
  void store(mlir::Value value, mlir::Value handle, mlir::ValueRange indices);

  /// Sorts 0 … count - 1 by `before`, a strict weak order; equal ones stay in order. `lines` is scratch memory of two
  /// rows of `count` i64, addressed as lines[leading…, row, position]. Returns the row that has the result.
  mlir::Value sort(mlir::Value count, mlir::Value lines, mlir::ValueRange leading,
                   llvm::function_ref<mlir::Value(mlir::Value x, mlir::Value y)> before);
};

/// Ends a run with `complaint` unless `holds` gives true. `name` is that of what is bound.
void endUnless(Raiser &, llvm::StringRef name, const llvm::Twine &complaint,
               llvm::function_ref<mlir::Value(Program &)> holds);

/// Refuses shapes that are known to differ. Where only a run can tell, as between sizes of other names, it checks: one that
/// finds a difference fails.
mlir::LogicalResult mustMatch(Raiser &, onnx::NodeOp, llvm::ArrayRef<Size> sizes, llvm::ArrayRef<Size> expected,
                              const llvm::Twine &complaint);

/// The same for a tensor that must be one number; its element is that at index 0.
mlir::LogicalResult mustBeNumber(Raiser &, onnx::NodeOp, Known &what, const llvm::Twine &complaint);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_PROGRAM_H
