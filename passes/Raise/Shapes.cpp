// SPDX-License-Identifier: Apache-2.0
//
// Operators about shapes: those that ask for one, and those that give the same elements another. None leaves work for
// run time but Expand and Range, which are functions of the output index.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

Value integerConstant(OpBuilder &b, Location l, int64_t value) {
  return arith::ConstantOp::create(b, l, b.getI64IntegerAttr(value));
}

Value sizeAsInteger(OpBuilder &b, Location l, const Size &size) {
  return arith::IndexCastOp::create(b, l, b.getI64Type(), SizeOp::create(b, l, size));
}

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

/// The shape that a reshape has by data: 0 keeps the input's size and −1 is what is left. All are −1 where they do not fit.
LogicalResult reshapeByData(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0), &shape = raiser.input(node, 1);
  std::optional<int64_t> rank = shape.rank() == 1 ? shape.sizes[0].constant() : std::nullopt;
  if (!rank)
    return raiser.fail(node, "the rank of its result depends on data (give its shape input a fixed length)");
  bool keepZero = node.intOr("allowzero", 0) != 0;
  Known resolved = raiser.generated(Element::Int64, {*rank}, [&](OpBuilder &b, ValueRange at) -> Value {
    Location l = node.getLoc();
    auto number = [&](int64_t value) { return integerConstant(b, l, value); };
    auto is = [&](Value x, int64_t value) {
      return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, x, number(value)).getResult();
    };
    Value count = sizeAsInteger(b, l, elementCount(input.sizes)), product = number(1), inferred = number(0);
    Value mine = number(-1);
    for (int64_t i = 0; i != *rank; ++i) {
      Value size = raiser.element(b, shape, arith::ConstantIndexOp::create(b, l, i).getResult());
      if (!keepZero && i < int64_t(input.rank()))
        size = arith::SelectOp::create(b, l, is(size, 0), sizeAsInteger(b, l, input.sizes[i]), size);
      Value isRest = is(size, -1);
      inferred = arith::AddIOp::create(b, l, inferred, arith::ExtUIOp::create(b, l, b.getI64Type(), isRest));
      product = arith::MulIOp::create(b, l, product, arith::SelectOp::create(b, l, isRest, number(1), size));
      Value here = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, at[0], arith::ConstantIndexOp::create(b, l, i));
      mine = arith::SelectOp::create(b, l, here, size, mine);
    }
    Value divisor = arith::SelectOp::create(b, l, is(product, 0), number(1), product);
    Value rest = arith::DivSIOp::create(b, l, count, divisor);
    Value total = arith::SelectOp::create(b, l, is(inferred, 1), arith::MulIOp::create(b, l, product, rest), product);
    Value fits = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, total, count);
    Value few = arith::CmpIOp::create(b, l, arith::CmpIPredicate::sle, inferred, number(1));
    mine = arith::SelectOp::create(b, l, is(mine, -1), rest, mine);
    return arith::SelectOp::create(b, l, arith::AndIOp::create(b, l, fits, few), mine, number(-1));
  });
  raiser.set(node, raiser.reshapedChecked(input, raiser.bind(resolved.tensor, "reshaped")));
  return success();
}

LogicalResult raiseReshape(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  Known &shape = raiser.input(node, 1);
  if (!shape.integers)
    return reshapeByData(raiser, node);
  bool keepZero = node.intOr("allowzero", 0) != 0;
  SmallVector<Size> sizes;
  std::optional<size_t> inferred;
  Size rest = 1;
  for (auto [i, size] : llvm::enumerate(*shape.integers)) {
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
    if (!size)
      return raiser.fail(node, "whether " + count.str() + " elements divide by " + rest.str() +
                                   " depends on the input (export the model with a fixed size there)");
    sizes[*inferred] = *size;
  }
  if (elementCount(sizes) != count) // also where only some inputs fit
    return raiser.fail(node, "cannot give " + count.str() + " elements the shape of " +
                                 elementCount(sizes).str());
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

/// Axes are an attribute before opset 13 and an input since.
std::optional<SmallVector<int64_t>> axesOf(Raiser &raiser, onnx::NodeOp node) {
  if (raiser.hasInput(node, 1))
    return raiser.constants(node.getInputs()[1]);
  if (auto axes = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("axes")))
    return SmallVector<int64_t>(axes.asArrayRef());
  return SmallVector<int64_t>();
}

LogicalResult raiseUnsqueeze(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  std::optional<SmallVector<int64_t>> axes = axesOf(raiser, node);
  if (!axes)
    return raiser.fail(node, "axes must be constant");
  int64_t rank = input.rank() + axes->size();
  SmallVector<bool> isNew(rank, false);
  for (int64_t axis : *axes) {
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank || isNew[axis])
      return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(rank) + " or there twice");
    isNew[axis] = true;
  }
  SmallVector<Size> sizes;
  size_t next = 0;
  for (bool fresh : isNew)
    sizes.push_back(fresh ? Size(1) : input.sizes[next++]);
  raiser.set(node, raiser.reshaped(input, sizes));
  return success();
}

