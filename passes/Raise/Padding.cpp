// SPDX-License-Identifier: Apache-2.0
//
// Pad and CenterCropPad: a window over a tensor that may begin before it and end behind it. Negative pads crop first; what
// lies outside is then a constant, or a place inside by the mode's rule.

#include "passes/Raise/Numbers.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// One axis: output index i is index i − before of the `count` elements from `first` on.
struct Window {
  Number before = 0, first = 0, count = 0;
};

using Fold = std::function<Value(Expressions, Value at, Value count)>;

/// The place inside 0 … count − 1 that stands for `at`, by mode; null for an unknown one.
Fold foldOf(StringRef mode) {
  if (mode == "edge")
    return [](Expressions s, Value at, Value count) { return s.clamp(at, count); };
  if (mode == "wrap")
    return [](Expressions s, Value at, Value count) { return s.floorRem(at, s.max(count, s.index(1))); };
  if (mode == "reflect")
    return [](Expressions s, Value at, Value count) {
      Value last = s.add(count, -1);
      Value period = s.max(s.add(last, last), s.index(1));
      Value in = s.floorRem(at, period);
      return s.min(in, s.sub(period, in));
    };
  return nullptr;
}

LogicalResult raisePad(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank();
  StringRef mode = node.stringOr("mode", "constant");
  Fold fold = foldOf(mode);
  if (!fold && mode != "constant")
    return raiser.fail(node, "mode '" + mode + "' is none of constant, edge, reflect and wrap");
  // Pads and value are attributes before opset 11.
  FailureOr<SmallVector<Number>> pads = numbersOf(raiser, node, 1, "pads"), axes = numbersOf(raiser, node, 3);
  if (failed(pads) || failed(axes))
    return failure();
  if (!raiser.hasInput(node, 3))
    for (int64_t i = 0; i != rank; ++i)
      axes->push_back(Number(i));
  size_t count = axes->size();
  if (pads->size() != 2 * count)
    return raiser.fail(node, "it has " + Twine(pads->size()) + " pads for " + Twine(count) + " axes");

  SmallVector<Number> before(rank, Number(0)), after(rank, Number(0));
  SmallVector<bool> seen(rank, false);
  for (size_t i = 0; i != count; ++i) {
    std::optional<int64_t> given = (*axes)[i].constant();
    std::optional<int64_t> axis = given ? axisInside(*given, rank) : std::nullopt;
    if (given && (!axis || seen[*axis]))
      return raiser.fail(node, "axis " + Twine(*given) + " is outside rank " + Twine(rank) + " or there twice");
    if (given) {
      seen[*axis] = true;
      before[*axis] = (*pads)[i];
      after[*axis] = (*pads)[count + i];
      continue;
    }
    // An axis of data: each dimension asks whether it is meant.
    Number at = ifNegative((*axes)[i], (*axes)[i] + Number(rank), (*axes)[i]);
    for (int64_t d = 0; d != rank; ++d) {
      before[d] = ifEqual(at, d, (*pads)[i], before[d]);
      after[d] = ifEqual(at, d, (*pads)[count + i], after[d]);
    }
  }
  std::vector<Window> windows;
  SmallVector<Number> extents;
  for (int64_t i = 0; i != rank; ++i) {
    Number first = maximum(Number(0) - before[i], 0), crop = maximum(Number(0) - after[i], 0);
    windows.push_back({maximum(before[i], 0), first, Number(input.sizes[i]) - first - crop});
    extents.push_back(maximum(Number(input.sizes[i]) + before[i] + after[i], 0));
    if (fold && windows.back().count.size() && Number(0).isAtLeast(windows.back().count) && !extents.back().is(0))
      return raiser.fail(node, "dimension " + Twine(i) + " has nothing to pad with");
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents);
  if (failed(sizes))
    return failure();
  if (raiser.hasInput(node, 2) && elementCount(raiser.input(node, 2).sizes) != Size(1))
    return raiser.fail(node, "constant_value must be one element");

  Type type = raiser.internalType(input.elementType);
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    Value inside;
    for (int64_t i = 0; i != rank; ++i) {
      const Window &window = windows[i];
      if (before[i].is(0) && after[i].is(0))
        continue;
      Value index = s.sub(at[i], window.before.emit(s)), extent = window.count.emit(s);
      if (fold)
        index = fold(s, index, extent);
      Value here = fold ? s.less(s.index(0), extent) : s.inside(index, extent);
      // Of a constant dimension it is known that there is something to fold into.
      if (!fold || !window.count.isAtLeast(1))
        inside = inside ? s.both(inside, here) : here;
      at[i] = window.first.is(0) ? index : s.add(index, window.first.emit(s));
    }
    if (!inside)
      return raiser.element(b, input, at);
    Value value;
    if (raiser.hasInput(node, 2))
      value = raiser.element(b, raiser.input(node, 2), s.index(0));
    else
      value = s.constant(type, node.floatOr("value", 0));
    auto branch = scf::IfOp::create(b, s.l, TypeRange(type), inside, /*withElseRegion=*/true);
    OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
    scf::YieldOp::create(then, s.l, raiser.element(then, input, at));
    scf::YieldOp::create(otherwise, s.l, value);
    return branch.getResult(0);
  }));
  return success();
}

LogicalResult raiseCenterCropPad(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank();
  FailureOr<SmallVector<Number>> shape = numbersOf(raiser, node, 1);
  if (failed(shape))
    return failure();
  SmallVector<int64_t> axes;
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("axes")))
    axes.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  else
    for (int64_t i = 0; i != rank; ++i)
      axes.push_back(i);
  if (axes.size() != shape->size())
    return raiser.fail(node, "it has " + Twine(shape->size()) + " sizes for " + Twine(axes.size()) + " axes");
  SmallVector<Number> extents, shifts(rank, Number(0));
  for (const Size &size : input.sizes)
    extents.push_back(size);
  for (auto [given, size] : llvm::zip(axes, *shape)) {
    std::optional<int64_t> axis = axisInside(given, rank);
    if (!axis)
      return raiser.fail(node, "axis " + Twine(given) + " is outside rank " + Twine(rank));
    Number wanted = maximum(size, 0), difference = Number(input.sizes[*axis]) - wanted;
    // The smaller half lies before, whether it is cut off or put on.
    shifts[*axis] = ifNegative(difference, Number(0) - quotient(maximum(Number(0) - difference, 0), 2),
                               quotient(maximum(difference, 0), 2));
    extents[*axis] = wanted;
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents);
  if (failed(sizes))
    return failure();
  Type type = raiser.internalType(input.elementType);
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    Value inside;
    for (int64_t i = 0; i != rank; ++i) {
      if ((*sizes)[i] == input.sizes[i])
        continue;
      at[i] = s.add(at[i], shifts[i].emit(s));
      Value here = s.inside(at[i], s.index(input.sizes[i]));
      inside = inside ? s.both(inside, here) : here;
    }
    if (!inside)
      return raiser.element(b, input, at);
    return s.whenElseZero(inside, type, [&](Expressions then) { return raiser.element(then.b, input, at); });
  }));
  return success();
}

} // namespace

void raise::registerPadding(Registry &registry) {
  registry.add("Pad", raisePad, 1, 4);
  registry.add("CenterCropPad", raiseCenterCropPad, 2, 2, 18);
}
