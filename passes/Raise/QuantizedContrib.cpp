// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's quantized operators that mean "dequantize, compute, quantize", said in those terms: QLinear*, QGemm,
// MatMulIntegerToFloat, DynamicQuantizeMatMul.

#include "passes/Raise/Terms.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

FailureOr<ValueRange> raise::raiseAs(Raiser &raiser, onnx::NodeOp before, StringRef op, int64_t version, ValueRange inputs,
                                     ArrayRef<NamedAttribute> attributes, unsigned results) {
  OpBuilder builder(before);
  auto [domain, name] = op.contains("::") ? op.split("::") : std::pair<StringRef, StringRef>("", op);
  SmallVector<Type> types(results, onnx::ValueType::get(builder.getContext()));
  auto node = onnx::NodeOp::create(builder, before.getLoc(), types, name, domain, version, before.getNodeName(),
                                   builder.getDictionaryAttr(attributes), ArrayAttr(), inputs, 0);
  if (failed(raiser.raiseNode(node)))
    return failure();
  return ValueRange(node.getOutputs());
}

namespace {

/// x, scale, zero, [result's scale, zero]: a function of one tensor, attributes handed on.
void addUnary(Registry &registry, StringRef name, StringRef op, int64_t version = kVersion) {
  registry.add(("com.microsoft::" + name).str(), [op, version](Raiser &raiser, onnx::NodeOp node) {
    Terms t{raiser, node};
    int64_t type = raiser.input(node, 0).elementType;
    Value y = t.apply(op, {t.real(0)}, attributesBut(node, {"opset"}), version);
    return t.finish(t.quantize(y, 3, type));
  }, 2, 5, 1);
}

void addBinary(Registry &registry, StringRef name, StringRef op) {
  registry.add(("com.microsoft::" + name).str(), [op](Raiser &raiser, onnx::NodeOp node) {
    Terms t{raiser, node};
    int64_t type = raiser.input(node, 0).elementType;
    Value a = t.real(0), b = t.real(3);
    return t.finish(t.quantize(t.apply(op, {a, b}), 6, type));
  }, 2, 8, 1);
}

LogicalResult raiseSoftmax(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  int64_t type = raiser.input(node, 0).elementType, version = node.intOr("opset", kVersion);
  Value y = t.apply("Softmax", {t.real(0)}, attributesBut(node, {"opset"}), version < 13 ? 11 : kVersion);
  return t.finish(t.quantize(y, 3, type));
}

LogicalResult needsChannelsFirst(Raiser &raiser, onnx::NodeOp node) {
  if (node.intOr("channels_last", 0) != 0)
    return raiser.fail(node, "channels_last is not supported (transpose around it)");
  return success();
}

LogicalResult raisePool(Raiser &raiser, onnx::NodeOp node, StringRef op) {
  if (failed(needsChannelsFirst(raiser, node)))
    return failure();
  Terms t{raiser, node};
  int64_t type = raiser.input(node, 0).elementType;
  Value y = t.apply(op, {t.real(0)}, attributesBut(node, {"channels_last"}), 19);
  return t.finish(t.quantize(y, 3, type));
}

/// data, scale, zero, result's scale, zero; axes are an attribute.
LogicalResult raiseReduceMean(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  int64_t type = raiser.input(node, 0).elementType;
  Value y = t.apply("ReduceMean", {t.real(0)}, attributesBut(node, {}), 13);
  return t.finish(t.quantize(y, 3, type));
}

/// The result's scale and zero, then tensor, scale, zero for each part.
LogicalResult raiseConcat(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  unsigned count = node.getInputs().size();
  if (count % 3 != 2)
    return raiser.fail(node, "it takes a scale and a zero point, and three inputs for each part, not " + Twine(count) + " inputs");
  SmallVector<Value> parts;
  for (unsigned i = 2; i != count; i += 3)
    parts.push_back(t.real(i));
  Value y = t.apply("Concat", parts, attributesBut(node, {}));
  return t.finish(t.quantize(y, 0, raiser.input(node, 2).elementType));
}

/// condition, X, scale, zero, Y, scale, zero, result's scale, zero.
LogicalResult raiseWhere(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  int64_t type = raiser.input(node, 1).elementType;
  Value x = t.real(1), y = t.real(4);
  return t.finish(t.quantize(t.apply("Where", {t.in(0), x, y}), 7, type));
}

/// A, a_scale, a_zero, B, b_scale, b_zero, C (int32, by a_scale · b_scale), and y_scale, y_zero: without them the result is
/// float. alpha · A B + C, where C counts in units of alpha.
LogicalResult raiseGemm(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  bool transA = node.intOr("transA", 0) != 0, transB = node.intOr("transB", 0) != 0;
  Known &a = raiser.input(node, 0), &b = raiser.input(node, 3);
  if (a.rank() != 2 || b.rank() != 2)
    return raiser.fail(node, "operands must have rank 2");
  if (!transA)
    if (auto raised = raiseByGivenWeight(raiser, node, {0, 1, 2, 3, 4, 5}, transB ? 0 : 1, [&](Terms &t, Value x, Value w) {
          Value c = t.in(6);
          if (c) // in units of the product of the scales
            c = t.apply("Mul", {t.apply("Cast", {c}, {t.integer("to", Element::Float)}), t.apply("Mul", {t.in(1), t.in(4)})});
          Value y = t.apply("Gemm", {x, w, c}, {t.integer("transB", transB)});
          if (float alpha = node.floatOr("alpha", 1); alpha != 1)
            y = t.apply("Mul", {y, t.number(alpha)});
          return t.finish(t.in(7) ? t.quantize(y, 7, a.elementType) : y);
        }))
      return *raised;
  auto turned = [&](Value x, bool turn) {
    return turn ? t.apply("Transpose", {x}, {t.attribute("perm", raiser.builder.getDenseI64ArrayAttr({1, 0}))}) : x;
  };
  Value sum = t.apply("MatMulInteger", {turned(t.in(0), transA), turned(t.in(3), transB), t.in(2), t.in(5)});
  if (t.in(6))
    sum = t.apply("Add", {sum, t.in(6)});
  Value scale = t.apply("Mul", {t.in(1), t.in(4)});
  if (float alpha = node.floatOr("alpha", 1); alpha != 1)
    scale = t.apply("Mul", {scale, t.number(alpha)});
  Value y = t.apply("Mul", {t.apply("Cast", {sum}, {t.integer("to", Element::Float)}), scale});
  return t.finish(t.in(7) ? t.quantize(y, 7, a.elementType) : y);
}

/// (A − a_zero)(B − b_zero) · a_scale · b_scale + bias.
LogicalResult raiseToFloat(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  Value sum = t.apply("MatMulInteger", {t.in(0), t.in(1), t.in(4), t.in(5)});
  Value scale = t.apply("Mul", {t.in(2), t.in(3)});
  Value y = t.apply("Mul", {t.apply("Cast", {sum}, {t.integer("to", Element::Float)}), scale});
  return t.finish(t.in(6) ? t.apply("Add", {y, t.in(6)}) : y);
}

/// A float, B quantized, b_scale, b_zero, bias: A is quantized as DynamicQuantizeLinear does.
LogicalResult raiseDynamicMatMul(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  FailureOr<ValueRange> a = raiseAs(raiser, node, "DynamicQuantizeLinear", kVersion, {t.in(0)}, {}, 3);
  if (failed(a))
    return failure();
  Value sum = t.apply("MatMulInteger", {(*a)[0], t.in(1), (*a)[2], t.in(3)});
  Value scale = t.apply("Mul", {(*a)[1], t.in(2)});
  Value y = t.apply("Mul", {t.apply("Cast", {sum}, {t.integer("to", Element::Float)}), scale});
  return t.finish(t.in(4) ? t.apply("Add", {y, t.in(4)}) : y);
}

/// An LSTM by 8-bit weights [directions, inputs, 4 · hidden], transposed to LSTM's order, with a
/// scale for each direction or for each of its columns. ONNX Runtime quantizes x and h at each
/// step, which is its way to be fast; the meaning of the weights is what is computed here.
LogicalResult raiseDynamicLstm(Raiser &raiser, onnx::NodeOp node) {
  Terms t{raiser, node};
  for (unsigned i : {9u, 11u})
    if (!t.in(i - 1) || !t.in(i))
      return raiser.fail(node, "its weights need a scale and a zero point");
  auto ints = [&](ArrayRef<int64_t> values) { return raiser.builder.getDenseI64ArrayAttr(values); };
  auto weights = [&](unsigned at, unsigned scaleAt) -> Value {
    auto wide = [&](Value x) {
      x = t.apply("Cast", {x}, {t.integer("to", Element::Float)});
      size_t rank = t.failed ? 0 : raiser.known(x).rank();
      // Opset 11 has the axes as an attribute.
      return rank == 3 ? x
                       : t.apply("Unsqueeze", {x},
                                 {t.attribute("axes", rank == 1 ? ints({1, 2}) : ints({1}))}, 11);
    };
    Value real = t.apply(
        "Mul", {t.apply("Sub", {wide(t.in(at)), wide(t.in(scaleAt + 1))}), wide(t.in(scaleAt))});
    return t.apply("Transpose", {real}, {t.attribute("perm", ints({0, 2, 1}))});
  };
  Known &w = raiser.input(node, 1), &r = raiser.input(node, 2);
  if (w.rank() != 3 || r.rank() != 3)
    return raiser.fail(node, "its weights must have rank 3");
  for (unsigned i : {8u, 9u, 10u, 11u})
    if (size_t rank = raiser.input(node, i).rank(); rank != 1 && rank != 2)
      return raiser.fail(
          node,
          "scales and zero points must be one for each direction, or for each of its columns");
  SmallVector<Value> inputs = {t.in(0), weights(1, 8), weights(2, 10)};
  for (unsigned i = 3; i != 8; ++i)
    inputs.push_back(t.in(i) ? t.in(i) : t.none());
  if (t.failed)
    return failure();
  FailureOr<ValueRange> results =
      raiseAs(raiser, node, "LSTM", 14, inputs, attributesBut(node, {}), 3);
  if (failed(results))
    return failure();
  for (unsigned i = 0; i != node.getOutputs().size(); ++i)
    raiser.set(node, Known(raiser.known((*results)[i])), i);
  return success();
}

} // namespace

