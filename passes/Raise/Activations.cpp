// SPDX-License-Identifier: Apache-2.0
//
// Activations: functions of one number, some with a second input, as ONNX and com.microsoft write them.

#include "passes/Raise/Elementwise.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// A function of one real, written with a Formula.
using OfReal = std::function<Value(const Formula &, Value)>;

Scalar scalarOf(OfReal of) {
  return [of = std::move(of)](OpBuilder &b, Location l, ArrayRef<Value> v) {
    return of(Formula{b, l, v[0].getType()}, v[0]);
  };
}

void add(Registry &registry, StringRef name, std::function<OfReal(onnx::NodeOp)> describe, int64_t since = 7) {
  addElementwise(registry, name, 1, [describe](onnx::NodeOp node) {
    return Elementwise{.real = scalarOf(describe(node))};
  }, since);
}

/// x · ½ (1 + erf(x / √2)).
Value gelu(const Formula &f, Value x) {
  Value e = math::ErfOp::create(f.b, f.l, f.mul(x, f.number(std::sqrt(0.5))));
  return f.mul(f.mul(f.number(0.5), x), f.add(f.number(1), e));
}

/// x · ½ (1 + tanh(√(2/π) (x + 0.044715 x³))).
Value geluTanh(const Formula &f, Value x) {
  Value cube = f.mul(f.mul(x, x), x);
  Value inner = f.mul(f.number(std::sqrt(2 / M_PI)), f.add(x, f.mul(f.number(0.044715), cube)));
  return f.mul(f.mul(f.number(0.5), x), f.add(f.number(1), f.tanh(inner)));
}

/// log(1 + e^x), which does not overflow.
Value softplus(const Formula &f, Value x) {
  Value rest = f.log(f.add(f.number(1), f.exp(f.neg(f.abs(x)))));
  return f.add(f.larger(x, f.number(0)), rest);
}

/// scale · (x where positive, else alpha (e^(x / divisor) − 1)).
Value exponentialUnit(const Formula &f, Value x, double alpha, double divisor, double scale) {
  Value below = divisor == 1 ? x : f.div(x, f.number(divisor));
  Value negative = f.mul(f.number(alpha), f.sub(f.exp(below), f.number(1)));
  Value result = f.select(f.less(x, f.number(0)), negative, x);
  return scale == 1 ? result : f.mul(f.number(scale), result);
}

Value swish(const Formula &f, Value x, double alpha) {
  return f.mul(x, f.sigmoid(alpha == 1 ? x : f.mul(f.number(alpha), x)));
}

Value hardSigmoid(const Formula &f, Value x, double alpha, double beta) {
  Value line = f.add(f.mul(f.number(alpha), x), f.number(beta));
  return f.larger(f.number(0), f.smaller(f.number(1), line));
}

//===-- those that take integers too ----------------------------------------------------------===//

Elementwise relu() {
  Elementwise op;
  op.real = scalarOf([](const Formula &f, Value x) { return f.larger(x, f.number(0)); });
  op.integer = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::MaxSIOp::create(b, l, v[0], number(b, l, v[0].getType(), 0));
  };
  return op;
}

/// The slope broadcasts to x, and the result has x's shape.
LogicalResult raisePRelu(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  Known slope = raiser.input(node, 1);
  // Before operator set 7 it had one element, or one a channel: a dimension that is not the last.
  if (node.getVersion() < 7 && slope.rank() == 1 && slope.sizes[0] != Size(1) && x.rank() > 2) {
    SmallVector<Size> channels(x.rank() - 1, Size(1));
    channels[0] = slope.sizes[0];
    slope = raiser.reshaped(slope, channels);
  }
  std::optional<SmallVector<Size>> sizes = raiser.broadcast(x.sizes, slope.sizes);
  if (!sizes || *sizes != x.sizes)
    return raiser.fail(node, "its slope does not broadcast to its input (check the model's shapes)");
  Elementwise op;
  op.real = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Formula f{b, l, v[0].getType()};
    return f.select(f.less(v[0], f.number(0)), f.mul(v[0], v[1]), v[0]);
  };
  op.integer = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Value negative = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, v[0], number(b, l, v[0].getType(), 0));
    return arith::SelectOp::create(b, l, negative, arith::MulIOp::create(b, l, v[0], v[1]), v[0]);
  };
  op.natural = [](OpBuilder &, Location, ArrayRef<Value> v) { return v[0]; };
  return raiseElementwise(raiser, node, {&x, &slope}, op);
}

