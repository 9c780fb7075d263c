// SPDX-License-Identifier: Apache-2.0
//
// Steps of optimisers, of the domain ai.onnx.preview.training: elementwise on each of several
// tensors. Inputs are the rate, the count of steps, then all tensors, all gradients, and all of
// each further state; outputs all new tensors, then states.

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// New values of a tensor and its states from x, its regularised gradient and the states.
using Update = std::function<SmallVector<Value>(Scalars &, Value rate, Value steps, Value x,
                                                Value g, ArrayRef<Value> states)>;

LogicalResult raiseOptimizer(Raiser &raiser, onnx::NodeOp node, unsigned states,
                             const Update &update) {
  unsigned each = states + 2, inputs = node.getInputs().size(),
           count = inputs < 2 ? 0 : (inputs - 2) / each;
  if (count == 0 || inputs != 2 + count * each || node.getOutputs().size() > count * (states + 1))
    return raiser.fail(node, "expects a rate, a count and " + Twine(each) +
                                 " inputs for each tensor, got " + Twine(inputs));
  for (unsigned i = 0; i != inputs; ++i)
    if (!raiser.hasInput(node, i))
      return raiser.fail(node, "an input is missing");
  Known &rate = raiser.input(node, 0), &steps = raiser.input(node, 1);
  if (elementCount(rate.sizes) != Size(1) || elementCount(steps.sizes) != Size(1))
    return raiser.fail(node, "its rate and count must have one element");
  float norm = node.floatOr("norm_coefficient", 0);
  for (unsigned i = 0; i != count; ++i) {
    Known &x = raiser.input(node, 2 + i);
    Type type = raiser.internalType(x.elementType);
    if (!isa<FloatType>(type))
      return raiser.fail(node, "only floats are supported");
    for (unsigned part = 1; part != each; ++part) {
      Known &other = raiser.input(node, 2 + part * count + i);
      if (other.sizes != x.sizes || other.elementType != x.elementType)
        return raiser.fail(node, "a gradient or state does not have its tensor's type and shape");
    }
    for (unsigned part = 0; part != states + 1; ++part) {
      unsigned output = part * count + i;
      if (output >= node.getOutputs().size())
        continue;
      raiser.set(node,
                 raiser.generated(x.elementType, x.sizes,
                                  [&](OpBuilder &b, ValueRange at) {
                                    Scalars s(b, node.getLoc());
                                    SmallVector<Value> zeros(1, s.index(0)), values;
                                    for (unsigned k = 0; k != each; ++k)
                                      values.push_back(raiser.element(
                                          b, raiser.input(node, 2 + k * count + i), at));
                                    Value g = s.add(s.mul(values[0], norm), values[1]);
                                    Value r = s.real(type, raiser.element(b, rate, zeros)),
                                          t = raiser.element(b, steps, zeros);
                                    return update(s, r, t, values[0], g,
                                                  ArrayRef<Value>(values).drop_front(2))[part];
                                  }),
                 output);
    }
  }
  return success();
}

LogicalResult raiseAdagrad(Raiser &raiser, onnx::NodeOp node) {
  double decay = node.floatOr("decay_factor", 0), epsilon = node.floatOr("epsilon", 1e-6f);
  return raiseOptimizer(
      raiser, node, 1,
      [=](Scalars &s, Value rate, Value t, Value x, Value g, ArrayRef<Value> states) {
        Type type = x.getType();
        Value r = s.div(rate, s.add(s.mul(s.real(type, t), decay), 1));
        Value h = s.add(states[0], s.mul(g, g));
        return SmallVector<Value>{s.sub(x, s.div(s.mul(r, g), s.add(s.sqrt(h), epsilon))), h};
      });
}

LogicalResult raiseAdam(Raiser &raiser, onnx::NodeOp node) {
  double alpha = node.floatOr("alpha", 0.9f), beta = node.floatOr("beta", 0.999f),
         epsilon = node.floatOr("epsilon", 1e-6f);
  double after = node.floatOr("norm_coefficient_post", 0);
  return raiseOptimizer(
      raiser, node, 2,
      [=](Scalars &s, Value rate, Value t, Value x, Value g, ArrayRef<Value> states) {
        Type type = x.getType();
        Value v = s.add(s.mul(states[0], alpha), s.mul(g, 1 - alpha));
        Value h = s.add(s.mul(states[1], beta), s.mul(s.mul(g, g), 1 - beta));
        // Corrected for the bias of the first steps.
        Value steps = s.real(type, t), one = s.number(type, 1);
        auto rest = [&](double base) { return s.sub(one, s.pow(s.number(type, base), steps)); };
        Value corrected = s.div(s.mul(rate, s.sqrt(rest(beta))), rest(alpha));
        Value r = s.select(s.less(s.number(type, 0), steps), corrected, rate);
        Value moved = s.sub(x, s.mul(r, s.div(v, s.add(s.sqrt(h), epsilon))));
        return SmallVector<Value>{s.mul(moved, 1 - after), v, h};
      });
}

LogicalResult raiseMomentum(Raiser &raiser, onnx::NodeOp node) {
  double alpha = node.floatOr("alpha", 0.9f), beta = node.floatOr("beta", 1);
  StringRef mode = node.stringOr("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return raiser.fail(node, "mode is " + mode + ", and must be standard or nesterov");
  bool nesterov = mode == "nesterov";
  return raiseOptimizer(
      raiser, node, 1,
      [=](Scalars &s, Value rate, Value t, Value x, Value g, ArrayRef<Value> states) {
        Type type = x.getType();
        Value first = s.lessEqual(s.real(type, t), s.number(type, 0));
        Value factor = s.select(first, s.number(type, 1), s.number(type, beta));
        Value v = s.add(s.mul(states[0], alpha), s.mul(factor, g));
        Value step = nesterov ? s.add(g, s.mul(v, alpha)) : v;
        return SmallVector<Value>{s.sub(x, s.mul(rate, step)), v};
      });
}

} // namespace

void raise::registerTraining(Registry &registry) {
  registry.add("ai.onnx.preview.training::Adagrad", raiseAdagrad, 5, kAnyNumber, 1);
  registry.add("ai.onnx.preview.training::Adam", raiseAdam, 6, kAnyNumber, 1);
  registry.add("ai.onnx.preview.training::Momentum", raiseMomentum, 5, kAnyNumber, 1);
}
