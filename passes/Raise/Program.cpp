// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/Program.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

static bool isReal(Value x) { return isa<FloatType>(x.getType()); }

//===------------------------------------------------------------------------------------------===//
// Arithmetic
//===------------------------------------------------------------------------------------------===//

Value Program::index(int64_t value) { return arith::ConstantIndexOp::create(b, l, value); }

Value Program::extent(const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return index(*constant);
  return SizeOp::create(b, l, size);
}

Value Program::number(Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, l, b.getIntegerAttr(type, int64_t(value)));
}

template <typename Real, typename Integer>
static Value create(Program &p, Value x, Value y) {
  if (isReal(x))
    return Real::create(p.b, p.l, x, y);
  return Integer::create(p.b, p.l, x, y);
}

Value Program::add(Value x, Value y) { return create<arith::AddFOp, arith::AddIOp>(*this, x, y); }
Value Program::sub(Value x, Value y) { return create<arith::SubFOp, arith::SubIOp>(*this, x, y); }
Value Program::mul(Value x, Value y) { return create<arith::MulFOp, arith::MulIOp>(*this, x, y); }
Value Program::div(Value x, Value y) { return create<arith::DivFOp, arith::DivSIOp>(*this, x, y); }
Value Program::rem(Value x, Value y) { return create<arith::RemFOp, arith::RemSIOp>(*this, x, y); }

Value Program::max(Value x, Value y, bool isUnsigned) {
  return isUnsigned ? create<arith::MaximumFOp, arith::MaxUIOp>(*this, x, y)
                    : create<arith::MaximumFOp, arith::MaxSIOp>(*this, x, y);
}
Value Program::min(Value x, Value y, bool isUnsigned) {
  return isUnsigned ? create<arith::MinimumFOp, arith::MinUIOp>(*this, x, y)
                    : create<arith::MinimumFOp, arith::MinSIOp>(*this, x, y);
}

Value Program::less(Value x, Value y, bool isUnsigned) {
  if (isReal(x))
    return arith::CmpFOp::create(b, l, arith::CmpFPredicate::OLT, x, y);
  // As a signed number, true is less than false.
  isUnsigned |= x.getType().isInteger(1);
  return arith::CmpIOp::create(b, l, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, x, y);
}

Value Program::equal(Value x, Value y) {
  if (isReal(x))
    return arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, x, y);
  return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, x, y);
}

Value Program::both(Value x, Value y) { return arith::AndIOp::create(b, l, x, y); }
Value Program::either(Value x, Value y) { return arith::OrIOp::create(b, l, x, y); }
Value Program::negate(Value x) { return arith::XOrIOp::create(b, l, x, flag(true)); }
Value Program::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, l, condition, yes, no);
}

Value Program::toIndex(Value x) {
  return x.getType().isIndex() ? x : arith::IndexCastOp::create(b, l, b.getIndexType(), x).getResult();
}
Value Program::toInteger(Value x, Type type) { return arith::IndexCastOp::create(b, l, type, x); }

Value Program::isTrue(Value x) {
  if (x.getType().isInteger(1))
    return x;
  if (isReal(x))
    return arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNE, x, number(x.getType(), 0));
  return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, x, number(x.getType(), 0));
}

Value Program::fromStart(Value at, Value extent) {
  return select(less(at, index(0)), add(at, extent), at);
}

Value Program::inside(Value x, Value extent) {
  return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, x, extent);
}

SmallVector<Value> Program::split(Value position, ArrayRef<Size> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d == 0) {
      indices[d] = position;
      break;
    }
    Value size = extent(sizes[d]);
    indices[d] = arith::RemUIOp::create(b, l, position, size);
    position = arith::DivUIOp::create(b, l, position, size);
  }
  return indices;
}

void raise::endUnless(Raiser &raiser, StringRef name, const Twine &complaint, function_ref<Value(Program &)> holds) {
  // The bind of a negative number is what fails.
  Known fits = raiser.generated(onnx::ElementType::Int64, {1}, [&](OpBuilder &b, ValueRange) {
    Program p(b, *raiser.currentLocation);
    return p.select(holds(p), p.number(b.getI64Type(), 0), p.number(b.getI64Type(), -1));
  });
  raiser.bind(fits.tensor, name, complaint);
}

LogicalResult raise::mustMatch(Raiser &raiser, onnx::NodeOp node, ArrayRef<Size> sizes, ArrayRef<Size> expected,
                               const Twine &complaint) {
  if (sizes.size() != expected.size())
    return raiser.fail(node, complaint);
  SmallVector<std::pair<Size, Size>> open;
  for (auto [size, wanted] : llvm::zip(sizes, expected)) {
    if (size == wanted)
      continue;
    if ((size - wanted).isConstant())
      return raiser.fail(node, complaint);
    open.push_back({size, wanted});
  }
  if (open.empty())
    return success();
  endUnless(raiser, "shapes_match", complaint, [&](Program &p) {
    Value all = p.flag(true);
    for (auto &[size, wanted] : open)
      all = p.both(all, p.equal(p.extent(size), p.extent(wanted)));
    return all;
  });
  return success();
}

