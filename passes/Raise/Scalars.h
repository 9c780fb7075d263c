// SPDX-License-Identifier: Apache-2.0
//
// Short names for writing the scalar program of a generate's body: arithmetic by the type of its
// operands, loops, and reads that are guarded by a condition.
#ifndef OTF_PASSES_RAISE_SCALARS_H
#define OTF_PASSES_RAISE_SCALARS_H

#include "dialects/OTF/OTF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace otf::raise {

/// Writes at the insertion point of `b`. Operands of an operation have one type: floats, integers
/// (signed unless said), or indices.
class Scalars {
public:
  using Value = mlir::Value;
  /// From the loops' indices and what is carried to what is carried on.
  using Step = llvm::function_ref<llvm::SmallVector<Value>(Scalars &, mlir::ValueRange indices,
                                                           mlir::ValueRange carried)>;
  using Fold = llvm::function_ref<Value(Scalars &, mlir::ValueRange indices, Value carried)>;
  using Branch = llvm::function_ref<Value(Scalars &)>;

  Scalars(mlir::OpBuilder &b, mlir::Location l) : b(b), l(l) {}

  Value number(mlir::Type type, double value);
  Value index(int64_t value);
  Value index(const Size &size);

  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y); // integers and indices: not negative, and y not 0
  Value rem(Value x, Value y); // likewise
  Value max(Value x, Value y); // NaN if either is
  Value min(Value x, Value y);
  /// With a constant; what changes nothing writes nothing.
  Value add(Value x, double y);
  Value mul(Value x, double y);
  Value div(Value x, double y);

  Value less(Value x, Value y);
  Value lessEqual(Value x, Value y);
  Value equal(Value x, Value y);
  Value both(Value x, Value y);
  Value either(Value x, Value y);
  Value select(Value condition, Value x, Value y);
  /// 0 ≤ i < size, for an index.
  Value inside(Value i, const Size &size);
  /// size > 0, or null where that is so whatever the symbols are.
  Value some(const Size &size);
  /// i moved into 0 … size − 1; 0 where that is empty.
  Value clamp(Value i, const Size &size);

  Value abs(Value x);
  Value floor(Value x);
  Value ceil(Value x);
  Value sqrt(Value x);
  Value exp(Value x);
  Value log(Value x);
  Value pow(Value x, Value y);
  /// An index, integer or other float as a float of `type`.
  Value real(mlir::Type type, Value x);
  /// A float as an index, rounded to zero. Limited to ±2^30 first, and NaN to the lower limit: no
  /// conversion is undefined.
  Value toIndex(Value x);
  /// An integer as an index.
  Value asIndex(Value x);
  /// An index as an integer of `type`.
  Value asInteger(mlir::Type type, Value x);

  /// A loop nest from 0 to the extents.
  llvm::SmallVector<Value> loop(mlir::ValueRange extents, mlir::ValueRange initial, Step step);
  /// The same with one value carried; an extent of 1 is no loop.
  Value fold(llvm::ArrayRef<Size> extents, Value initial, Fold step);
  llvm::SmallVector<Value> loop(llvm::ArrayRef<Size> extents, mlir::ValueRange initial, Step step);
  /// `then` where `condition` holds; only then is it computed. A null condition always holds.
  Value when(Value condition, Branch then, Branch otherwise);
  /// Σ over a loop nest.
  Value sum(mlir::Type type, llvm::ArrayRef<Size> extents,
            llvm::function_ref<Value(Scalars &, mlir::ValueRange indices)> term);

  mlir::OpBuilder &b;
  mlir::Location l;

private:
  llvm::SmallVector<Value> nest(llvm::ArrayRef<Value> extents, mlir::ValueRange initial, Step step,
                                llvm::SmallVector<Value> indices);
};

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_SCALARS_H
