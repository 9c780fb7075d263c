// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's MoE and QMoE: each token goes through the k experts that its router likes best. Experts are chosen by data, so
// weights are read at indices that are; all else is sums in loops. Weights stay as the file has them.

#include "passes/Raise/Quantized.h"

#include "dialects/ONNX/ElementType.h"
#include "dialects/OTF/Observed.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// A builder with a place, and the few operations that are needed.
struct Scalars {
  OpBuilder &b;
  Location l;

  Value real(double x) { return arith::ConstantOp::create(b, l, b.getF32FloatAttr(float(x))); }
  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, l, i); }
  Value add(Value x, Value y) { return isa<FloatType>(x.getType()) ? Value(arith::AddFOp::create(b, l, x, y)) : Value(arith::AddIOp::create(b, l, x, y)); }
  Value mul(Value x, Value y) { return isa<FloatType>(x.getType()) ? Value(arith::MulFOp::create(b, l, x, y)) : Value(arith::MulIOp::create(b, l, x, y)); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, l, x, y); }
  Value lesser(Value x, Value y) { return arith::MinimumFOp::create(b, l, x, y); }
  Value greater(Value x, Value y) { return arith::MaximumFOp::create(b, l, x, y); }
  Value sigmoid(Value x) { return div(real(1), add(real(1), math::ExpOp::create(b, l, arith::NegFOp::create(b, l, x)))); }
  /// Folds `next(i, carried)` over 0 … count − 1.
  Value loop(int64_t count, Value initial, function_ref<Value(Scalars, Value, Value)> next) {
    auto made = scf::ForOp::create(b, l, index(0), index(count), index(1), ValueRange(initial),
                                   [&](OpBuilder &in, Location, Value i, ValueRange carried) {
                                     scf::YieldOp::create(in, l, next(Scalars{in, l}, i, carried[0]));
                                   });
    return made.getResult(0);
  }
};

/// The weights of all experts of one layer: [experts, outputs, inputs].
struct Layer {
  Known *weight = nullptr, *scale = nullptr, *zero = nullptr, *bias = nullptr;
  int64_t outputs = 0, inputs = 0, bits = 0, block = 0; // bits 0: floats
};

/// The row-major element of a tensor of constant sizes.
Value flat(Scalars s, Raiser &raiser, Known &what, Value place) {
  SmallVector<Value> at(what.rank());
  for (size_t i = what.rank(); i-- != 0;) {
    Value extent = s.index(*what.sizes[i].constant());
    at[i] = i == 0 ? place : Value(arith::RemUIOp::create(s.b, s.l, place, extent));
    if (i != 0)
      place = arith::DivUIOp::create(s.b, s.l, place, extent);
  }
  return raiser.element(s.b, what, at);
}

Value code(Scalars s, Raiser &raiser, Known &what, int64_t bits, Value place) {
  Value per = s.index(8 / bits);
  Value byte = arith::ExtUIOp::create(s.b, s.l, s.b.getI32Type(), flat(s, raiser, what, arith::DivUIOp::create(s.b, s.l, place, per)));
  Value shift = arith::IndexCastOp::create(s.b, s.l, s.b.getI32Type(),
                                           s.mul(arith::RemUIOp::create(s.b, s.l, place, per), s.index(bits)));
  Value mask = arith::ConstantOp::create(s.b, s.l, s.b.getI32IntegerAttr((1 << bits) - 1));
  Value value = arith::AndIOp::create(s.b, s.l, arith::ShRUIOp::create(s.b, s.l, byte, shift), mask);
  return arith::SIToFPOp::create(s.b, s.l, s.b.getF32Type(), value);
}

