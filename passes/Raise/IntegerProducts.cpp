// SPDX-License-Identifier: Apache-2.0
//
// A file may say the product of two quantized tensors as DequantizeLinear before a float operator (QDQ), as an operator on codes
// (QLinearMatMul, QLinearConv, QGemm, QAttention), or as a sum of integers that is scaled afterwards (DynamicQuantizeLinear and
// MatMulInteger). Where the weight is constant, the last two are said here as the first; and a float product of a
// dequantized activation with a given weight is an otf.linear of otf.on_grid, which runs on the integer kernels.

#include "passes/Raise/Terms.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

//===------------------------------------------------------------------------------------------===//
// What is known of activations
//===------------------------------------------------------------------------------------------===//

/// Two operands that are the same number, or the same value.
static bool same(Raiser &raiser, Value a, Value b) {
  if (!a || !b)
    return (!a && !b) || raiser.scalar(a ? a : b) == 0.0;
  if (raiser.source(a) == raiser.source(b))
    return true;
  std::optional<double> x = raiser.scalar(a), y = raiser.scalar(b);
  return x && y && *x == *y;
}

/// [scale, zero] in units of signed codes.
static Value gridOf(Raiser &raiser, Known &scale, Known *zero, bool isUnsigned) {
  int64_t shift = isUnsigned ? 128 : 0;
  Known grid;
  grid.elementType = Element::Float;
  grid.sizes = {Size(2)};
  bool constant = scale.reals && (!zero || (zero->integers && zero->integers->front().isConstant()));
  if (constant) {
    double point = zero ? double(*zero->integers->front().constant()) : 0;
    grid.reals = SmallVector<double>{scale.reals->front(), point - double(shift)};
    return raiser.tensor(grid);
  }
  Location l = *raiser.currentLocation;
  return raiser.generate(raiser.builder.getF32Type(), grid.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Value none = arith::ConstantIndexOp::create(b, l, 0);
    auto only = [&](Known &what) { return raiser.element(b, what, SmallVector<Value>(what.rank(), none)); };
    Value point = arith::ConstantOp::create(b, l, b.getF32FloatAttr(0));
    if (zero)
      point = toFloat(b, l, b.getF32Type(), only(*zero), zero->elementType);
    point = arith::SubFOp::create(b, l, point, arith::ConstantOp::create(b, l, b.getF32FloatAttr(float(shift))));
    Value isFirst = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, at[0], none);
    return arith::SelectOp::create(b, l, isFirst, only(scale), point);
  });
}

std::optional<OnGrid> raise::onGrid(Raiser &raiser, onnx::NodeOp node, const Known &result) {
  Known &codes = raiser.input(node, 0);
  bool isUnsigned = codes.elementType == Element::UInt8;
  Known &scale = raiser.input(node, 1);
  if ((!isUnsigned && codes.elementType != Element::Int8) || !raiser.isFloat(result.elementType) || codes.constant ||
      codes.integers || !raiser.isFloat(scale.elementType))
    return std::nullopt;
  OnGrid on;
  on.of = result.tensor;
  on.grid = gridOf(raiser, scale, raiser.hasInput(node, 2) ? &raiser.input(node, 2) : nullptr, isUnsigned);
  if (codes.codesOf && codes.codesOf->of == codes.tensor && same(raiser, codes.codesOf->scale, node.getInputs()[1]) &&
      same(raiser, codes.codesOf->zero, node.inputOrNull(2)))
    on.source = codes.codesOf->source;
  return on;
}

Activations raise::activationsOf(Raiser &raiser, Known &x, const Known &weight) {
  if (!weight.given || !x.onGrid || !x.tensor || x.onGrid->of != x.tensor)
    return {&x, {}};
  Known *source = x.onGrid->source ? &raiser.known(x.onGrid->source) : &x;
  if (source->sizes != x.sizes || !raiser.isFloat(source->elementType))
    source = &x;
  return {source, x.onGrid->grid};
}

Value raise::roundedTo(Raiser &raiser, Value x, Value grid) {
  return grid ? OnGridOp::create(raiser.builder, *raiser.currentLocation, x.getType(), x, grid).getResult() : x;
}

//===------------------------------------------------------------------------------------------===//
// Integers, then scales
//===------------------------------------------------------------------------------------------===//

/// The operator whose sum of integers `value` is, as floats.
static onnx::NodeOp integerSum(Raiser &raiser, Value value) {
  auto cast = value.getDefiningOp<onnx::NodeOp>();
  if (!cast || !cast.is("Cast") || !raiser.isFloat(cast.intOr("to", 0)))
    return {};
  auto sum = cast.getInputs()[0].getDefiningOp<onnx::NodeOp>();
  return sum && (sum.is("MatMulInteger") || sum.is("ConvInteger")) ? sum : onnx::NodeOp();
}

/// The factors of a product, looking through products.
static SmallVector<Value> factorsOf(onnx::NodeOp mul) {
  SmallVector<Value> factors, open(mul.getInputs());
  while (!open.empty() && factors.size() < 8) {
    Value value = open.pop_back_val();
    auto inner = value.getDefiningOp<onnx::NodeOp>();
    if (inner && inner.is("Mul") && inner.getDomain().empty())
      open.append(inner.getInputs().begin(), inner.getInputs().end());
    else
      factors.push_back(value);
  }
  return factors;
}

