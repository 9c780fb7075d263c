// SPDX-License-Identifier: Apache-2.0
//
// Operators about shapes: those that ask for one, and those that give the same elements another. Where a shape is data its
// sizes are bound at run time.

#include "passes/Raise/Numbers.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

LogicalResult raiseShape(Raiser &raiser, onnx::NodeOp node) {
  ArrayRef<Size> sizes = raiser.input(node, 0).sizes;
  int64_t rank = sizes.size();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(node.intOr("start", 0)), end = clamp(node.intOr("end", rank));
  Known result;
  result.elementType = Element::Int64;
  result.integers.emplace();
  for (int64_t i = start; i < end; ++i)
    result.integers->push_back(sizes[i]);
  result.sizes = {Size(int64_t(result.integers->size()))};
  raiser.set(node, std::move(result));
  return success();
}

/// A shape that is data: -1 and 0 are seen at run time only.
LogicalResult reshapeByData(Raiser &raiser, onnx::NodeOp node, Known &input, ArrayRef<Number> shape, bool keepZero) {
  Number count = elementCount(input.sizes), rest = 1;
  SmallVector<Number> given;
  for (auto [i, number] : llvm::enumerate(shape)) {
    Number size = number;
    if (!keepZero && i < input.rank() && (!size.size() || size.is(0)))
      size = ifEqual(size, 0, input.sizes[i], size);
    given.push_back(size);
    rest = rest * ifNegative(size, 1, size);
  }
  Number product = 1;
  for (Number &size : given) {
    size = ifNegative(size, quotient(count, rest), size);
    product = product * size;
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, given, Check{product, count, "its elements and those of its shape"});
  if (failed(sizes))
    return failure();
  raiser.set(node, reshapedTo(raiser, input, *sizes));
  return success();
}

LogicalResult raiseReshape(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  bool keepZero = node.intOr("allowzero", 0) != 0;
  FailureOr<SmallVector<Number>> shape = numbersOf(raiser, node, 1);
  if (failed(shape))
    return failure();
  SmallVector<Size> sizes;
  std::optional<size_t> inferred;
  Size rest = 1;
  for (auto [i, number] : llvm::enumerate(*shape)) {
    if (!number.size())
      return reshapeByData(raiser, node, input, *shape, keepZero);
    const Size &size = *number.size();
    if (size == Size(-1)) {
      if (inferred)
        return raiser.fail(node, "its shape has -1 twice");
      inferred = i;
      sizes.push_back(1);
      continue;
    }
    if (size == Size(0) && !keepZero) {
      if (i >= input.rank())
        return raiser.fail(node, "its shape has 0 where the input has no dimension");
      sizes.push_back(input.sizes[i]);
    } else {
      sizes.push_back(size);
    }
    rest = rest * sizes.back();
  }
  Size count = elementCount(input.sizes);
  if (inferred) {
    std::optional<Size> size = count.divide(rest);
    if (!size && rest == Size(0))
      return raiser.fail(node, "its shape has -1 beside a dimension of size 0");
    if (!size) // only the input says whether it divides
      return reshapeByData(raiser, node, input, *shape, keepZero);
    sizes[*inferred] = *size;
  }
  if (elementCount(sizes) != count) { // also where only some inputs fit
    if (failed(settled(raiser, node, {}, Check{count, elementCount(sizes), "its elements and those of its shape"})))
      return failure();
    raiser.set(node, reshapedTo(raiser, input, sizes));
    return success();
  }
  raiser.set(node, raiser.reshaped(input, sizes));
  return success();
}

LogicalResult raiseFlatten(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank(), axis = node.intOr("axis", 1);
  if (axis < -rank || axis > rank)
    return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  ArrayRef<Size> sizes = input.sizes;
  raiser.set(node, raiser.reshaped(input, {elementCount(sizes.take_front(axis)),
                                           elementCount(sizes.drop_front(axis))}));
  return success();
}

/// For each of `rank` dimensions 1 if it is among the axes, 0 if not. They are an attribute before opset 13 and an input since.
FailureOr<SmallVector<Number>> amongAxes(Raiser &raiser, onnx::NodeOp node, ArrayRef<Number> axes, int64_t rank) {
  SmallVector<Number> among(rank, Number(0));
  for (const Number &axis : axes) {
    if (std::optional<int64_t> given = axis.constant()) {
      std::optional<int64_t> at = axisInside(*given, rank);
      if (!at || among[*at].is(1))
        return raiser.fail(node, "axis " + Twine(*given) + " is outside rank " + Twine(rank) + " or there twice");
      among[*at] = 1;
      continue;
    }
    Number at = ifNegative(axis, axis + Number(rank), axis);
    for (int64_t d = 0; d != rank; ++d)
      among[d] = ifEqual(at, d, 1, among[d]);
  }
  return among;
}