LogicalResult raiseSqueeze(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  std::optional<SmallVector<int64_t>> axes = axesOf(raiser, node);
  if (!axes)
    return raiser.fail(node, "axes must be constant");
  int64_t rank = input.rank();
  SmallVector<bool> drop(rank, false);
  for (int64_t axis : *axes) {
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank || input.sizes[axis] != Size(1))
      return raiser.fail(node, "axis " + Twine(axis) + " is not a dimension of size 1");
    drop[axis] = true;
  }
  SmallVector<Size> sizes;
  for (int64_t i = 0; i != rank; ++i)
    if (!drop[i] && !(axes->empty() && input.sizes[i] == Size(1)))
      sizes.push_back(input.sizes[i]);
  raiser.set(node, raiser.reshaped(input, sizes));
  return success();
}

LogicalResult raiseExpand(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  Known &shape = raiser.input(node, 1);
  if (!shape.integers)
    return raiser.fail(node, "its shape depends on data");
  std::optional<SmallVector<Size>> sizes = raiser.broadcast(input.sizes, *shape.integers);
  if (!sizes)
    return raiser.fail(node, "sizes do not broadcast");
  if (*sizes == input.sizes) {
    raiser.set(node, Known(input));
    return success();
  }
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange at) {
    return raiser.element(b, input, at);
  }));
  return success();
}

LogicalResult raiseConstantOfShape(Raiser &raiser, onnx::NodeOp node) {
  Known &shape = raiser.input(node, 0);
  if (!shape.integers)
    return raiser.fail(node, "its shape depends on data");
  Known result;
  result.sizes = *shape.integers;
  result.elementType = Element::Float;
  TypedAttr value = raiser.builder.getF32FloatAttr(0);
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(node.attribute("value"))) {
    if (dense.getNumElements() != 1)
      return raiser.fail(node, "its value must be one element");
    Type type = dense.getElementType();
    value = cast<TypedAttr>(*dense.getValues<Attribute>().begin());
    result.elementType = type.isF32()         ? int64_t(Element::Float)
                         : type.isF16()       ? int64_t(Element::Float16)
                         : type.isF64()       ? int64_t(Element::Double)
                         : type.isInteger(1)  ? int64_t(Element::Bool)
                         : type.isInteger(64) ? int64_t(Element::Int64)
                         : type.isInteger(32) ? int64_t(Element::Int32)
                                              : int64_t(Element::Undefined);
  }
  if (result.elementType == Element::Undefined)
    return raiser.fail(node, "values of this type are not supported");
  std::optional<int64_t> count = elementCount(result.sizes).constant();
  auto integer = dyn_cast<IntegerAttr>(value);
  auto real = dyn_cast<FloatAttr>(value);
  int64_t number = integer ? integer.getType().isInteger(1) ? integer.getValue().getZExtValue()
                                                            : integer.getInt()
                           : 0;
  if (count && *count >= 0 && *count <= 64) {
    if (integer)
      result.integers.emplace(*count, Size(number));
    else
      result.reals.emplace(*count, real.getValueAsDouble());
    raiser.set(node, std::move(result));
    return success();
  }
  Type type = raiser.internalType(result.elementType);
  raiser.set(node, raiser.generated(result.elementType, result.sizes, [&](OpBuilder &b, ValueRange) -> Value {
    TypedAttr attribute = integer ? TypedAttr(b.getIntegerAttr(type, number))
                                  : TypedAttr(b.getFloatAttr(type, real.getValueAsDouble()));
    return arith::ConstantOp::create(b, node.getLoc(), attribute);
  }));
  return success();
}

LogicalResult raiseRange(Raiser &raiser, onnx::NodeOp node) {
  Known &start = raiser.input(node, 0), &limit = raiser.input(node, 1), &delta = raiser.input(node, 2);
  std::optional<Size> length;
  auto one = [](const Known &k) { return k.integers && k.integers->size() == 1; };
  if (one(start) && one(limit) && one(delta))
    length = (limit.integers->front() - start.integers->front()).divide(delta.integers->front());
  if (!length)
    return raiser.fail(node, "its bounds must be integers known from sizes, and its step must divide them");
  if (std::optional<int64_t> constant = length->constant(); constant && *constant < 0)
    length = 0; // an empty range
  Type type = raiser.internalType(start.elementType);
  raiser.set(node, raiser.generated(start.elementType, {*length}, [&](OpBuilder &b, ValueRange at) -> Value {
    Location l = node.getLoc();
    Value step = SizeOp::create(b, l, delta.integers->front());
    Value first = SizeOp::create(b, l, start.integers->front());
    Value index = arith::AddIOp::create(b, l, first, arith::MulIOp::create(b, l, at[0], step));
    return arith::IndexCastOp::create(b, l, type, index);
  }));
  return success();
}

} // namespace

void raise::registerShapes(Registry &registry) {
  registry.add("Shape", raiseShape, 1, 1);
  registry.add("Reshape", raiseReshape, 2, 2);
  registry.add("Flatten", raiseFlatten, 1, 1);
  registry.add("Unsqueeze", raiseUnsqueeze, 1, 2);
  registry.add("Squeeze", raiseSqueeze, 1, 2);
  registry.add("Expand", raiseExpand, 2, 2, 8);
  registry.add("ConstantOfShape", raiseConstantOfShape, 1, 1, 9);
  registry.add("Range", raiseRange, 3, 3, 11);
  registry.add("Constant", nullptr, 0, 0); // read by the walk itself
}
