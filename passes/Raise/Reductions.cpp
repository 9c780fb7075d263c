// SPDX-License-Identifier: Apache-2.0
//
// Reductions over axes as loops in the body of a generate.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

enum class Reduction { sum, mean, max, min };

Value extentOf(OpBuilder &b, Location l, const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return arith::ConstantIndexOp::create(b, l, *constant);
  return SizeOp::create(b, l, size);
}

/// A loop nest over `extents` that folds `step(indices)` into an accumulator.
Value reduce(OpBuilder &b, Location l, ArrayRef<Size> extents, Value initial,
             function_ref<Value(OpBuilder &, ArrayRef<Value>, Value)> step,
             SmallVector<Value> indices = {}) {
  if (extents.empty())
    return step(b, indices, initial);
  Value zero = arith::ConstantIndexOp::create(b, l, 0), one = arith::ConstantIndexOp::create(b, l, 1);
  auto loop = scf::ForOp::create(
      b, l, zero, extentOf(b, l, extents.front()), one, ValueRange(initial),
      [&](OpBuilder &inner, Location, Value index, ValueRange carried) {
        SmallVector<Value> all(indices);
        all.push_back(index);
        scf::YieldOp::create(inner, l, reduce(inner, l, extents.drop_front(), carried[0], step, all));
      });
  return loop.getResult(0);
}

Value initialValue(OpBuilder &b, Location l, Type type, Reduction kind) {
  auto real = dyn_cast<FloatType>(type);
  TypedAttr value;
  if (kind == Reduction::sum || kind == Reduction::mean)
    value = b.getZeroAttr(type);
  else if (real)
    value = b.getFloatAttr(type, APFloat::getInf(real.getFloatSemantics(), kind == Reduction::max));
  else
    value = b.getIntegerAttr(type, kind == Reduction::max
                                       ? APInt::getSignedMinValue(type.getIntOrFloatBitWidth())
                                       : APInt::getSignedMaxValue(type.getIntOrFloatBitWidth()));
  return arith::ConstantOp::create(b, l, value);
}

Value combine(OpBuilder &b, Location l, Reduction kind, Value a, Value x) {
  bool real = isa<FloatType>(a.getType());
  switch (kind) {
  case Reduction::sum:
  case Reduction::mean:
    return real ? arith::AddFOp::create(b, l, a, x).getResult() : arith::AddIOp::create(b, l, a, x).getResult();
  case Reduction::max:
    return real ? arith::MaximumFOp::create(b, l, a, x).getResult() : arith::MaxSIOp::create(b, l, a, x).getResult();
  case Reduction::min:
    return real ? arith::MinimumFOp::create(b, l, a, x).getResult() : arith::MinSIOp::create(b, l, a, x).getResult();
  }
  return {};
}

LogicalResult raiseReduction(Raiser &raiser, onnx::NodeOp node, Reduction kind) {
  Known &input = raiser.input(node, 0);
  SmallVector<int64_t> axes;
  if (raiser.hasInput(node, 1)) {
    std::optional<SmallVector<int64_t>> given = raiser.constants(node.getInputs()[1]);
    if (!given)
      return raiser.fail(node, "axes must be constant");
    axes = *given;
  } else if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("axes"))) {
    axes.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  }
  bool keep = node.intOr("keepdims", 1) != 0;
  if (axes.empty() && node.intOr("noop_with_empty_axes", 0) != 0) {
    raiser.set(node, Known(input));
    return success();
  }
  SmallVector<bool> reduced(input.rank(), axes.empty());
  for (int64_t axis : axes) {
    int64_t at = axis < 0 ? axis + int64_t(input.rank()) : axis;
    if (at < 0 || at >= int64_t(input.rank()))
      return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(input.rank()));
    reduced[at] = true;
  }
  SmallVector<Size> sizes, extents;
  for (auto [size, drop] : llvm::zip(input.sizes, reduced)) {
    if (drop)
      extents.push_back(size);
    if (!drop)
      sizes.push_back(size);
    else if (keep)
      sizes.push_back(1);
  }
  Type type = raiser.internalType(input.elementType);
  if ((kind == Reduction::max || kind == Reduction::min) && raiser.isUnsigned(input.elementType))
    return raiser.fail(node, "unsigned integers are not supported");
  if (kind == Reduction::mean && !isa<FloatType>(type))
    return raiser.fail(node, "a mean of integers is not supported");
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Location l = node.getLoc();
    Value sum = reduce(b, l, extents, initialValue(b, l, type, kind),
                       [&](OpBuilder &inner, ArrayRef<Value> loop, Value carried) {
                         SmallVector<Value> at;
                         size_t nextLoop = 0, nextIndex = 0;
                         for (bool drop : reduced) {
                           at.push_back(drop ? loop[nextLoop++] : indices[nextIndex]);
                           nextIndex += !drop || keep;
                         }
                         return combine(inner, l, kind, carried, raiser.element(inner, input, at));
                       });
    if (kind != Reduction::mean)
      return sum;
    Value count = arith::IndexCastOp::create(b, l, b.getI64Type(), extentOf(b, l, elementCount(extents)));
    return arith::DivFOp::create(b, l, sum, arith::SIToFPOp::create(b, l, type, count));
  }));
  return success();
}

} // namespace

void raise::registerReductions(Registry &registry) {
  auto add = [&](StringRef name, Reduction kind) {
    registry.add(name, [kind](Raiser &raiser, onnx::NodeOp node) { return raiseReduction(raiser, node, kind); }, 1, 2);
  };
  add("ReduceSum", Reduction::sum);
  add("ReduceMean", Reduction::mean);
  add("ReduceMax", Reduction::max);
  add("ReduceMin", Reduction::min);
}