LogicalResult raiseUnsqueeze(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> axes = numbersOf(raiser, node, 1, "axes");
  if (failed(axes))
    return failure();
  int64_t rank = input.rank() + axes->size();
  FailureOr<SmallVector<Number>> isNew = amongAxes(raiser, node, *axes, rank);
  if (failed(isNew))
    return failure();
  // Dimension d is the old one after as many as are not new before it.
  SmallVector<Number> sizes;
  Number before = 0;
  for (const Number &fresh : *isNew) {
    Number size = 1;
    for (auto [i, old] : llvm::enumerate(input.sizes))
      size = ifEqual(before, int64_t(i), old, size);
    sizes.push_back(ifEqual(fresh, 1, 1, size));
    before = before + (Number(1) - fresh);
  }
  Number old = int64_t(input.rank()); // axes of data may be there twice
  FailureOr<SmallVector<Size>> known = settled(raiser, node, sizes, Check{before, old, "its axes"});
  if (failed(known))
    return failure();
  raiser.set(node, reshapedTo(raiser, input, *known));
  return success();
}

LogicalResult raiseSqueeze(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> axes = numbersOf(raiser, node, 1, "axes");
  if (failed(axes))
    return failure();
  int64_t rank = input.rank();
  FailureOr<SmallVector<Number>> drop = amongAxes(raiser, node, *axes, rank);
  if (failed(drop))
    return failure();
  size_t left = rank - axes->size();
  if (axes->empty())
    for (int64_t i = 0; i != rank; ++i)
      if (input.sizes[i] == Size(1)) {
        (*drop)[i] = 1;
        --left;
      }
  Number count = 0;
  std::vector<Check> checks;
  for (int64_t i = 0; i != rank; ++i) {
    count = count + (*drop)[i];
    checks.push_back({ifEqual((*drop)[i], 1, input.sizes[i], 1), 1, "the size of dimension " + std::to_string(i) + " and 1"});
  }
  checks.push_back({count, Number(int64_t(rank - left)), "its axes"}); // those of data may be there twice
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, compacted(input.sizes, *drop, left), checks);
  if (failed(sizes))
    return failure();
  raiser.set(node, reshapedTo(raiser, input, *sizes));
  return success();
}

LogicalResult raiseExpand(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> shape = numbersOf(raiser, node, 1);
  if (failed(shape))
    return failure();
  int64_t rank = std::max(input.rank(), shape->size()), fromInput = rank - input.rank(), fromShape = rank - shape->size();
  SmallVector<Number> extents;
  std::vector<Check> checks;
  for (int64_t i = 0; i != rank; ++i) {
    Number own = i < fromInput ? Number(1) : Number(input.sizes[i - fromInput]);
    Number asked = i < fromShape ? Number(1) : (*shape)[i - fromShape];
    // Where one is 1 the other counts; otherwise they must agree.
    Number extent = asked.is(1) ? own : ifEqual(own, 1, asked, own);
    checks.push_back({extent, own.is(1) ? asked : ifEqual(asked, 1, own, asked),
                      "dimension " + std::to_string(i) + " of the input and of its shape"});
    extents.push_back(extent);
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents, checks);
  if (failed(sizes))
    return failure();
  if (*sizes == input.sizes) {
    raiser.set(node, Known(input));
    return success();
  }
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices.drop_front(fromInput));
    for (auto [i, size] : llvm::enumerate(input.sizes))
      if (!size.isConstant() && size != (*sizes)[fromInput + i]) // 1 or not is seen at run time
        at[i] = s.min(at[i], s.sub(s.index(size), s.index(1)));
    return raiser.element(b, input, at);
  }));
  return success();
}

LogicalResult raiseConstantOfShape(Raiser &raiser, onnx::NodeOp node) {
  FailureOr<SmallVector<Number>> shape = numbersOf(raiser, node, 0);
  if (failed(shape))
    return failure();
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, *shape);
  if (failed(sizes))
    return failure();
  Known result;
  result.sizes = *sizes;
  result.elementType = Element::Float;
  TypedAttr value = raiser.builder.getF32FloatAttr(0);
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(node.attribute("value"))) {
    if (dense.getNumElements() != 1)
      return raiser.fail(node, "its value must be one element");
    value = cast<TypedAttr>(*dense.getValues<Attribute>().begin());
    result.elementType = elementNumber(dense.getElementType());
  } else if (node.attribute("value")) {
    return raiser.fail(node, "its value must be one element");
  }
  Type type = raiser.internalType(result.elementType);
  if (!type)
    return raiser.fail(node, "values of this type are not supported");
  std::optional<int64_t> count = elementCount(result.sizes).constant();
  auto integer = dyn_cast<IntegerAttr>(value);
  auto real = dyn_cast<FloatAttr>(value);
  bool isSigned = integer && !integer.getType().isInteger(1) && !integer.getType().isUnsignedInteger();
  int64_t number = integer ? isSigned ? integer.getValue().getSExtValue() : int64_t(integer.getValue().getZExtValue()) : 0;
  if (count && *count >= 0 && *count <= 64) {
    if (integer)
      result.integers.emplace(*count, Size(number));
    else
      result.reals.emplace(*count, real.getValueAsDouble());
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(result.elementType, result.sizes, [&](OpBuilder &b, ValueRange) -> Value {
    TypedAttr attribute = integer ? TypedAttr(b.getIntegerAttr(type, number))
                                  : TypedAttr(b.getFloatAttr(type, real.getValueAsDouble()));
    return arith::ConstantOp::create(b, node.getLoc(), attribute);
  }));
  return success();
}

