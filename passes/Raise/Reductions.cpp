// SPDX-License-Identifier: Apache-2.0
//
// Softmax as loops in the body of a generate.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

enum class Reduction { sum, max };

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
  if (kind == Reduction::sum)
    return arith::ConstantOp::create(b, l, b.getZeroAttr(type));
  APFloat least = APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), /*Negative=*/true);
  return arith::ConstantOp::create(b, l, b.getFloatAttr(type, least));
}

Value combine(OpBuilder &b, Location l, Reduction kind, Value a, Value x) {
  if (kind == Reduction::sum)
    return arith::AddFOp::create(b, l, a, x);
  return arith::MaximumFOp::create(b, l, a, x);
}

/// Since opset 13 along one axis; before, over all axes from `axis` on.
LogicalResult raiseSoftmax(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank(), version = node.getVersion();
  int64_t axis = node.intOr("axis", version < 13 ? 1 : -1);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank || !isa<FloatType>(raiser.internalType(input.elementType)))
    return raiser.fail(node, "expects floats and an axis inside rank " + Twine(rank));
  int64_t end = version < 13 ? rank : axis + 1;
  ArrayRef<Size> extents = ArrayRef<Size>(input.sizes).slice(axis, end - axis);
  SmallVector<Size> sizes(input.sizes);
  for (int64_t i = axis; i != end; ++i)
    sizes[i] = 1;
  Location l = node.getLoc();
  Type type = raiser.internalType(input.elementType);
  auto at = [&](ValueRange indices, ArrayRef<Value> loop) {
    SmallVector<Value> all(indices);
    for (int64_t i = axis; i != end; ++i)
      all[i] = loop[i - axis];
    return all;
  };
  Known largest = raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    return reduce(b, l, extents, initialValue(b, l, type, Reduction::max),
                  [&](OpBuilder &inner, ArrayRef<Value> loop, Value carried) {
                    return combine(inner, l, Reduction::max, carried, raiser.element(inner, input, at(indices, loop)));
                  });
  });
  auto exponential = [&](OpBuilder &b, ValueRange indices) -> Value {
    Value x = raiser.element(b, input, indices), m = raiser.element(b, largest, indices);
    return math::ExpOp::create(b, l, arith::SubFOp::create(b, l, x, m));
  };
  Known sum = raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    return reduce(b, l, extents, initialValue(b, l, type, Reduction::sum),
                  [&](OpBuilder &inner, ArrayRef<Value> loop, Value carried) {
                    return combine(inner, l, Reduction::sum, carried, exponential(inner, at(indices, loop)));
                  });
  });
  raiser.set(node, raiser.generated(input.elementType, input.sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    return arith::DivFOp::create(b, l, exponential(b, indices), raiser.element(b, sum, indices));
  }));
  return success();
}

} // namespace

void raise::registerReductions(Registry &registry) {
  registry.add("Softmax", raiseSoftmax, 1, 1);
}