/// Its attributes are floats for integers too, which it is computed as.
Elementwise shrink(onnx::NodeOp node) {
  double lambda = node.floatOr("lambd", 0.5), bias = node.floatOr("bias", 0);
  auto of = [=](const Formula &f, Value x) {
    Value above = f.select(f.less(f.number(lambda), x), f.sub(x, f.number(bias)), f.number(0));
    return f.select(f.less(x, f.number(-lambda)), f.add(x, f.number(bias)), above);
  };
  Elementwise op;
  op.real = scalarOf(of);
  op.integer = [of](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Value x = arith::SIToFPOp::create(b, l, b.getF64Type(), v[0]);
    return castElement(b, l, of(Formula{b, l, b.getF64Type()}, x), Element::Double, Element::Int64, v[0].getType());
  };
  op.natural = [of](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Value x = arith::UIToFPOp::create(b, l, b.getF64Type(), v[0]);
    return castElement(b, l, of(Formula{b, l, b.getF64Type()}, x), Element::Double, Element::Int64, v[0].getType());
  };
  return op;
}

//===-- two inputs ----------------------------------------------------------------------------===//

/// com.microsoft: an activation of x plus an optional bias.
RaiseFunction biased(Value (*of)(const Formula &, Value)) {
  return [of](Raiser &raiser, onnx::NodeOp node) {
    SmallVector<Known *> inputs{&raiser.input(node, 0)};
    if (raiser.hasInput(node, 1))
      inputs.push_back(&raiser.input(node, 1));
    Elementwise op;
    op.real = [of](OpBuilder &b, Location l, ArrayRef<Value> v) {
      Formula f{b, l, v[0].getType()};
      return of(f, v.size() > 1 ? f.add(v[0], v[1]) : v[0]);
    };
    return raiseElementwise(raiser, node, inputs, op);
  };
}

/// com.microsoft: x + bias + skip.
LogicalResult raiseBiasAdd(Raiser &raiser, onnx::NodeOp node) {
  return raiseElementwise(raiser, node, {.real = overAll<arith::AddFOp>()});
}

/// com.microsoft: of x + bias, the first half of the last dimension times Gelu of the second.
LogicalResult raiseBiasSplitGelu(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &bias = raiser.input(node, 1);
  std::optional<Size> half = x.rank() ? x.sizes.back().divide(2) : std::nullopt;
  if (!half || bias.rank() != 1 || bias.sizes[0] != x.sizes.back())
    return raiser.fail(node, "its last dimension must be even and the size of its bias");
  if (!isa<FloatType>(raiser.internalType(x.elementType)) ||
      raiser.internalType(x.elementType) != raiser.internalType(bias.elementType))
    return raiser.fail(node, "only floats of one type are supported");
  SmallVector<Size> sizes(x.sizes);
  sizes.back() = *half;
  raiser.set(node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Location l = node.getLoc();
    Formula f{b, l, raiser.internalType(x.elementType)};
    Value offset = arith::AddIOp::create(b, l, at.back(), SizeOp::create(b, l, *half));
    SmallVector<Value> second(at);
    second.back() = offset;
    auto sum = [&](ValueRange indices) {
      return f.add(raiser.element(b, x, indices), raiser.element(b, bias, indices));
    };
    return f.mul(sum(at), gelu(f, sum(second)));
  }));
  return success();
}

} // namespace

