// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/Scalars.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

static bool isReal(Value x) { return isa<FloatType>(x.getType()); }

Value Scalars::number(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, l, b.getIntegerAttr(type, int64_t(value)));
}

Value Scalars::index(int64_t value) { return arith::ConstantIndexOp::create(b, l, value); }

Value Scalars::index(const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return index(*constant);
  return SizeOp::create(b, l, size);
}

//===------------------------------------------------------------------------------------------===//
// Arithmetic
//===------------------------------------------------------------------------------------------===//

template <typename Real, typename Integer>
static Value binary(OpBuilder &b, Location l, Value x, Value y) {
  return isReal(x) ? Real::create(b, l, x, y).getResult() : Integer::create(b, l, x, y).getResult();
}

Value Scalars::add(Value x, Value y) { return binary<arith::AddFOp, arith::AddIOp>(b, l, x, y); }
Value Scalars::sub(Value x, Value y) { return binary<arith::SubFOp, arith::SubIOp>(b, l, x, y); }
Value Scalars::mul(Value x, Value y) { return binary<arith::MulFOp, arith::MulIOp>(b, l, x, y); }
Value Scalars::div(Value x, Value y) { return binary<arith::DivFOp, arith::DivUIOp>(b, l, x, y); }
Value Scalars::rem(Value x, Value y) { return binary<arith::RemFOp, arith::RemUIOp>(b, l, x, y); }
Value Scalars::max(Value x, Value y) {
  return binary<arith::MaximumFOp, arith::MaxSIOp>(b, l, x, y);
}
Value Scalars::min(Value x, Value y) {
  return binary<arith::MinimumFOp, arith::MinSIOp>(b, l, x, y);
}

Value Scalars::add(Value x, double y) { return y == 0 ? x : add(x, number(x.getType(), y)); }
Value Scalars::mul(Value x, double y) { return y == 1 ? x : mul(x, number(x.getType(), y)); }
Value Scalars::div(Value x, double y) { return y == 1 ? x : div(x, number(x.getType(), y)); }

static Value compare(OpBuilder &b, Location l, arith::CmpFPredicate real,
                     arith::CmpIPredicate integer, Value x, Value y) {
  return isReal(x) ? arith::CmpFOp::create(b, l, real, x, y).getResult()
                   : arith::CmpIOp::create(b, l, integer, x, y).getResult();
}

Value Scalars::less(Value x, Value y) {
  return compare(b, l, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, x, y);
}
Value Scalars::lessEqual(Value x, Value y) {
  return compare(b, l, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, x, y);
}
Value Scalars::equal(Value x, Value y) {
  return compare(b, l, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, x, y);
}

Value Scalars::both(Value x, Value y) {
  return !x ? y : !y ? x : arith::AndIOp::create(b, l, x, y).getResult();
}
Value Scalars::either(Value x, Value y) { return arith::OrIOp::create(b, l, x, y); }
Value Scalars::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, l, condition, x, y);
}

Value Scalars::inside(Value i, const Size &size) {
  return both(lessEqual(index(0), i), less(i, index(size)));
}

Value Scalars::some(const Size &size) {
  return size.isAtLeast(1) ? Value() : less(index(0), index(size));
}

Value Scalars::clamp(Value i, const Size &size) {
  return max(min(i, index(size - Size(1))), index(0));
}

Value Scalars::abs(Value x) {
  return isReal(x) ? math::AbsFOp::create(b, l, x).getResult()
                   : math::AbsIOp::create(b, l, x).getResult();
}
Value Scalars::floor(Value x) { return math::FloorOp::create(b, l, x); }
Value Scalars::ceil(Value x) { return math::CeilOp::create(b, l, x); }
Value Scalars::sqrt(Value x) { return math::SqrtOp::create(b, l, x); }
Value Scalars::exp(Value x) { return math::ExpOp::create(b, l, x); }
Value Scalars::log(Value x) { return math::LogOp::create(b, l, x); }
Value Scalars::pow(Value x, Value y) { return math::PowFOp::create(b, l, x, y); }

Value Scalars::real(Type type, Value x) {
  if (x.getType() == type)
    return x;
  if (isReal(x))
    return type.getIntOrFloatBitWidth() > x.getType().getIntOrFloatBitWidth()
               ? arith::ExtFOp::create(b, l, type, x).getResult()
               : arith::TruncFOp::create(b, l, type, x).getResult();
  if (x.getType().isIndex())
    x = arith::IndexCastOp::create(b, l, b.getI64Type(), x);
  return arith::SIToFPOp::create(b, l, type, x);
}

Value Scalars::toIndex(Value x) {
  constexpr double limit = 1 << 30;
  x = arith::MaxNumFOp::create(b, l, x, number(x.getType(), -limit));
  x = arith::MinNumFOp::create(b, l, x, number(x.getType(), limit));
  return asIndex(arith::FPToSIOp::create(b, l, b.getI64Type(), x));
}

Value Scalars::asIndex(Value x) {
  return x.getType().isIndex() ? x
                               : arith::IndexCastOp::create(b, l, b.getIndexType(), x).getResult();
}

Value Scalars::asInteger(Type type, Value x) { return arith::IndexCastOp::create(b, l, type, x); }

//===------------------------------------------------------------------------------------------===//
// Control
//===------------------------------------------------------------------------------------------===//

/// A null extent stands for 1.
SmallVector<Value> Scalars::nest(ArrayRef<Value> extents, ValueRange initial, Step step,
                                 SmallVector<Value> indices) {
  if (extents.empty())
    return step(*this, indices, initial);
  if (!extents.front()) {
    indices.push_back(index(0));
    return nest(extents.drop_front(), initial, step, indices);
  }
  auto loop = scf::ForOp::create(b, l, index(0), extents.front(), index(1), initial,
                                 [&](OpBuilder &inner, Location, Value i, ValueRange carried) {
                                   Scalars s(inner, l);
                                   SmallVector<Value> all(indices);
                                   all.push_back(i);
                                   scf::YieldOp::create(
                                       inner, l, s.nest(extents.drop_front(), carried, step, all));
                                 });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> Scalars::loop(ValueRange extents, ValueRange initial, Step step) {
  return nest(SmallVector<Value>(extents), initial, step, {});
}

SmallVector<Value> Scalars::loop(ArrayRef<Size> sizes, ValueRange initial, Step step) {
  SmallVector<Value> extents;
  for (const Size &size : sizes)
    extents.push_back(size == Size(1) ? Value() : index(size));
  return nest(extents, initial, step, {});
}

Value Scalars::fold(ArrayRef<Size> extents, Value initial, Fold step) {
  return loop(extents, ValueRange(initial),
              [&](Scalars &s, ValueRange indices, ValueRange carried) {
                return SmallVector<Value>{step(s, indices, carried[0])};
              })[0];
}

Value Scalars::sum(Type type, ArrayRef<Size> extents,
                   function_ref<Value(Scalars &, ValueRange)> term) {
  return fold(extents, number(type, 0), [&](Scalars &s, ValueRange indices, Value carried) {
    return s.add(carried, term(s, indices));
  });
}

Value Scalars::when(Value condition, Branch then, Branch otherwise) {
  if (!condition)
    return then(*this);
  return scf::IfOp::create(
             b, l, condition,
             [&](OpBuilder &inner, Location) {
               Scalars s(inner, l);
               scf::YieldOp::create(inner, l, then(s));
             },
             [&](OpBuilder &inner, Location) {
               Scalars s(inner, l);
               scf::YieldOp::create(inner, l, otherwise(s));
             })
      .getResult(0);
}
