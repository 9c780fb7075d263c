// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Program.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

Value raise::extentOf(OpBuilder &b, Location l, const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return arith::ConstantIndexOp::create(b, l, *constant);
  return SizeOp::create(b, l, size);
}

Value PerBatch::at(OpBuilder &b, Location l, Value batch) const { return own ? own(b, batch) : extentOf(b, l, same); }

//===------------------------------------------------------------------------------------------===//
// Heads
//===------------------------------------------------------------------------------------------===//

Known raise::swapHeads(Raiser &raiser, Known &x) {
  SmallVector<Size> sizes(x.sizes);
  std::swap(sizes[1], sizes[2]);
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange i) {
    return raiser.element(b, x, ValueRange{i[0], i[2], i[1], i[3]});
  });
}

std::optional<Known> raise::splitHeads(Raiser &raiser, Known &x, int64_t heads) {
  std::optional<Size> width = x.rank() == 3 && heads > 0 ? x.sizes[2].divide(heads) : std::nullopt;
  if (!width)
    return std::nullopt;
  Known split = raiser.reshaped(x, {x.sizes[0], x.sizes[1], heads, *width});
  return swapHeads(raiser, split);
}

Known raise::mergeHeads(Raiser &raiser, Known &x) {
  Known swapped = swapHeads(raiser, x);
  return raiser.reshaped(swapped, {x.sizes[0], x.sizes[2], x.sizes[1] * x.sizes[3]});
}

std::optional<Known> raise::appendStep(Raiser &raiser, onnx::NodeOp node, Value past, Known &update, Value at) {
  Known before = raiser.known(past); // a copy: the cache may still get its type
  if (before.rank() != 4 || update.rank() != 4) {
    (void)raiser.fail(node, "past keys and values must have rank 4");
    return std::nullopt;
  }
  Known result = update;
  result.tensor = nullptr;
  result.sizes[2] = before.sizes[2] + update.sizes[2];
  if (raiser.isCacheOf(past, node)) {
    Value state = raiser.cacheState(past, update.sizes[1], update.sizes[3]);
    if (!state) {
      (void)raiser.fail(node, "the cache has other heads than what is added to it");
      return std::nullopt;
    }
    Value tensor = raiser.tensor(update);
    result.state = AppendOp::create(raiser.builder, node.getLoc(), state.getType(), state, tensor, at,
                                    /*positions_first=*/false);
    return result;
  }
  return concatStep(raiser, node, before, update, at);
}

LogicalResult raise::appendPast(Raiser &raiser, onnx::NodeOp node, AttentionForm &form,
                                unsigned past, Value at) {
  Known *parts[2] = {&form.key, &form.value};
  for (unsigned i : {0u, 1u}) {
    if (raiser.hasInput(node, past)) {
      std::optional<Known> present =
          appendStep(raiser, node, node.getInputs()[past + i], *parts[i], at);
      if (!present)
        return failure();
      *parts[i] = std::move(*present);
    }
    if (node.getOutputs().size() > i + 1)
      raiser.set(node, *parts[i], i + 1);
  }
  return success();
}

LogicalResult raise::setAttended(Raiser &raiser, onnx::NodeOp node, AttentionForm &form,
                                 bool flat) {
  std::optional<Known> result = attend(raiser, node, form);
  if (!result)
    return failure();
  raiser.set(node, flat ? mergeHeads(raiser, *result) : std::move(*result));
  return success();
}

std::optional<Known> raise::concatStep(Raiser &raiser, onnx::NodeOp node, Known &past, Known &update, Value at) {
  if (past.sizes[0] != update.sizes[0] || past.sizes[1] != update.sizes[1] || past.sizes[3] != update.sizes[3]) {
    (void)raiser.fail(node, "past and new keys or values differ in batch, heads or width");
    return std::nullopt;
  }
  SmallVector<Size> sizes(update.sizes);
  sizes[2] = past.sizes[2] + update.sizes[2];
  return raiser.generated(update.elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Location l = node.getLoc();
    Type type = raiser.internalType(update.elementType);
    auto choose = [&](OpBuilder &outer, Value condition, function_ref<Value(OpBuilder &)> yes,
                      function_ref<Value(OpBuilder &)> no) -> Value {
      auto branch = scf::IfOp::create(outer, l, TypeRange(type), condition, /*withElseRegion=*/true);
      OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
      scf::YieldOp::create(then, l, yes(then));
      scf::YieldOp::create(otherwise, l, no(otherwise));
      return branch.getResult(0);
    };
    Value length = extentOf(b, l, past.sizes[2]), first = length;
    if (at)
      first = arith::IndexCastOp::create(b, l, b.getIndexType(), tensor::ExtractOp::create(b, l, at, ValueRange{i[0]}));
    // As unsigned numbers, negative ones are too large.
    Value local = arith::SubIOp::create(b, l, i[2], first);
    Value fresh = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, local, extentOf(b, l, update.sizes[2]));
    return choose(
        b, fresh, [&](OpBuilder &inner) { return raiser.element(inner, update, ValueRange{i[0], i[1], local, i[3]}); },
        [&](OpBuilder &inner) {
          Value old = arith::CmpIOp::create(inner, l, arith::CmpIPredicate::slt, i[2], length);
          return choose(
              inner, old, [&](OpBuilder &deep) { return raiser.element(deep, past, i); },
              [&](OpBuilder &deep) -> Value { return arith::ConstantOp::create(deep, l, deep.getZeroAttr(type)); });
        });
  });
}

//===------------------------------------------------------------------------------------------===//
// Rotary embedding
//===------------------------------------------------------------------------------------------===//