void raise::registerActivations(Registry &registry) {
  add(registry, "Sigmoid", [](onnx::NodeOp) { return [](const Formula &f, Value x) { return f.sigmoid(x); }; });
  addElementwise(registry, "Relu", 1, relu());
  registry.add("PRelu", raisePRelu, 2, 2);
  addElementwise(registry, "Shrink", 1, shrink, 9);

  add(registry, "LeakyRelu", [](onnx::NodeOp node) {
    return [alpha = node.floatOr("alpha", 0.01)](const Formula &f, Value x) {
      return f.select(f.less(x, f.number(0)), f.mul(f.number(alpha), x), x);
    };
  });
  add(registry, "ThresholdedRelu", [](onnx::NodeOp node) {
    return [alpha = node.floatOr("alpha", 1)](const Formula &f, Value x) {
      return f.select(f.less(f.number(alpha), x), x, f.number(0));
    };
  }, 10);
  add(registry, "Elu", [](onnx::NodeOp node) {
    return [alpha = node.floatOr("alpha", 1)](const Formula &f, Value x) {
      return exponentialUnit(f, x, alpha, 1, 1);
    };
  });
  add(registry, "Selu", [](onnx::NodeOp node) {
    double alpha = node.floatOr("alpha", 1.67326319217681884765625f), gamma = node.floatOr("gamma", 1.05070102214813232421875f);
    return [=](const Formula &f, Value x) { return exponentialUnit(f, x, alpha, 1, gamma); };
  });
  add(registry, "Celu", [](onnx::NodeOp node) {
    return [alpha = node.floatOr("alpha", 1)](const Formula &f, Value x) {
      return exponentialUnit(f, x, alpha, alpha, 1);
    };
  }, 12);
  add(registry, "HardSigmoid", [](onnx::NodeOp node) {
    double alpha = node.floatOr("alpha", 0.2f), beta = node.floatOr("beta", 0.5);
    return [=](const Formula &f, Value x) { return hardSigmoid(f, x, alpha, beta); };
  });
  add(registry, "HardSwish", [](onnx::NodeOp) {
    return [](const Formula &f, Value x) { return f.mul(x, hardSigmoid(f, x, 1.0 / 6, 0.5)); };
  }, 14);
  add(registry, "Softplus", [](onnx::NodeOp) { return softplus; });
  add(registry, "Softsign", [](onnx::NodeOp) {
    return [](const Formula &f, Value x) { return f.div(x, f.add(f.number(1), f.abs(x))); };
  });
  add(registry, "Mish", [](onnx::NodeOp) {
    return [](const Formula &f, Value x) { return f.mul(x, f.tanh(softplus(f, x))); };
  }, 18);
  registry.add("Gelu", [](Raiser &raiser, onnx::NodeOp node) {
    auto kind = dyn_cast_or_null<StringAttr>(node.attribute("approximate"));
    if (kind && kind != "none" && kind != "tanh")
      return raiser.fail(node, "its approximation must be none or tanh, and is " + kind.getValue());
    return raiseElementwise(raiser, node, {.real = scalarOf(kind && kind == "tanh" ? geluTanh : gelu)});
  }, 1, 1, 20);

  registry.add("com.microsoft::Gelu", biased(gelu), 1, 1, 1);
  registry.add("com.microsoft::BiasGelu", biased(gelu), 2, 2, 1);
  registry.add("com.microsoft::FastGelu", biased(geluTanh), 1, 2, 1);
  registry.add("com.microsoft::BiasAdd", raiseBiasAdd, 3, 3, 1);
  registry.add("com.microsoft::BiasSplitGelu", raiseBiasSplitGelu, 2, 2, 1);
  add(registry, "com.microsoft::QuickGelu", [](onnx::NodeOp node) {
    return [alpha = node.floatOr("alpha", 1.702f)](const Formula &f, Value x) { return swish(f, x, alpha); };
  }, 1);
}
