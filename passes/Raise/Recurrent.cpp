// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM.
//
// What a step takes from the input, X·Wᵀ, is known for all steps at once: a contraction before. The rest is an
// otf.compute with a work item for each batch row and direction. It walks the steps and keeps its state in scratch
// results: h, what h becomes (a step reads all of the old one), the cell c of an LSTM, and r∘h of a GRU.

#include "passes/Raise/Program.h"

#include "dialects/ONNX/ElementType.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

enum class Cell { rnn, gru, lstm };

//===------------------------------------------------------------------------------------------===//
// Activations
//===------------------------------------------------------------------------------------------===//

struct Function {
  enum Kind { relu, tanh, sigmoid, affine, leakyRelu, thresholdedRelu, scaledTanh, hardSigmoid, elu, softsign, softplus };
  Kind kind;
  double alpha, beta;    // what ONNX takes where nothing is given
  unsigned parameters;   // how many of the two it has
};

std::optional<Function> functionNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<Function>>(name)
      .CaseLower("relu", Function{Function::relu, 0, 0, 0})
      .CaseLower("tanh", Function{Function::tanh, 0, 0, 0})
      .CaseLower("sigmoid", Function{Function::sigmoid, 0, 0, 0})
      .CaseLower("affine", Function{Function::affine, 1, 0, 2})
      .CaseLower("leakyrelu", Function{Function::leakyRelu, 0.01, 0, 1})
      .CaseLower("thresholdedrelu", Function{Function::thresholdedRelu, 1, 0, 1})
      .CaseLower("scaledtanh", Function{Function::scaledTanh, 1, 1, 2})
      .CaseLower("hardsigmoid", Function{Function::hardSigmoid, 0.2, 0.5, 2})
      .CaseLower("elu", Function{Function::elu, 1, 0, 1})
      .CaseLower("softsign", Function{Function::softsign, 0, 0, 0})
      .CaseLower("softplus", Function{Function::softplus, 0, 0, 0})
      .Default(std::nullopt);
}

Value exponential(Program &p, Value x) { return math::ExpOp::create(p.b, p.l, x); }
Value hyperbolic(Program &p, Value x) { return math::TanhOp::create(p.b, p.l, x); }

Value activate(Program &p, const Function &f, Value x) {
  auto number = [&](double value) { return p.number(x.getType(), value); };
  Value zero = number(0), one = number(1), alpha = number(f.alpha), beta = number(f.beta);
  switch (f.kind) {
  case Function::relu:
    return p.max(x, zero);
  case Function::tanh:
    return hyperbolic(p, x);
  case Function::sigmoid:
    return p.div(one, p.add(one, exponential(p, p.sub(zero, x))));
  case Function::affine:
    return p.add(p.mul(alpha, x), beta);
  case Function::leakyRelu:
    return p.select(p.less(x, zero), p.mul(alpha, x), x);
  case Function::thresholdedRelu:
    return p.select(p.less(alpha, x), x, zero);
  case Function::scaledTanh:
    return p.mul(alpha, hyperbolic(p, p.mul(beta, x)));
  case Function::hardSigmoid:
    return p.min(p.max(p.add(p.mul(alpha, x), beta), zero), one);
  case Function::elu:
    return p.select(p.less(x, zero), p.mul(alpha, p.sub(exponential(p, x), one)), x);
  case Function::softsign:
    return p.div(x, p.add(one, math::AbsFOp::create(p.b, p.l, x)));
  case Function::softplus: // ln(1 + eˣ) = max(x, 0) + ln(1 + e^-|x|)
    Value small = exponential(p, p.sub(zero, math::AbsFOp::create(p.b, p.l, x)));
    return p.add(p.max(x, zero), math::Log1pOp::create(p.b, p.l, small));
  }
  return {};
}