/// The number of elements of a range of integers; −1 where it never ends.
Number rangeLength(const Number &start, const Number &limit, const Number &delta) {
  if (start.size() && limit.size() && delta.size())
    if (std::optional<Size> exact = (*limit.size() - *start.size()).divide(*delta.size()))
      return maximum(*exact, 0);
  Number distance = maximum(ifNegative(delta, start - limit, limit - start), 0);
  Number steps = quotientUp(distance, maximum(ifNegative(delta, Number(0) - delta, delta), 1));
  return ifEqual(delta, 0, -1, steps);
}

LogicalResult raiseRange(Raiser &raiser, onnx::NodeOp node) {
  Known &start = raiser.input(node, 0), &limit = raiser.input(node, 1), &delta = raiser.input(node, 2);
  for (Known *bound : {&start, &limit, &delta})
    if (elementCount(bound->sizes) != Size(1) || bound->elementType != start.elementType)
      return raiser.fail(node, "expects three scalars of one type");
  Type type = raiser.internalType(start.elementType);
  bool real = isa<FloatType>(type);
  Number length = 0;
  if (!real) {
    length = rangeLength(numberAt(raiser, start, 0), numberAt(raiser, limit, 0), numberAt(raiser, delta, 0));
  } else if (start.reals && limit.reals && delta.reals) {
    double count = std::ceil((limit.reals->front() - start.reals->front()) / delta.reals->front());
    if (!(count < 1e15))
      return raiser.fail(node, "has no end");
    length = Number(int64_t(std::max(count, 0.0)));
  } else {
    length = Number([&](Expressions s) -> Value {
      auto wide = [&](Known &bound) { return s.toReal(s.b.getF64Type(), raiser.element(s.b, bound, s.index(0))); };
      Value count = math::CeilOp::create(s.b, s.l, s.div(s.sub(wide(limit), wide(start)), wide(delta)));
      return s.toIndex(s.max(s.min(count, s.constant(count.getType(), 1e15)), s.zero(count.getType())));
    });
  }
  FailureOr<SmallVector<Size>> size = settled(raiser, node, length);
  if (failed(size))
    return failure();
  std::optional<int64_t> count = size->front().constant();
  if (count && *count <= 64 && start.integers && delta.integers) {
    Known result;
    result.elementType = start.elementType;
    result.sizes = *size;
    result.integers.emplace();
    for (int64_t i = 0; i != *count; ++i)
      result.integers->push_back(start.integers->front() + Size(i) * delta.integers->front());
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(start.elementType, *size, [&](OpBuilder &b, ValueRange at) -> Value {
    Expressions s{b, node.getLoc()};
    Value first = raiser.element(b, start, s.index(0)), step = raiser.element(b, delta, s.index(0));
    return s.add(first, s.mul(s.fromIndex(type, at[0]), step));
  }));
  return success();
}

LogicalResult raiseSize(Raiser &raiser, onnx::NodeOp node) {
  Known result;
  result.elementType = Element::Int64;
  result.integers.emplace(1, elementCount(raiser.input(node, 0).sizes));
  raiser.set(node, std::move(result));
  return success();
}

} // namespace

void raise::registerShapes(Registry &registry) {
  registry.add("Shape", raiseShape, 1, 1);
  registry.add("Size", raiseSize, 1, 1);
  registry.add("Reshape", raiseReshape, 2, 2);
  registry.add("Flatten", raiseFlatten, 1, 1);
  registry.add("Unsqueeze", raiseUnsqueeze, 1, 2);
  registry.add("Squeeze", raiseSqueeze, 1, 2);
  registry.add("Expand", raiseExpand, 2, 2, 8);
  registry.add("ConstantOfShape", raiseConstantOfShape, 1, 1, 9);
  registry.add("Range", raiseRange, 3, 3, 11);
  registry.add("Constant", nullptr, 0, 0); // read by the walk itself
}