Value weightAt(Scalars s, Raiser &raiser, const Layer &layer, Value expert, Value output, Value input) {
  if (layer.bits == 0)
    return raiser.element(s.b, *layer.weight, {expert, output, input});
  Value row = s.add(s.mul(expert, s.index(layer.outputs)), output);
  Value q = code(s, raiser, *layer.weight, layer.bits, s.add(s.mul(row, s.index(layer.inputs)), input));
  int64_t perByte = 8 / layer.bits;
  SmallVector<Value> at{expert, output};
  Value zero = s.real(1 << (layer.bits - 1)), block;
  if (layer.block != 0) {
    block = arith::DivUIOp::create(s.b, s.l, input, s.index(layer.block));
    at.push_back(block);
  }
  if (layer.zero) { // codes of each expert, or of each row, begin in a byte of their own
    int64_t across = *layer.zero->sizes.back().constant() * perByte;
    Value place = layer.block ? s.add(s.mul(row, s.index(across)), block) : s.add(s.mul(expert, s.index(across)), output);
    zero = code(s, raiser, *layer.zero, layer.bits, place);
  }
  return s.mul(arith::SubFOp::create(s.b, s.l, q, zero), raiser.element(s.b, *layer.scale, at));
}

/// Σ x W[expert, output, ·] + bias.
Value product(Scalars s, Raiser &raiser, const Layer &layer, Value expert, Value output,
              function_ref<Value(Scalars, Value)> input) {
  Value sum = s.loop(layer.inputs, s.real(0), [&](Scalars in, Value i, Value carried) {
    return in.add(carried, in.mul(input(in, i), weightAt(in, raiser, layer, expert, output, i)));
  });
  return layer.bias ? s.add(sum, raiser.element(s.b, *layer.bias, {expert, output})) : sum;
}

enum class Activation { relu, relu2, gelu, silu, identity, swiglu, geglu };

struct Experts {
  int64_t count = 0, chosen = 0, hidden = 0, inner = 0, fusion = 0;
  Activation activation = Activation::relu;
  float alpha = 1, beta = 0;
  std::optional<float> limit;
  Layer first, second, third; // third: the factor of a gate that is not fused
};

Value activate(Scalars s, Activation kind, Value x) {
  switch (kind) {
  case Activation::relu:
    return s.greater(x, s.real(0));
  case Activation::relu2: {
    Value positive = s.greater(x, s.real(0));
    return s.mul(positive, positive);
  }
  case Activation::geglu:
  case Activation::gelu: { // the form with tanh; 0.7978845608 is sqrt(2/π)
    Value cube = s.mul(x, s.mul(x, x));
    Value inside = s.mul(s.real(0.7978845608028654), s.add(x, s.mul(s.real(0.044715), cube)));
    return s.mul(s.mul(s.real(0.5), x), s.add(s.real(1), math::TanhOp::create(s.b, s.l, inside)));
  }
  case Activation::silu:
    return s.mul(x, s.sigmoid(x));
  default:
    return x;
  }
}

/// What the first layers give expert `expert` at place `i` of its inner size.
Value innerValue(Scalars s, Raiser &raiser, const Experts &e, Value expert, Value i, function_ref<Value(Scalars, Value)> input) {
  bool pairs = e.fusion == 1, halves = e.fusion == 2;
  Value gate = product(s, raiser, e.first, expert, pairs ? s.mul(i, s.index(2)) : i, input);
  Value up;
  if (pairs || halves)
    up = product(s, raiser, e.first, expert, pairs ? s.add(s.mul(i, s.index(2)), s.index(1)) : s.add(i, s.index(e.inner)), input);
  else if (e.third.weight)
    up = product(s, raiser, e.third, expert, i, input);
  if (e.activation != Activation::swiglu) {
    Value value = activate(s, e.activation, gate);
    return up ? s.mul(value, up) : value;
  }
  if (e.limit) {
    gate = s.lesser(gate, s.real(*e.limit));
    up = s.lesser(s.greater(up, s.real(-*e.limit)), s.real(*e.limit));
  }
  return s.mul(s.mul(gate, s.sigmoid(s.mul(s.real(e.alpha), gate))), s.add(up, s.real(e.beta)));
}