/// The functions of all directions, one after another. `alpha` and `beta` are given by position, or for those only that have them.
FailureOr<SmallVector<Function>> functionsOf(Raiser &raiser, onnx::NodeOp node, ArrayRef<StringRef> defaults,
                                             int64_t directions) {
  SmallVector<StringRef> names;
  for (int64_t d = 0; d != directions; ++d)
    llvm::append_range(names, defaults);
  if (auto given = dyn_cast_or_null<ArrayAttr>(node.attribute("activations")); given && !given.empty()) {
    if (given.size() != names.size())
      return raiser.fail(node, "it needs " + Twine(names.size()) + " activations, got " + Twine(given.size()));
    names.clear();
    for (Attribute name : given)
      names.push_back(isa<StringAttr>(name) ? cast<StringAttr>(name).getValue() : StringRef());
  }
  SmallVector<Function> functions;
  for (StringRef name : names) {
    std::optional<Function> function = functionNamed(name);
    if (!function)
      return raiser.fail(node, "activation \"" + name + "\" is not supported");
    functions.push_back(*function);
  }
  auto parameters = [&](StringRef attribute, unsigned least, double Function::*to) -> LogicalResult {
    auto given = dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute(attribute));
    if (!given)
      return success();
    size_t next = 0;
    bool byPosition = given.size() == int64_t(functions.size());
    for (auto [i, function] : llvm::enumerate(functions))
      if (function.parameters >= least && (byPosition || next < size_t(given.size())))
        function.*to = given[byPosition ? i : next++];
    if (!byPosition && next != size_t(given.size()))
      return raiser.fail(node, attribute + " has " + Twine(given.size()) + " values, and its activations take " + Twine(next));
    return success();
  };
  if (failed(parameters("activation_alpha", 1, &Function::alpha)) ||
      failed(parameters("activation_beta", 2, &Function::beta)))
    return failure();
  return functions;
}

//===------------------------------------------------------------------------------------------===//
// The operator
//===------------------------------------------------------------------------------------------===//

class Recurrence {
public:
  Recurrence(Raiser &raiser, onnx::NodeOp node, Cell cell) : raiser(raiser), node(node), cell(cell) {}

  LogicalResult raise();

private:
  LogicalResult read();
  LogicalResult expect(unsigned position, ArrayRef<Size> sizes, StringRef what);
  void project();
  void item(Program &p, Value row, Value direction, bool backwards);
  void step(Program &p, Value row, Value direction, unsigned first, Value from);
  /// State of a batch row: `row` and `direction` in the order of a state tensor of the model.
  SmallVector<Value> state(Value row, Value direction, Value unit) {
    return batchFirst ? SmallVector<Value>{row, direction, unit} : SmallVector<Value>{direction, row, unit};
  }

  Raiser &raiser;
  onnx::NodeOp node;
  Cell cell;
  int64_t gates = 1, directions = 1;
  bool batchFirst = false, backwardOnly = false, linearBeforeReset = false, coupled = false;
  Size steps, batch, hidden, width;
  Known *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr, *lengths = nullptr;
  Known *initialH = nullptr, *initialC = nullptr, *peepholes = nullptr;
  SmallVector<Function> functions;
  std::optional<double> clip;
  Known projected; // [S, B, D·gates·H] or, batch first, [B, S, …]
  Value y, h, c, next, reset; // handles
};

LogicalResult Recurrence::expect(unsigned position, ArrayRef<Size> sizes, StringRef what) {
  if (raiser.hasInput(node, position) && raiser.input(node, position).sizes != SmallVector<Size>(sizes)) {
    std::string text;
    for (const Size &size : sizes)
      text += (text.empty() ? "" : " x ") + size.str();
    return raiser.fail(node, "its " + what + " must be " + text);
  }
  return success();
}