LogicalResult raise::raiseProduct(Raiser &raiser, onnx::NodeOp node, Known matrix, Value bias) {
  Terms t{raiser, node};
  Value y = t.apply("MatMul", {t.in(0), t.value(std::move(matrix))});
  return t.finish(bias ? t.apply("Add", {y, bias}) : y);
}

void raise::registerQuantizedContrib(Registry &registry) {
  addUnary(registry, "QLinearSigmoid", "Sigmoid");
  addUnary(registry, "QLinearLeakyRelu", "LeakyRelu", 16);
  addBinary(registry, "QLinearAdd", "Add");
  addBinary(registry, "QLinearMul", "Mul");
  auto add = [&](StringRef name, RaiseFunction function, unsigned least, unsigned most) {
    registry.add(("com.microsoft::" + name).str(), std::move(function), least, most, 1);
  };
  add("QLinearSoftmax", raiseSoftmax, 2, 5);
  add("QLinearAveragePool", [](Raiser &r, onnx::NodeOp n) { return raisePool(r, n, "AveragePool"); }, 2, 5);
  add("QLinearGlobalAveragePool", [](Raiser &r, onnx::NodeOp n) { return raisePool(r, n, "GlobalAveragePool"); }, 2, 5);
  add("QLinearReduceMean", raiseReduceMean, 2, 5);
  add("QLinearConcat", raiseConcat, 5, kAnyNumber);
  add("QLinearWhere", raiseWhere, 9, 9);
  add("QGemm", raiseGemm, 5, 9);
  add("MatMulIntegerToFloat", raiseToFloat, 4, 7);
  add("DynamicQuantizeMatMul", raiseDynamicMatMul, 3, 5);
  add("DynamicQuantizeLSTM", raiseDynamicLstm, 3, 12);
}