/// Fills `layer` from weight, scales and bias at these inputs (none: ~0u), and checks their sizes.
LogicalResult readLayer(Raiser &raiser, onnx::NodeOp node, Layer &layer, int64_t experts, int64_t outputs, int64_t inputs, unsigned weight,
                        unsigned scale, unsigned bias, unsigned zero) {
  auto at = [&](unsigned position) { return position != ~0u && raiser.hasInput(node, position) ? &raiser.input(node, position) : nullptr; };
  layer.weight = at(weight);
  layer.scale = at(scale);
  layer.bias = at(bias);
  layer.zero = at(zero);
  layer.outputs = outputs;
  layer.inputs = inputs;
  auto has = [](Known *what, ArrayRef<int64_t> sizes) {
    return what && what->rank() == sizes.size() && llvm::equal(what->sizes, sizes, [](const Size &a, int64_t b) { return a == Size(b); });
  };
  bool fits = !layer.bias || has(layer.bias, {experts, outputs});
  if (layer.bits == 0) {
    fits = fits && has(layer.weight, {experts, outputs, inputs}) && raiser.isFloat(layer.weight->elementType);
  } else {
    int64_t blocks = layer.block ? inputs / layer.block : 1, perByte = 8 / layer.bits;
    fits = fits && inputs % perByte == 0 && (layer.block == 0 || inputs % layer.block == 0) &&
           has(layer.weight, {experts, outputs, inputs / perByte}) && layer.weight->elementType == Element::UInt8 && layer.scale &&
           (layer.block ? has(layer.scale, {experts, outputs, blocks}) : has(layer.scale, {experts, outputs})) &&
           raiser.isFloat(layer.scale->elementType);
    if (layer.zero)
      fits = fits && layer.zero->elementType == Element::UInt8 &&
             (layer.block ? has(layer.zero, {experts, outputs, (blocks + perByte - 1) / perByte})
                          : has(layer.zero, {experts, (outputs + perByte - 1) / perByte}));
  }
  if (!fits)
    return raiser.fail(node, "weights, scales, zero points and biases of " + Twine(experts) + " experts with " + Twine(inputs) +
                                 " inputs and " + Twine(outputs) + " outputs do not fit each other");
  return success();
}