LogicalResult Recurrence::read() {
  gates = cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
  x = &raiser.input(node, 0);
  w = &raiser.input(node, 1);
  r = &raiser.input(node, 2);
  auto optional = [&](unsigned position) {
    return raiser.hasInput(node, position) ? &raiser.input(node, position) : nullptr;
  };
  bias = optional(3);
  lengths = optional(4);
  initialH = optional(5);
  if (cell == Cell::lstm) {
    initialC = optional(6);
    peepholes = optional(7);
  }
  StringRef direction = node.stringOr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return raiser.fail(node, "direction \"" + direction + "\" is not known");
  directions = direction == "bidirectional" ? 2 : 1;
  backwardOnly = direction == "reverse";
  batchFirst = node.intOr("layout", 0) != 0;
  linearBeforeReset = node.intOr("linear_before_reset", 0) != 0;
  coupled = node.intOr("input_forget", 0) != 0;
  if (node.attribute("clip"))
    clip = node.floatOr("clip", 0);
  if (x->rank() != 3 || r->rank() != 3)
    return raiser.fail(node, "its input and recurrence weights must have rank 3");
  if (!isa<FloatType>(raiser.internalType(x->elementType)))
    return raiser.fail(node, "its input must be floats");
  steps = x->sizes[batchFirst ? 1 : 0];
  batch = x->sizes[batchFirst ? 0 : 1];
  width = x->sizes[2];
  hidden = r->sizes[2];
  Size all = hidden * Size(gates);
  SmallVector<Size> states = batchFirst ? SmallVector<Size>{batch, directions, hidden} : SmallVector<Size>{directions, batch, hidden};
  if (failed(expect(1, {directions, all, width}, "weights W")) ||
      failed(expect(2, {directions, all, hidden}, "recurrence weights R")) ||
      failed(expect(3, {directions, all * Size(2)}, "bias B")) || failed(expect(4, {batch}, "sequence_lens")) ||
      failed(expect(5, states, "initial_h")) || (initialC && failed(expect(6, states, "initial_c"))) ||
      (peepholes && failed(expect(7, {directions, hidden * Size(3)}, "peepholes P"))))
    return failure();
  SmallVector<StringRef> defaults = cell == Cell::lstm  ? SmallVector<StringRef>{"Sigmoid", "Tanh", "Tanh"}
                                    : cell == Cell::gru ? SmallVector<StringRef>{"Sigmoid", "Tanh"}
                                                        : SmallVector<StringRef>{"Tanh"};
  FailureOr<SmallVector<Function>> read = functionsOf(raiser, node, defaults, directions);
  if (failed(read))
    return failure();
  functions = *read;
  return success();
}

/// X·Wᵀ of all steps: a linear where W is constant.
void Recurrence::project() {
  Size rows = Size(directions * gates) * hidden;
  SmallVector<Size> sizes = {x->sizes[0], x->sizes[1], rows};
  if (isa_and_nonnull<onnx::FileBlobAttr>(w->constant) && raiser.internalType(x->elementType).isF32()) {
    Known flat = raiser.reshaped(*w, {rows, width});
    if (Value matrix = raiser.matrix(flat, false)) {
      projected.elementType = x->elementType;
      projected.sizes = sizes;
      Value input = raiser.tensor(*x);
      projected.tensor = LinearOp::create(raiser.builder, node.getLoc(), tensorType(raiser.internalType(x->elementType), sizes),
                                          input, matrix, Value());
      return;
    }
  }
  Known flat = raiser.reshaped(*w, {rows, width});
  projected = raiser.generated(x->elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Program p(b, node.getLoc());
    return p.fold(p.extent(width), p.number(raiser.internalType(x->elementType), 0), [&](Value k, Value sum) {
      return p.add(sum, p.mul(raiser.element(b, *x, {at[0], at[1], k}), raiser.element(b, flat, {at[2], k})));
    });
  });
}

