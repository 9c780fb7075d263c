// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger and QLinearConv: a Conv of integers, computed in floats that hold every partial sum exactly. That is f32 where
// the products of a sum stay below 2^24 together, and f64 else, so the result is that of 32-bit integers. By a constant weight
// QLinearConv is a linear of windows (IntegerProducts.cpp).

#include "passes/Raise/Terms.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// A vector of one number a channel as a tensor that broadcasts over `rank` dimensions at `axis`; one number stays.
Value spreadOver(Terms &t, Value vector, size_t rank, size_t axis) {
  if (!vector || t.failed)
    return vector;
  Known &what = t.raiser.known(vector);
  if (elementCount(what.sizes) == Size(1) && what.rank() <= 1)
    return vector;
  if (what.rank() != 1) {
    t.failed = true;
    (void)t.raiser.fail(t.node, "a scale or zero point must be one number or one for each channel");
    return {};
  }
  SmallVector<Size> sizes(rank, Size(1));
  sizes[axis] = what.sizes[0];
  return t.value(t.raiser.reshaped(what, sizes));
}

/// (x − zero) * (w − zero) + bias, exact, of ONNX type `type`.
Value exactConv(Terms &t, unsigned x, unsigned w, Value xZero, Value wZero, Value bias, int64_t &type) {
  Known &input = t.raiser.input(t.node, x), &weight = t.raiser.input(t.node, w);
  for (Known *operand : {&input, &weight})
    if (!quantizedRange(operand->elementType) || onnx::elementBits(operand->elementType) > 8 || operand->rank() < 3) {
      t.failed = true;
      (void)t.raiser.fail(t.node, "expects 8-bit tensors of rank 3 or more, got " + onnx::elementTypeName(operand->elementType));
      return {};
    }
  Size products = elementCount(ArrayRef<Size>(weight.sizes).drop_front());
  bool small = products.isConstant() && *products.constant() <= (int64_t(1) << 24) / (255 * 255) && !bias;
  type = small ? int64_t(Element::Float) : int64_t(Element::Double);
  auto real = [&](Value value) { return value ? t.apply("Cast", {value}, {t.integer("to", type)}) : value; };
  auto shifted = [&](Value value, Value zero) {
    value = real(value);
    return zero ? t.apply("Sub", {value, zero}) : value;
  };
  size_t rank = weight.rank();
  Value a = shifted(t.in(x), spreadOver(t, real(xZero), rank, 1)), b = shifted(t.in(w), spreadOver(t, real(wZero), rank, 0));
  return t.apply("Conv", {a, b, real(bias)}, attributesBut(t.node, {}));
}

LogicalResult raiseConvInteger(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  int64_t type = 0;
  Value sum = exactConv(t, 0, 1, t.in(2), t.in(3), {}, type);
  return t.finish(t.apply("Cast", {sum}, {t.integer("to", Element::Int32)}));
}

/// x, scale, zero, w, scale, zero, y's scale and zero, bias (int32, in units of the product of the scales).
LogicalResult raiseQLinearConv(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  int64_t type = 0, to = raiser.input(node, 7).elementType;
  if (!quantizedRange(to) || onnx::elementBits(to) > 8)
    return raiser.fail(node, "a result of type " + onnx::elementTypeName(to) + " is not supported");
  if (node.intOr("group", 1) == 1 && raiser.input(node, 3).rank() > 2)
    if (auto raised = raiseByGivenWeight(raiser, node, {0, 1, 2, 3, 4, 5}, 0, [&](Terms &t, Value a, Value b) {
          Value bias = t.in(8);
          if (bias)
            bias = t.apply("Mul", {t.apply("Cast", {bias}, {t.integer("to", Element::Float)}), t.apply("Mul", {t.in(1), t.in(4)})});
          return t.finish(t.quantize(t.apply("Conv", {a, b, bias}, attributesBut(node, {})), 6, to));
        }))
      return *raised;
  Value sum = exactConv(t, 0, 3, t.in(2), t.in(5), t.in(8), type);
  size_t rank = raiser.input(node, 0).rank();
  Value scale = t.apply("Div", {t.apply("Mul", {t.in(1), spreadOver(t, t.in(4), rank, 1)}), t.in(6)});
  Value y = t.apply("Mul", {t.apply("Cast", {sum}, {t.integer("to", Element::Float)}), scale});
  return t.finish(t.apply("QuantizeLinear", {y, t.number(1), t.in(7)}));
}

} // namespace

void raise::registerQuantizedConvolutions(Registry &registry) {
  registry.add("ConvInteger", raiseConvInteger, 2, 4, 10);
  registry.add("QLinearConv", raiseQLinearConv, 8, 9, 10);
}