LogicalResult raiseExperts(Raiser &raiser, onnx::NodeOp node, bool quantized) {
  Known &input = raiser.input(node, 0), &router = raiser.input(node, 1);
  Experts e;
  std::optional<Activation> activation = llvm::StringSwitch<std::optional<Activation>>(node.stringOr("activation_type", "relu"))
                                             .Case("relu", Activation::relu).Case("relu2", Activation::relu2)
                                             .Case("gelu", Activation::gelu).Case("silu", Activation::silu)
                                             .Case("identity", Activation::identity).Case("swiglu", Activation::swiglu)
                                             .Case("geglu", Activation::geglu).Default(std::nullopt);
  if (!activation)
    return raiser.fail(node, "activation '" + node.stringOr("activation_type", "relu") + "' is not supported");
  for (StringRef name : {"use_sparse_mixer", "swiglu_limit_after_activation"})
    if (node.intOr(name, 0) != 0)
      return raiser.fail(node, name + " is not supported");
  if (quantized && node.stringOr("quant_type", "int") != "int")
    return raiser.fail(node, "weights of quant_type '" + node.stringOr("quant_type", "int") + "' are not supported (int is)");
  if (quantized && node.intOr("weights_prepacked", -1) != 0)
    return raiser.fail(node, "its weights are packed for one device's kernel (export it with weights_prepacked = 0)");
  bool normalise = node.intOr("normalize_routing_weights", 0) != 0;
  Known *mixing = quantized && raiser.hasInput(node, 14) ? &raiser.input(node, 14) : nullptr;
  if (mixing && normalise)
    return raiser.fail(node, "router_weights with normalize_routing_weights are not supported");
  unsigned first = 2, second = quantized ? 5 : 4, third = quantized ? 8 : 6;
  std::optional<int64_t> experts, hidden, rows1;
  if (router.rank() == 2 && input.rank() >= 2 && input.rank() <= 3 && raiser.input(node, first).rank() == 3 &&
      raiser.hasInput(node, second) && raiser.input(node, second).rank() == 3) {
    experts = router.sizes[1].constant();
    hidden = input.sizes.back().constant();
    rows1 = raiser.input(node, first).sizes[1].constant();
  }
  if (!experts || !hidden || !rows1 || *experts < 1 || *hidden < 1 || !raiser.isFloat(input.elementType) ||
      !raiser.isFloat(router.elementType))
    return raiser.fail(node, "expects tokens and router_probs of floats, and weights of constant shapes");
  Size tokens = elementCount(ArrayRef<Size>(input.sizes).drop_back());
  for (Known *table : {&router, mixing ? mixing : &router})
    if (table->rank() != 2 || table->sizes[0] != tokens || table->sizes[1] != Size(*experts))
      return raiser.fail(node, "router_probs must have a row for each of " + tokens.str() + " tokens");
  e.count = *experts;
  e.hidden = *hidden;
  e.chosen = node.intOr("k", 1);
  e.activation = *activation;
  e.alpha = node.floatOr("activation_alpha", 1);
  e.beta = node.floatOr("activation_beta", 0);
  if (node.attribute("swiglu_limit"))
    e.limit = node.floatOr("swiglu_limit", 0);
  bool gated = e.activation == Activation::swiglu || e.activation == Activation::geglu;
  e.fusion = gated ? node.intOr("swiglu_fusion", 0) : 0;
  bool hasThird = raiser.hasInput(node, third);
  if (e.chosen < 1 || e.chosen > e.count || e.fusion < 0 || e.fusion > 2 || (e.fusion != 0 && (*rows1 % 2 != 0 || hasThird)) ||
      (gated && e.fusion == 0 && !hasThird))
    return raiser.fail(node, "its k, swiglu_fusion or the layers that it has do not fit");
  e.inner = e.fusion ? *rows1 / 2 : *rows1;
  int64_t bits = quantized ? node.intOr("expert_weight_bits", 4) : 0, block = std::max<int64_t>(node.intOr("block_size", 0), 0);
  e.first.bits = quantized ? node.intOr("fc1_expert_weight_bits", bits) : 0;
  e.second.bits = quantized ? node.intOr("fc2_expert_weight_bits", bits) : 0;
  e.third.bits = quantized ? node.intOr("fc3_expert_weight_bits", bits) : 0;
  for (Layer *layer : {&e.first, &e.second, &e.third}) {
    layer->block = block;
    if (quantized && layer->bits != 2 && layer->bits != 4 && layer->bits != 8)
      return raiser.fail(node, "codes of " + Twine(layer->bits) + " bits are not supported (2, 4 and 8 are)");
  }
  constexpr unsigned none = ~0u;
  unsigned step = quantized ? 2 : 1; // from weight to bias
  auto read = [&](Layer &layer, int64_t outputs, int64_t inputs, unsigned weight, unsigned zero) {
    return readLayer(raiser, node, layer, e.count, outputs, inputs, weight, quantized ? weight + 1 : none, weight + step,
                     quantized ? zero : none);
  };
  if (failed(read(e.first, *rows1, e.hidden, first, 11)) || failed(read(e.second, e.hidden, e.inner, second, 12)) ||
      (hasThird && failed(read(e.third, e.inner, e.hidden, third, 13))))
    return failure();

  Location l = node.getLoc();
  Known x = raiser.reshaped(input, {tokens, Size(e.hidden)});
  // The expert with j others before it, by its probability and then by its number.
  Known choice = raiser.generated(Element::Int64, {tokens, Size(e.chosen)}, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s{b, l};
    Value found = s.loop(e.count, s.index(0), [&](Scalars in, Value expert, Value carried) {
      Value mine = raiser.element(in.b, router, {at[0], expert});
      Value before = in.loop(e.count, in.index(0), [&](Scalars deep, Value other, Value count) {
        Value its = raiser.element(deep.b, router, {at[0], other});
        Value more = arith::CmpFOp::create(deep.b, l, arith::CmpFPredicate::OGT, its, mine);
        Value same = arith::CmpFOp::create(deep.b, l, arith::CmpFPredicate::OEQ, its, mine);
        Value earlier = arith::CmpIOp::create(deep.b, l, arith::CmpIPredicate::ult, other, expert);
        more = arith::OrIOp::create(deep.b, l, more, arith::AndIOp::create(deep.b, l, same, earlier));
        return deep.add(count, arith::SelectOp::create(deep.b, l, more, deep.index(1), deep.index(0)));
      });
      Value hit = arith::CmpIOp::create(in.b, l, arith::CmpIPredicate::eq, before, at[1]);
      return Value(arith::SelectOp::create(in.b, l, hit, expert, carried));
    });
    return arith::IndexCastOp::create(b, l, b.getI64Type(), found);
  });
  choice.tensor.getDefiningOp()->setAttr(kExpertsAttribute, OpBuilder(choice.tensor.getContext()).getI64IntegerAttr(e.count));
  auto expertOf = [&](Scalars s, Value token, Value place) -> Value {
    return arith::IndexCastOp::create(s.b, l, s.b.getIndexType(), raiser.element(s.b, choice, {token, place}));
  };
  // exp(p − greatest), over the sum of those of all experts or of the chosen ones.
  Known share = raiser.generated(Element::Float, {tokens, Size(e.chosen)}, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s{b, l};
    Value token = at[0], mine = expertOf(s, token, at[1]);
    if (mixing)
      return raiser.element(b, *mixing, {token, mine});
    Value greatest = raiser.element(b, router, {token, expertOf(s, token, s.index(0))});
    auto power = [&](Scalars in, Value expert) -> Value {
      return math::ExpOp::create(in.b, l, arith::SubFOp::create(in.b, l, raiser.element(in.b, router, {token, expert}), greatest));
    };
    Value sum = s.loop(normalise ? e.chosen : e.count, s.real(0), [&](Scalars in, Value i, Value carried) {
      return in.add(carried, power(in, normalise ? expertOf(in, token, i) : i));
    });
    return s.div(power(s, mine), sum);
  });
  Known inner_ = raiser.generated(Element::Float, {tokens, Size(e.chosen), Size(e.inner)}, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s{b, l};
    return innerValue(s, raiser, e, expertOf(s, at[0], at[1]), at[2],
                      [&](Scalars in, Value i) { return raiser.element(in.b, x, {at[0], i}); });
  });
  Known result = raiser.generated(input.elementType, {tokens, Size(e.hidden)}, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s{b, l};
    return s.loop(e.chosen, s.real(0), [&](Scalars in, Value place, Value carried) {
      Value y = product(in, raiser, e.second, expertOf(in, at[0], place), at[1],
                        [&](Scalars deep, Value i) { return raiser.element(deep.b, inner_, {at[0], place, i}); });
      return in.add(carried, in.mul(y, raiser.element(in.b, share, {at[0], place})));
    });
  });
  raiser.set(node, raiser.reshaped(result, input.sizes));
  return success();
}

} // namespace

void raise::registerMixtureOfExperts(Registry &registry) {
  registry.add("com.microsoft::MoE", [](Raiser &r, onnx::NodeOp n) { return raiseExperts(r, n, false); }, 3, 8, 1);
  registry.add("com.microsoft::QMoE", [](Raiser &r, onnx::NodeOp n) { return raiseExperts(r, n, true); }, 3, 15, 1);
}