/// One step of one row and direction, whose functions begin at `first`: from h and c to `next` and c.
void Recurrence::step(Program &p, Value row, Value direction, unsigned first, Value from) {
  Type type = raiser.internalType(x->elementType);
  Value units = p.extent(hidden);
  auto function = [&](unsigned number, Value v) {
    if (clip)
      v = p.min(p.max(v, p.number(type, -*clip)), p.number(type, *clip));
    return activate(p, functions[first + number], v);
  };
  auto unitOf = [&](int64_t gate, Value unit) { return p.add(p.mul(units, p.index(gate)), unit); };
  auto biasOf = [&](int64_t gate, Value unit) {
    return raiser.element(p.b, *bias, {direction, unitOf(gate, unit)});
  };
  auto input = [&](int64_t gate, Value unit) {
    Value column = p.add(p.mul(direction, p.mul(units, p.index(gates))), unitOf(gate, unit));
    SmallVector<Value> at = batchFirst ? SmallVector<Value>{row, from, column} : SmallVector<Value>{from, row, column};
    return raiser.element(p.b, projected, at);
  };
  auto recurrent = [&](int64_t gate, Value unit, Value source) {
    Value line = unitOf(gate, unit);
    return p.fold(units, p.number(type, 0), [&](Value k, Value sum) {
      Value weight = raiser.element(p.b, *r, {direction, line, k});
      return p.add(sum, p.mul(weight, p.load(source, {direction, row, k})));
    });
  };
  // Everything before the activation, both biases included.
  auto gate = [&](int64_t number, Value unit) {
    Value sum = p.add(input(number, unit), recurrent(number, unit, h));
    if (bias)
      sum = p.add(sum, p.add(biasOf(number, unit), biasOf(number + gates, unit)));
    return sum;
  };

  if (cell == Cell::rnn) {
    p.loop(units, [&](Value unit) { p.store(function(0, gate(0, unit)), next, {direction, row, unit}); });
  } else if (cell == Cell::lstm) { // gates i, o, f, c; peepholes i, o, f
    p.loop(units, [&](Value unit) {
      SmallVector<Value> at = {direction, row, unit};
      Value old = p.load(c, at);
      auto peep = [&](int64_t number, Value sum, Value value) {
        if (!peepholes)
          return sum;
        return p.add(sum, p.mul(raiser.element(p.b, *peepholes, {direction, unitOf(number, unit)}), value));
      };
      Value in = function(0, peep(0, gate(0, unit), old));
      Value forget = coupled ? p.sub(p.number(type, 1), in) : function(0, peep(2, gate(2, unit), old));
      Value candidate = function(1, gate(3, unit));
      Value state = p.add(p.mul(forget, old), p.mul(in, candidate));
      Value out = function(0, peep(1, gate(1, unit), state));
      p.store(state, c, at);
      p.store(p.mul(out, function(2, state)), next, at);
    });
  } else { // gates z, r, h
    if (!linearBeforeReset)
      p.loop(units, [&](Value unit) {
        SmallVector<Value> at = {direction, row, unit};
        p.store(p.mul(function(0, gate(1, unit)), p.load(h, at)), reset, at);
      });
    p.loop(units, [&](Value unit) {
      SmallVector<Value> at = {direction, row, unit};
      Value update = function(0, gate(0, unit)), candidate;
      if (linearBeforeReset) {
        Value linear = recurrent(2, unit, h);
        if (bias)
          linear = p.add(linear, biasOf(5, unit));
        candidate = p.add(input(2, unit), p.mul(function(0, gate(1, unit)), linear));
        if (bias)
          candidate = p.add(candidate, biasOf(2, unit));
      } else {
        candidate = p.add(input(2, unit), recurrent(2, unit, reset));
        if (bias)
          candidate = p.add(candidate, p.add(biasOf(2, unit), biasOf(5, unit)));
      }
      candidate = function(1, candidate);
      Value kept = p.mul(update, p.load(h, at));
      p.store(p.add(p.mul(p.sub(p.number(type, 1), update), candidate), kept), next, at);
    });
  }
}