bool raise::recognizeIntegerProduct(Raiser &raiser, onnx::NodeOp mul) {
  SmallVector<Value> factors = factorsOf(mul);
  auto found = llvm::find_if(factors, [&](Value v) { return bool(integerSum(raiser, v)); });
  if (found == factors.end() || factors.size() != 3)
    return false;
  onnx::NodeOp sum = integerSum(raiser, *found);
  factors.erase(found);
  Known &x = raiser.input(sum, 0), &w = raiser.input(sum, 1);
  bool isConv = sum.is("ConvInteger");
  if (!isGivenWeight(w) || (isConv ? w.rank() < 3 || sum.intOr("group", 1) != 1 : w.rank() != 2) || x.rank() == 0)
    return false;
  // One factor is the activation's scale and one the weight's: a number, or one a column.
  auto isNumber = [&](Value v) { return elementCount(raiser.known(v).sizes) == Size(1) && raiser.known(v).rank() <= x.rank(); };
  auto isScale = [&](Value v) {
    Known &what = raiser.known(v);
    return (what.reals || what.constant) &&
           (isNumber(v) ? what.rank() <= 1 : !isConv && what.rank() == 1 && what.sizes[0] == w.sizes[1]);
  };
  bool first = x.codesOf && x.codesOf->of == x.tensor && x.codesOf->scale == factors[1];
  if (first || !isScale(factors[1]) || !isNumber(factors[0]))
    std::swap(factors[0], factors[1]);
  if (!isNumber(factors[0]) || !isScale(factors[1]))
    return false;
  for (unsigned zero : {2u, 3u})
    if (raiser.hasInput(sum, zero)) {
      Known &point = raiser.input(sum, zero);
      bool one = elementCount(point.sizes) == Size(1);
      if (zero == 2 || isConv ? !one : !one && !(point.rank() == 1 && point.sizes[0] == w.sizes[1]))
        return false;
      // A zero point a column needs a scale a column.
      if (!one && isNumber(factors[1]))
        return false;
    }
  Terms t{raiser, mul};
  Value a = t.apply("DequantizeLinear", {sum.getInputs()[0], factors[0], sum.inputOrNull(2)});
  Value b = t.apply("DequantizeLinear", {sum.getInputs()[1], factors[1], sum.inputOrNull(3)}, {t.integer("axis", isConv ? 0 : 1)});
  if (t.failed || !raiser.known(b).given)
    return false;
  Value y = isConv ? t.apply("Conv", {a, b}, attributesBut(sum, {})) : t.apply("MatMul", {a, b});
  return succeeded(t.finish(y));
}

//===------------------------------------------------------------------------------------------===//
// Operators on codes
//===------------------------------------------------------------------------------------------===//

static bool isOne(const Known &what) { return elementCount(what.sizes) == Size(1); }

std::optional<LogicalResult> raise::raiseByGivenWeight(Raiser &raiser, onnx::NodeOp node, GivenOperands at, int64_t axis,
                               function_ref<LogicalResult(Terms &, Value a, Value b)> finish) {
  Known &w = raiser.input(node, at.weight);
  auto isVector = [&](const Known &what) {
    return isOne(what) ? what.rank() <= 1 : what.rank() == 1 && what.sizes[0] == w.sizes[axis];
  };
  if (!isGivenWeight(w) || !isOne(raiser.input(node, at.scale)) || !isVector(raiser.input(node, at.weightScale)))
    return std::nullopt;
  Known *zero = raiser.hasInput(node, at.zero) ? &raiser.input(node, at.zero) : nullptr,
        *weightZero = raiser.hasInput(node, at.weightZero) ? &raiser.input(node, at.weightZero) : nullptr;
  if ((zero && !isOne(*zero)) ||
      (weightZero && (!isVector(*weightZero) || (!isOne(*weightZero) && isOne(raiser.input(node, at.weightScale))))))
    return std::nullopt;
  Terms t{raiser, node};
  Value b = t.apply("DequantizeLinear", {t.in(at.weight), t.in(at.weightScale), t.in(at.weightZero)}, {t.integer("axis", axis)});
  if (t.failed)
    return failure();
  if (!raiser.known(b).given)
    return std::nullopt;
  Value a = t.apply("DequantizeLinear", {t.in(at.input), t.in(at.scale), t.in(at.zero)});
  return t.failed ? failure() : finish(t, a, b);
}

/// input, weight, bias, scale, weight's scale, mask, zero, weight's zero, past: Attention of what they stand for.
static LogicalResult raiseQAttention(Raiser &raiser, onnx::NodeOp node) {
  auto raised = raiseByGivenWeight(raiser, node, {0, 3, 6, 1, 4, 7}, 1, [&](Terms &t, Value a, Value b) -> LogicalResult {
    OpBuilder builder(node);
    SmallVector<Value> inputs{a, b, t.in(2), t.in(5) ? t.in(5) : t.none(), t.in(8) ? t.in(8) : t.none()};
    FailureOr<ValueRange> results = raiseAs(raiser, node, "com.microsoft::Attention", 1, inputs, attributesBut(node, {}),
                                            node.getOutputs().size());
    if (failed(results))
      return failure();
    for (auto [number, result] : llvm::enumerate(*results))
      if (Known what = raiser.known(result); what.elementType != 0)
        raiser.set(node, std::move(what), number);
    return success();
  });
  if (raised)
    return *raised;
  return raiser.fail(node, "expects a constant weight of 8-bit codes, a scale of one number for its input, and one number or one a "
                           "column for its weight");
}

void raise::registerIntegerProducts(Registry &registry) {
  registry.add("com.microsoft::QAttention", raiseQAttention, 5, 9, 1);
}