void raise::limitPositions(Raiser &raiser, Value of, const Size &rows, const Size &batch,
                           const Size &positions, Place place) {
  std::string key =
      "positions " + std::to_string(uintptr_t(of.getAsOpaquePointer())) + " " + rows.str() + " " +
      batch.str() + " " + positions.str();
  if (!raiser.boundNumbers.insert({{raiser.builder.getInsertionBlock(), key}, rows}).second)
    return;
  endUnless(raiser, "positions_fit", "a position is outside the table of its rotary embedding", [&](Program &p) {
    return p.fold(p.extent(batch), p.flag(true), [&](Value entry, Value before) {
      return p.fold(p.extent(positions), before, [&](Value position, Value carried) {
        Value row = p.fromStart(place(p.b, entry, position), p.extent(rows));
        return p.both(carried, p.inside(row, p.extent(rows)));
      });
    });
  });
}

Known raise::rotaryTable(Raiser &raiser, Known &table, const Size &batch, const Size &positions,
                         int64_t rotated, bool interleaved, Place place) {
  return raiser.generated(Element::Float, {batch, positions, Size(rotated)}, [&](OpBuilder &b, ValueRange i) -> Value {
    Location l = *raiser.currentLocation;
    Value half = arith::ConstantIndexOp::create(b, l, interleaved ? 2 : rotated / 2);
    Value pair = interleaved ? arith::DivUIOp::create(b, l, i[2], half).getResult()
                             : arith::RemUIOp::create(b, l, i[2], half).getResult();
    if (table.rank() == 3)
      return raiser.element(b, table, ValueRange{i[0], i[1], pair});
    // The run has ended, or will, where a position is outside; it must not become a read outside.
    Value last = extentOf(b, l, table.sizes[0] - Size(1)), zero = arith::ConstantIndexOp::create(b, l, 0);
    Value from = Program(b, l).fromStart(place(b, i[0], i[1]), extentOf(b, l, table.sizes[0]));
    Value row = arith::MaxSIOp::create(b, l, arith::MinSIOp::create(b, l, from, last), zero);
    return raiser.element(b, table, ValueRange{row, pair});
  });
}

Known raise::rotate(Raiser &raiser, Known &x, Known &cos, Known &sin, bool interleaved, bool positionsFirst) {
  Known result = x;
  Location l = *raiser.currentLocation;
  if (!interleaved && isa<Float32Type>(raiser.internalType(x.elementType))) {
    Value input = raiser.tensor(x), c = raiser.tensor(cos), s = raiser.tensor(sin);
    result.tensor = RopeOp::create(raiser.builder, l, input.getType(), input, c, s, positionsFirst);
    return result;
  }
  int64_t rotated = *cos.sizes[2].constant();
  Type type = raiser.internalType(x.elementType);
  return raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value one = arith::ConstantIndexOp::create(b, l, 1), limit = arith::ConstantIndexOp::create(b, l, rotated);
    Value half = arith::ConstantIndexOp::create(b, l, rotated / 2), zero = arith::ConstantIndexOp::create(b, l, 0);
    Value inside = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, i[3], limit);
    Value at = arith::SelectOp::create(b, l, inside, i[3], zero), first, partner;
    if (interleaved) {
      Value odd = arith::AndIOp::create(b, l, at, one);
      first = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, odd, zero);
      partner = arith::XOrIOp::create(b, l, at, one);
    } else {
      first = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, at, half);
      partner = arith::SelectOp::create(b, l, first, arith::AddIOp::create(b, l, at, half),
                                        arith::SubIOp::create(b, l, at, half));
    }
    Value position = positionsFirst ? i[1] : i[2];
    auto of = [&](Known &table) {
      Value value = raiser.element(b, table, ValueRange{i[0], position, at});
      return value.getType() == type ? value : arith::ExtFOp::create(b, l, type, value).getResult();
    };
    Value here = raiser.element(b, x, i), there = raiser.element(b, x, ValueRange{i[0], i[1], i[2], partner});
    Value across = arith::MulFOp::create(b, l, there, of(sin)), along = arith::MulFOp::create(b, l, here, of(cos));
    Value turned = arith::SelectOp::create(b, l, first, arith::SubFOp::create(b, l, along, across),
                                           arith::AddFOp::create(b, l, along, across));
    return arith::SelectOp::create(b, l, inside, turned, here);
  });
}

//===------------------------------------------------------------------------------------------===//
// Norms of rows
//===------------------------------------------------------------------------------------------===//

std::optional<Known> raise::normOfRows(Raiser &raiser, onnx::NodeOp node, NormKind kind, Known &x, Known &scale,
                                       Known *bias, double epsilon) {
  auto fits = [&](Known &vector) { return vector.rank() == 1 && vector.sizes[0] == x.sizes.back(); };
  if (x.rank() == 0 || !isa<Float32Type>(raiser.internalType(x.elementType)) || !fits(scale) || (bias && !fits(*bias)) ||
      !isa<Float32Type>(raiser.internalType(scale.elementType))) {
    (void)raiser.fail(node, "expects floats, and scale and bias as long as the last dimension");
    return std::nullopt;
  }
  Known result = x;
  Value input = raiser.tensor(x), gain = raiser.tensor(scale), shift = bias ? raiser.tensor(*bias) : Value();
  result.state = nullptr;
  result.tensor = NormOp::create(raiser.builder, node.getLoc(), input.getType(),
                                 NormKindAttr::get(raiser.builder.getContext(), kind), input, gain, shift,
                                 raiser.builder.getF32FloatAttr(epsilon));
  return result;
}