/// All steps of one row and direction. Steps past the row's length give zeros.
void Recurrence::item(Program &p, Value row, Value direction, bool backwards) {
  Type type = raiser.internalType(x->elementType);
  Value units = p.extent(hidden), all = p.extent(steps), length = all;
  if (lengths)
    length = p.max(p.min(p.toIndex(raiser.element(p.b, *lengths, row)), all), p.index(0));
  auto start = [&](Known *initial, Value handle) {
    p.loop(units, [&](Value unit) {
      Value value = initial ? raiser.element(p.b, *initial, state(row, direction, unit)) : p.number(type, 0);
      p.store(value, handle, {direction, row, unit});
    });
  };
  start(initialH, h);
  if (cell == Cell::lstm)
    start(initialC, c);
  auto output = [&](Value time, Value unit) {
    return batchFirst ? SmallVector<Value>{row, time, direction, unit} : SmallVector<Value>{time, direction, row, unit};
  };
  p.loop(length, [&](Value t) {
    Value time = backwards ? p.sub(p.sub(length, p.index(1)), t) : t;
    step(p, row, direction, backwards && directions == 2 ? functions.size() / 2 : 0, time);
    p.loop(units, [&](Value unit) {
      Value value = p.load(next, {direction, row, unit});
      p.store(value, h, {direction, row, unit});
      p.store(value, y, output(time, unit));
    });
  });
  p.loop(p.sub(all, length), [&](Value t) {
    p.loop(units, [&](Value unit) { p.store(p.number(type, 0), y, output(p.add(length, t), unit)); });
  });
}

LogicalResult Recurrence::raise() {
  if (failed(read()))
    return failure();
  project();
  int64_t element = x->elementType;
  SmallVector<Size> scratch = {directions, batch, hidden};
  SmallVector<Raiser::Output> outputs = {
      {element, batchFirst ? SmallVector<Size>{batch, steps, directions, hidden} : SmallVector<Size>{steps, directions, batch, hidden}},
      {element, scratch},
      {element, scratch}};
  if (cell != Cell::rnn)
    outputs.push_back({element, scratch}); // c, or r∘h
  std::vector<Known> results =
      raiser.computed(outputs, batch * Size(directions), [&](OpBuilder &b, Value number, ValueRange handles) {
    Program p(b, node.getLoc());
    y = handles[0];
    h = handles[1];
    next = handles[2];
    c = reset = cell == Cell::rnn ? Value() : handles[3];
    SmallVector<Value> place = p.split(number, {directions, batch});
    if (directions == 1) {
      item(p, place[1], p.index(0), backwardOnly);
      return;
    }
    Value isForward = p.equal(place[0], p.index(0));
    p.when(isForward, [&] { item(p, place[1], p.index(0), false); });
    p.when(p.negate(isForward), [&] { item(p, place[1], p.index(1), true); });
  });
  auto stateOutput = [&](unsigned position, Known &from) {
    if (node.getOutputs().size() <= position)
      return;
    if (!batchFirst) {
      raiser.set(node, from, position);
      return;
    }
    raiser.set(node, raiser.generated(element, {batch, directions, hidden}, [&](OpBuilder &b, ValueRange at) {
      return raiser.element(b, from, {at[1], at[0], at[2]});
    }), position);
  };
  raiser.set(node, results[0]);
  stateOutput(1, results[1]);
  if (cell == Cell::lstm)
    stateOutput(2, results[3]);
  return success();
}

} // namespace

void raise::registerRecurrent(Registry &registry) {
  auto add = [&](StringRef name, Cell cell, unsigned most) {
    registry.add(name, [cell](Raiser &raiser, onnx::NodeOp node) { return Recurrence(raiser, node, cell).raise(); }, 3, most);
  };
  add("RNN", Cell::rnn, 6);
  add("GRU", Cell::gru, 6);
  add("LSTM", Cell::lstm, 8);
}
