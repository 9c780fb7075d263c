// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square norms by what they compute, gains that follow, and gated activations.

#include "passes/Raise/Raiser.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

Known norm(Raiser &raiser, Location location, NormKind kind, Known &input, Value scale, Value bias, double epsilon) {
  Known result;
  result.elementType = input.elementType;
  result.sizes = input.sizes;
  Value x = raiser.tensor(input);
  result.tensor = NormOp::create(raiser.builder, location, x.getType(),
                                 NormKindAttr::get(raiser.builder.getContext(), kind), x, scale, bias,
                                 raiser.builder.getF32FloatAttr(epsilon));
  return result;
}

/// `value` as x · x, by Pow or by Mul; x or null.
Value squared(Raiser &raiser, Value value) {
  if (onnx::NodeOp pow = raiser.node(value, "Pow"))
    return raiser.scalar(pow.getInputs()[1]) == 2.0 ? pow.getInputs()[0] : Value();
  if (onnx::NodeOp mul = raiser.node(value, "Mul"))
    return raiser.source(mul.getInputs()[0]) == raiser.source(mul.getInputs()[1]) ? mul.getInputs()[0] : Value();
  return {};
}

/// sqrt(mean(x²) + epsilon) over the last axis: x and epsilon.
std::optional<std::pair<Value, double>> rootMeanSquare(Raiser &raiser, Value value) {
  onnx::NodeOp sqrt = raiser.node(value, "Sqrt");
  onnx::NodeOp add = sqrt ? raiser.node(sqrt.getInputs()[0], "Add") : onnx::NodeOp();
  if (!add)
    return std::nullopt;
  for (unsigned side : {0u, 1u}) {
    std::optional<double> epsilon = raiser.scalar(add.getInputs()[1 - side]);
    onnx::NodeOp mean = raiser.node(add.getInputs()[side], "ReduceMean");
    if (!epsilon || !mean || mean.intOr("keepdims", 1) == 0)
      continue;
    Value x = squared(raiser, mean.getInputs()[0]);
    std::optional<SmallVector<int64_t>> axes;
    if (raiser.hasInput(mean, 1))
      axes = raiser.constants(mean.getInputs()[1]);
    else if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(mean.attribute("axes")))
      axes = SmallVector<int64_t>(given.asArrayRef());
    if (!x || !axes || axes->size() != 1)
      continue;
    int64_t rank = raiser.known(x).rank();
    if (axes->front() == -1 || axes->front() == rank - 1)
      return std::pair(raiser.source(x), *epsilon);
  }
  return std::nullopt;
}

/// 1 / value's argument: what a Reciprocal or a Div of 1 divides by.
Value reciprocal(Raiser &raiser, Value value) {
  if (onnx::NodeOp node = raiser.node(value, "Reciprocal"))
    return node.getInputs()[0];
  if (onnx::NodeOp div = raiser.node(value, "Div"))
    return raiser.scalar(div.getInputs()[0]) == 1.0 ? div.getInputs()[1] : Value();
  return {};
}

} // namespace

/// x · 1/rms(x), or x / rms(x).
bool raise::recognizeRmsNorm(Raiser &raiser, onnx::NodeOp node) {
  auto attempt = [&](Value x, Value denominator) {
    if (!denominator)
      return false;
    auto match = rootMeanSquare(raiser, denominator);
    if (!match || raiser.source(x) != match->first)
      return false;
    raiser.set(node, norm(raiser, node.getLoc(), NormKind::rms, raiser.known(match->first), {}, {}, match->second));
    return true;
  };
  if (node.is("Div"))
    return attempt(node.getInputs()[0], node.getInputs()[1]);
  return attempt(node.getInputs()[0], reciprocal(raiser, node.getInputs()[1])) ||
         attempt(node.getInputs()[1], reciprocal(raiser, node.getInputs()[0]));
}

/// A norm without a gain, times a vector.
bool raise::recognizeScaledNorm(Raiser &raiser, onnx::NodeOp mul) {
  for (unsigned side : {0u, 1u}) {
    Known &normed = raiser.known(raiser.source(mul.getInputs()[side]));
    Known &gain = raiser.input(mul, 1 - side);
    auto op = normed.tensor ? normed.tensor.getDefiningOp<NormOp>() : NormOp();
    if (!op || op.getScale() || op.getBias() || gain.rank() != 1 || gain.sizes[0] != normed.sizes.back())
      continue;
    Value scale = raiser.tensor(gain);
    Known result = normed;
    result.tensor = NormOp::create(raiser.builder, mul.getLoc(), op.getType(), op.getKindAttr(), op.getInput(), scale,
                                   Value(), op.getEpsilonAttr());
    raiser.set(mul, std::move(result));
    return true;
  }
  return false;
}

/// What a value applies an activation to: g · sigmoid(g), Swish, Gelu.
static std::optional<std::pair<Value, Activation>> activated(Raiser &raiser, Value value) {
  if (onnx::NodeOp silu = raiser.node(value, "Mul"))
    for (unsigned gateSide : {0u, 1u}) {
      onnx::NodeOp sigmoid = raiser.node(silu.getInputs()[1 - gateSide], "Sigmoid");
      Value gate = raiser.source(silu.getInputs()[gateSide]);
      if (sigmoid && raiser.source(sigmoid.getInputs()[0]) == gate)
        return std::pair(gate, Activation::silu);
    }
  if (onnx::NodeOp swish = raiser.node(value, "Swish"); swish && swish.floatOr("alpha", 1) == 1)
    return std::pair(raiser.source(swish.getInputs()[0]), Activation::silu);
  if (onnx::NodeOp gelu = raiser.node(value, "Gelu"))
    return std::pair(raiser.source(gelu.getInputs()[0]),
                     gelu.stringOr("approximate", "none") == "tanh" ? Activation::gelu_tanh : Activation::gelu);
  return std::nullopt;
}

/// f(g) · up.
bool raise::recognizeGatedActivation(Raiser &raiser, onnx::NodeOp mul) {
  for (unsigned side : {0u, 1u}) {
    auto match = activated(raiser, mul.getInputs()[side]);
    if (!match)
      continue;
    Known &g = raiser.known(match->first), &up = raiser.known(raiser.source(mul.getInputs()[1 - side]));
    if (g.sizes != up.sizes || !isa<Float32Type>(raiser.internalType(up.elementType)) ||
        !isa<Float32Type>(raiser.internalType(g.elementType)))
      continue;
    Value gateTensor = raiser.tensor(g), upTensor = raiser.tensor(up);
    Known result = up;
    result.tensor = GatedActivationOp::create(raiser.builder, mul.getLoc(), upTensor.getType(),
                                              ActivationAttr::get(raiser.builder.getContext(), match->second), gateTensor,
                                              upTensor);
    raiser.set(mul, std::move(result));
    return true;
  }
  return false;
}
