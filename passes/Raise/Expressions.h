// SPDX-License-Identifier: Apache-2.0
//
// The body of a generate in few words: what arith, scf and otf.size say in many. Every function takes both integers
// (indices included) and floats where that has a meaning.
#ifndef OTF_PASSES_RAISE_EXPRESSIONS_H
#define OTF_PASSES_RAISE_EXPRESSIONS_H

#include "dialects/OTF/OTF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace otf::raise {

struct Expressions {
  mlir::OpBuilder &b;
  mlir::Location l;

  using Value = mlir::Value;
  using Type = mlir::Type;

  Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, l, value); }
  Value index(const Size &size) {
    if (std::optional<int64_t> constant = size.constant())
      return index(*constant);
    return SizeOp::create(b, l, size);
  }
  Value constant(Type type, double value) {
    if (mlir::isa<mlir::FloatType>(type))
      return mlir::arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
    return mlir::arith::ConstantOp::create(b, l, b.getIntegerAttr(type, int64_t(value)));
  }
  Value zero(Type type) { return mlir::arith::ConstantOp::create(b, l, b.getZeroAttr(type)); }

  Value add(Value x, Value y) { return either<mlir::arith::AddFOp, mlir::arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return either<mlir::arith::SubFOp, mlir::arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return either<mlir::arith::MulFOp, mlir::arith::MulIOp>(x, y); }
  /// Of signed integers, towards zero. A divisor of 0 traps: the caller rules it out.
  Value div(Value x, Value y) { return either<mlir::arith::DivFOp, mlir::arith::DivSIOp>(x, y); }
  Value rem(Value x, Value y) { return mlir::arith::RemSIOp::create(b, l, x, y); }
  Value min(Value x, Value y) { return either<mlir::arith::MinimumFOp, mlir::arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return either<mlir::arith::MaximumFOp, mlir::arith::MaxSIOp>(x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, index(y)) : x; }
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, index(y)); }

  Value less(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OLT, mlir::arith::CmpIPredicate::slt, x, y); }
  Value atLeast(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OGE, mlir::arith::CmpIPredicate::sge, x, y); }
  Value equal(Value x, Value y) { return compare(mlir::arith::CmpFPredicate::OEQ, mlir::arith::CmpIPredicate::eq, x, y); }
  Value compare(mlir::arith::CmpFPredicate real, mlir::arith::CmpIPredicate integer, Value x, Value y) {
    if (mlir::isa<mlir::FloatType>(x.getType()))
      return mlir::arith::CmpFOp::create(b, l, real, x, y);
    return mlir::arith::CmpIOp::create(b, l, integer, x, y);
  }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(b, l, x, y); }
  Value any(Value x, Value y) { return mlir::arith::OrIOp::create(b, l, x, y); }
  Value select(Value condition, Value x, Value y) { return mlir::arith::SelectOp::create(b, l, condition, x, y); }

  /// An integer, or a float cut towards zero, as an index.
  Value toIndex(Value x) {
    if (x.getType().isIndex())
      return x;
    if (mlir::isa<mlir::FloatType>(x.getType()))
      x = mlir::arith::FPToSIOp::create(b, l, b.getI64Type(), x);
    return mlir::arith::IndexCastOp::create(b, l, b.getIndexType(), x);
  }
  /// An index as an integer or a float of `type`.
  Value fromIndex(Type type, Value x) {
    if (!mlir::isa<mlir::FloatType>(type))
      return mlir::arith::IndexCastOp::create(b, l, type, x);
    x = mlir::arith::IndexCastOp::create(b, l, b.getI64Type(), x);
    return mlir::arith::SIToFPOp::create(b, l, type, x);
  }
  /// A float of another type.
  Value toReal(Type type, Value x) {
    unsigned from = x.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from == to)
      return x;
    return from < to ? mlir::arith::ExtFOp::create(b, l, type, x).getResult()
                     : mlir::arith::TruncFOp::create(b, l, type, x).getResult();
  }

  /// `x` mod `extent` with the sign of a positive `extent`.
  Value floorRem(Value x, Value extent) {
    Value r = rem(x, extent);
    return select(less(r, zero(r.getType())), add(r, extent), r);
  }
  Value clamp(Value x, Value extent) { return max(min(x, add(extent, -1)), index(0)); }
  /// A position in a dimension of `extent`: a negative one counts from the end. One outside is the caller's mistake, and
  /// must not become a read outside.
  Value position(Value at, Value extent) {
    return clamp(select(less(at, index(0)), add(at, extent), at), extent);
  }
  Value inside(Value at, Value extent) { return both(atLeast(at, index(0)), less(at, extent)); }

  /// `some()` if the condition holds, zero otherwise; nothing of `some` is evaluated then.
  Value whenElseZero(Value condition, Type type, llvm::function_ref<Value(Expressions)> some) {
    auto branch = mlir::scf::IfOp::create(b, l, mlir::TypeRange(type), condition, /*withElseRegion=*/true);
    mlir::OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    mlir::scf::YieldOp::create(then, l, some(Expressions{then, l}));
    mlir::scf::YieldOp::create(otherwise, l, Expressions{otherwise, l}.zero(type));
    return branch.getResult(0);
  }

  using Step = llvm::function_ref<llvm::SmallVector<Value>(Expressions, llvm::ArrayRef<Value> indices, mlir::ValueRange carried)>;
  /// A nest of loops over `extents` that carries values.
  llvm::SmallVector<Value> loop(llvm::ArrayRef<Value> extents, mlir::ValueRange initial, Step step,
                                llvm::SmallVector<Value> indices = {}) {
    if (extents.empty())
      return step(*this, indices, initial);
    auto nest = mlir::scf::ForOp::create(
        b, l, index(0), extents.front(), index(1), initial,
        [&](mlir::OpBuilder &inner, mlir::Location, Value at, mlir::ValueRange carried) {
          llvm::SmallVector<Value> all(indices);
          all.push_back(at);
          mlir::scf::YieldOp::create(inner, l, Expressions{inner, l}.loop(extents.drop_front(), carried, step, all));
        });
    return llvm::SmallVector<Value>(nest.getResults());
  }
  /// The same for one value.
  Value fold(llvm::ArrayRef<Value> extents, Value initial,
             llvm::function_ref<Value(Expressions, llvm::ArrayRef<Value>, Value)> step) {
    return loop(extents, initial, [&](Expressions s, llvm::ArrayRef<Value> at, mlir::ValueRange carried) {
      return llvm::SmallVector<Value>{step(s, at, carried[0])};
    })[0];
  }
  llvm::SmallVector<Value> indexes(llvm::ArrayRef<Size> sizes) {
    llvm::SmallVector<Value> values;
    for (const Size &size : sizes)
      values.push_back(index(size));
    return values;
  }

private:
  template <typename Real, typename Integer> Value either(Value x, Value y) {
    if (mlir::isa<mlir::FloatType>(x.getType()))
      return Real::create(b, l, x, y);
    return Integer::create(b, l, x, y);
  }
};

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_EXPRESSIONS_H