LogicalResult raise::mustBeNumber(Raiser &raiser, onnx::NodeOp node, Known &what, const Twine &complaint) {
  return mustMatch(raiser, node, what.sizes, SmallVector<Size>(what.rank() == 0 ? 0 : 1, Size(1)), complaint);
}

//===------------------------------------------------------------------------------------------===//
// Control
//===------------------------------------------------------------------------------------------===//

Value Program::fold(Value count, Value initial, function_ref<Value(Value, Value)> body) {
  auto op = scf::ForOp::create(b, l, index(0), count, index(1), ValueRange(initial));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  scf::YieldOp::create(b, l, body(op.getInductionVar(), op.getRegionIterArg(0)));
  return op.getResult(0);
}

void Program::loop(Value count, function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, l, index(0), count, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody()); // which has its terminator
  body(op.getInductionVar());
}

void Program::loops(ArrayRef<Size> sizes, function_ref<void(ValueRange)> body) {
  SmallVector<Value> indices;
  auto nest = [&](auto &self) -> void {
    if (indices.size() == sizes.size())
      return body(indices);
    loop(extent(sizes[indices.size()]), [&](Value i) {
      indices.push_back(i);
      self(self);
      indices.pop_back();
    });
  };
  nest(nest);
}

SmallVector<Value> Program::repeat(ValueRange initial, function_ref<Value(ValueRange)> condition,
                                   function_ref<SmallVector<Value>(ValueRange)> body) {
  auto op = scf::WhileOp::create(b, l, initial.getTypes(), initial);
  OpBuilder::InsertionGuard guard(b);
  auto block = [&](Region &region) -> Block & {
    Block &made = region.emplaceBlock();
    for (Type type : initial.getTypes())
      made.addArgument(type, l);
    b.setInsertionPointToStart(&made);
    return made;
  };
  Block &before = block(op.getBefore());
  scf::ConditionOp::create(b, l, condition(before.getArguments()), before.getArguments());
  Block &after = block(op.getAfter());
  scf::YieldOp::create(b, l, body(after.getArguments()));
  return SmallVector<Value>(op.getResults());
}

void Program::when(Value condition, Do yes) {
  auto op = scf::IfOp::create(b, l, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  yes();
}

Value Program::choose(Value condition, Give yes, Give no) {
  // The type is known once a side is written, so that side is written into a block that the operation then takes.
  Block thenBlock, elseBlock;
  Value result;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&thenBlock);
    result = yes();
    scf::YieldOp::create(b, l, result);
    b.setInsertionPointToStart(&elseBlock);
    scf::YieldOp::create(b, l, no());
  }
  auto op = scf::IfOp::create(b, l, TypeRange(result.getType()), condition, /*addThenBlock=*/true,
                              /*addElseBlock=*/true);
  op.thenBlock()->getOperations().splice(op.thenBlock()->end(), thenBlock.getOperations());
  op.elseBlock()->getOperations().splice(op.elseBlock()->end(), elseBlock.getOperations());
  return op.getResult(0);
}

//===------------------------------------------------------------------------------------------===//
// Memory
//===------------------------------------------------------------------------------------------===//

Value Program::load(Value handle, ValueRange indices) {
  return memref::LoadOp::create(b, l, handle, indices);
}

void Program::store(Value value, Value handle, ValueRange indices) {
  memref::StoreOp::create(b, l, value, handle, indices);
}

Value Program::sort(Value count, Value lines, ValueRange leading,
                    function_ref<Value(Value, Value)> before) {
  Type i64 = b.getI64Type();
  auto at = [&](Value row, Value position) {
    SmallVector<Value> indices(leading);
    indices.append({row, position});
    return indices;
  };
  loop(count, [&](Value i) { store(toInteger(i, i64), lines, at(index(0), i)); });
  // Runs of `width` become runs of twice that in the other row.
  auto passes = repeat(
      {index(1), index(0)}, [&](ValueRange v) { return less(v[0], count); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value width = v[0], from = v[1], to = sub(index(1), from);
        repeat(
            index(0), [&](ValueRange start) { return less(start[0], count); },
            [&](ValueRange start) -> SmallVector<Value> {
              Value middle = min(add(start[0], width), count);
              Value end = min(add(middle, width), count);
              repeat(
                  {start[0], start[0], middle}, [&](ValueRange m) { return less(m[0], end); },
                  [&](ValueRange m) -> SmallVector<Value> {
                    Value left = m[1], right = m[2];
                    Value takesRight = choose(
                        less(left, middle),
                        [&] {
                          return choose(
                              less(right, end),
                              [&] {
                                return before(toIndex(load(lines, at(from, right))),
                                              toIndex(load(lines, at(from, left))));
                              },
                              [&] { return flag(false); });
                        },
                        [&] { return flag(true); });
                    Value source = select(takesRight, right, left);
                    store(load(lines, at(from, source)), lines, at(to, m[0]));
                    return {plus(m[0], 1), select(takesRight, left, plus(left, 1)),
                            select(takesRight, plus(right, 1), right)};
                  });
              return {end};
            });
        return {add(width, width), to};
      });
  return passes[1];
}
