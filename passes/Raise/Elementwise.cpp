// SPDX-License-Identifier: Apache-2.0
//
// Operators from elements to an element: arithmetic, comparisons, logic, casts. Each is a few lines of a table; the
// broadcast is the same for all. Where every input's contents are known, so are the output's.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

using Scalar = std::function<Value(OpBuilder &, Location, ArrayRef<Value>)>;
using FoldReal = std::function<double(ArrayRef<double>)>;
/// Nothing where the answer depends on the symbols in a way that no polynomial says.
using FoldSize = std::function<std::optional<Size>(ArrayRef<Size>)>;

/// How one operator computes. A missing function means that the operator refuses such elements.
struct Elementwise {
  Scalar real, integer;
  FoldReal foldReal;
  FoldSize foldSize;
  bool toBool = false;
  bool unsignedToo = true; // whether the integer form is right for unsigned elements
};

constexpr size_t kFoldLimit = 64; // elements; contents are for shapes and scalars, not for data

/// Symbols stand for sizes, so they are not negative. Then a polynomial without negative coefficients and with a
/// positive constant is not zero.
std::optional<bool> isZero(const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return *constant == 0;
  auto positive = [](const Size &s) {
    for (auto &[monomial, coefficient] : s.terms())
      if (coefficient < 0)
        return false;
    auto constant = s.terms().find({});
    return constant != s.terms().end() && constant->second > 0;
  };
  if (positive(size) || positive(Size(0) - size))
    return false;
  return std::nullopt;
}

/// The position in a tensor of `sizes` that broadcasts into position `linear` of `result`.
size_t broadcastPosition(ArrayRef<Size> sizes, ArrayRef<Size> result, size_t linear) {
  size_t position = 0, stride = 1;
  for (size_t i = 0; i != result.size(); ++i) {
    int64_t extent = *result[result.size() - 1 - i].constant();
    size_t index = linear % extent;
    linear /= extent;
    if (i < sizes.size() && sizes[sizes.size() - 1 - i] != Size(1)) {
      position += index * stride;
      stride *= extent;
    }
  }
  return position;
}

/// The number of elements where contents may be computed.
std::optional<size_t> foldable(ArrayRef<Size> sizes) {
  std::optional<int64_t> count = elementCount(sizes).constant();
  if (!count || *count < 0 || *count > int64_t(kFoldLimit))
    return std::nullopt;
  return *count;
}

bool foldContents(const Elementwise &op, ArrayRef<Known *> inputs, Known &result) {
  std::optional<size_t> count = foldable(result.sizes);
  if (!count)
    return false;
  bool reals = op.foldReal && llvm::all_of(inputs, [](Known *k) { return k->reals.has_value(); });
  bool integers =
      op.foldSize && llvm::all_of(inputs, [](Known *k) { return k->integers.has_value(); });
  if (reals && !op.toBool) {
    SmallVector<double> contents;
    for (size_t i = 0; i != *count; ++i) {
      SmallVector<double> operands;
      for (Known *input : inputs)
        operands.push_back((*input->reals)[broadcastPosition(input->sizes, result.sizes, i)]);
      contents.push_back(float(op.foldReal(operands))); // as the model computes: in single precision
    }
    result.reals = contents;
    return true;
  }
  if (!integers)
    return false;
  SmallVector<Size> contents;
  for (size_t i = 0; i != *count; ++i) {
    SmallVector<Size> operands;
    for (Known *input : inputs)
      operands.push_back((*input->integers)[broadcastPosition(input->sizes, result.sizes, i)]);
    std::optional<Size> value = op.foldSize(operands);
    if (!value)
      return false;
    contents.push_back(*value);
  }
  result.integers = contents;
  return true;
}

LogicalResult raiseElementwise(Raiser &raiser, onnx::NodeOp node, const Elementwise &op) {
  SmallVector<Known *> inputs;
  SmallVector<Size> sizes;
  for (Value operand : node.getInputs()) {
    if (operand.getDefiningOp<onnx::NoneOp>())
      return raiser.fail(node, "an input is missing");
    Known &input = raiser.known(operand);
    std::optional<SmallVector<Size>> merged = raiser.broadcast(sizes, input.sizes);
    if (!merged)
      return raiser.fail(node, "sizes do not broadcast (check the model's shapes)");
    sizes = *merged;
    inputs.push_back(&input);
  }
  Known result;
  result.sizes = sizes;
  result.elementType = op.toBool ? int64_t(Element::Bool) : inputs.back()->elementType;
  if (foldContents(op, inputs, result)) {
    raiser.set(node, std::move(result));
    return success();
  }
  Type type = raiser.internalType(inputs.back()->elementType);
  const Scalar &scalar = isa<FloatType>(type) ? op.real : op.integer;
  if (!scalar || (!op.unsignedToo && raiser.isUnsigned(inputs.back()->elementType)))
    return raiser.fail(node, "elements of type " +
                                 onnx::elementTypeName(inputs.back()->elementType) +
                                 " are not supported");
  raiser.set(node, raiser.generated(result.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    SmallVector<Value> operands;
    for (Known *input : inputs)
      operands.push_back(raiser.element(b, *input, indices));
    return scalar(b, node.getLoc(), operands);
  }));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Expressions
//===------------------------------------------------------------------------------------------===//

template <typename Op> Scalar op() {
  return [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return Op::create(b, l, v[0].getType(), ValueRange(v));
  };
}

Value constant(OpBuilder &b, Location l, Type type, double value) {
  TypedAttr attribute = isa<FloatType>(type) ? TypedAttr(b.getFloatAttr(type, value))
                                             : TypedAttr(b.getIntegerAttr(type, int64_t(value)));
  return arith::ConstantOp::create(b, l, attribute);
}

Scalar compare(arith::CmpFPredicate predicate) {
  return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::CmpFOp::create(b, l, predicate, v[0], v[1]);
  };
}

Scalar compare(arith::CmpIPredicate predicate) {
  return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::CmpIOp::create(b, l, predicate, v[0], v[1]);
  };
}

Value sigmoid(OpBuilder &b, Location l, Value x) {
  Value one = constant(b, l, x.getType(), 1);
  Value e = math::ExpOp::create(b, l, arith::NegFOp::create(b, l, x));
  return arith::DivFOp::create(b, l, one, arith::AddFOp::create(b, l, one, e));
}

FoldSize foldCompare(std::function<bool(int64_t, int64_t)> holds) {
  return [=](ArrayRef<Size> v) -> std::optional<Size> {
    if (!v[0].isConstant() || !v[1].isConstant())
      return std::nullopt;
    return Size(holds(*v[0].constant(), *v[1].constant()));
  };
}

LogicalResult raiseCast(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t to = node.intOr("to", 0);
  Type from = raiser.internalType(input.elementType), type = raiser.internalType(to);
  if (!type)
    return raiser.fail(node, "a cast to " + onnx::elementTypeName(to) + " is not supported");
  Known result = input;
  result.elementType = to;
  bool contentsFit = isa<FloatType>(type) == isa<FloatType>(from) && !(to == Element::Bool);
  if (from == type || ((input.integers || input.reals) && contentsFit)) {
    if (from != type)
      result.tensor = nullptr;
    raiser.set(node, std::move(result));
    return success();
  }
  if (input.integers && isa<FloatType>(type) &&
      llvm::all_of(*input.integers, [](const Size &s) { return s.isConstant(); })) {
    result.reals.emplace();
    for (const Size &size : *input.integers)
      result.reals->push_back(float(*size.constant()));
    result.integers.reset();
    result.tensor = nullptr;
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(to, input.sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Location l = node.getLoc();
    Value x = raiser.element(b, input, indices);
    bool isUnsigned = raiser.isUnsigned(input.elementType) || input.elementType == Element::Bool;
    unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = type.getIntOrFloatBitWidth();
    if (to == Element::Bool) {
      Value zero = constant(b, l, from, 0);
      if (isa<FloatType>(from))
        return arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNE, x, zero);
      return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, x, zero);
    }
    if (isa<FloatType>(from) && isa<FloatType>(type))
      return fromBits < toBits ? arith::ExtFOp::create(b, l, type, x).getResult()
                               : arith::TruncFOp::create(b, l, type, x).getResult();
    if (isa<FloatType>(from))
      return raiser.isUnsigned(to) ? arith::FPToUIOp::create(b, l, type, x).getResult()
                                   : arith::FPToSIOp::create(b, l, type, x).getResult();
    if (isa<FloatType>(type))
      return isUnsigned ? arith::UIToFPOp::create(b, l, type, x).getResult()
                        : arith::SIToFPOp::create(b, l, type, x).getResult();
    if (fromBits == toBits)
      return x;
    if (fromBits > toBits)
      return arith::TruncIOp::create(b, l, type, x);
    return isUnsigned ? arith::ExtUIOp::create(b, l, type, x).getResult()
                      : arith::ExtSIOp::create(b, l, type, x).getResult();
  }));
  return success();
}

LogicalResult raiseClip(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  if (!isa<FloatType>(raiser.internalType(input.elementType)))
    return raiser.fail(node, "only floats are supported");
  // Bounds are attributes before opset 11 and inputs since.
  raiser.set(node, raiser.generated(input.elementType, input.sizes, [&](OpBuilder &b, ValueRange at) {
    Location l = node.getLoc();
    Value x = raiser.element(b, input, at);
    auto bound = [&](unsigned position, StringRef name) -> Value {
      if (raiser.hasInput(node, position))
        return raiser.element(b, raiser.input(node, position), {});
      if (node.attribute(name))
        return constant(b, l, x.getType(), node.floatOr(name, 0));
      return {};
    };
    if (Value low = bound(1, "min"))
      x = arith::MaximumFOp::create(b, l, x, low);
    if (Value high = bound(2, "max"))
      x = arith::MinimumFOp::create(b, l, x, high);
    return x;
  }));
  return success();
}

std::optional<Size> divideSizes(ArrayRef<Size> v) {
  if (v[0].isConstant() && v[1].isConstant() && *v[1].constant() != 0)
    return Size(*v[0].constant() / *v[1].constant()); // ONNX truncates
  return v[0].divide(v[1]);
}

/// `arity` inputs, or any number from one on.
void add(Registry &registry, StringRef name, unsigned arity, Elementwise op,
         std::function<bool(Raiser &, onnx::NodeOp)> recognize = nullptr) {
  registry.add(name, [op = std::move(op), recognize](Raiser &raiser, onnx::NodeOp node) {
    if (recognize && recognize(raiser, node))
      return success();
    return raiseElementwise(raiser, node, op);
  }, arity == kAnyNumber ? 1 : arity, arity);
}

/// A binary operation over all operands.
template <typename Op> Scalar overAll() {
  return [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Value result = v[0];
    for (Value next : v.drop_front())
      result = Op::create(b, l, result, next);
    return result;
  };
}

/// Integer division that cannot trap: ONNX leaves x / 0 open, and we give x; the least integer over −1 wraps.
Value divide(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Type type = v[0].getType();
  auto is = [&](int64_t value) -> Value {
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, v[1], constant(b, l, type, value));
  };
  Value minusOne = is(-1), trap = arith::OrIOp::create(b, l, is(0), minusOne);
  Value divisor = arith::SelectOp::create(b, l, trap, constant(b, l, type, 1), v[1]);
  Value quotient = arith::DivSIOp::create(b, l, v[0], divisor);
  Value negated = arith::SubIOp::create(b, l, constant(b, l, type, 0), v[0]);
  return arith::SelectOp::create(b, l, minusOne, negated, quotient);
}

} // namespace

void raise::registerElementwise(Registry &registry) {
  add(registry, "Add", 2,
      {op<arith::AddFOp>(), op<arith::AddIOp>(), [](auto v) { return v[0] + v[1]; },
       [](auto v) { return v[0] + v[1]; }},
      [](Raiser &r, onnx::NodeOp n) { return recognizeRope(r, n) || recognizeBias(r, n); });
  add(registry, "Sub", 2,
      {op<arith::SubFOp>(), op<arith::SubIOp>(), [](auto v) { return v[0] - v[1]; },
       [](auto v) { return v[0] - v[1]; }});
  add(registry, "Mul", 2,
      {op<arith::MulFOp>(), op<arith::MulIOp>(), [](auto v) { return v[0] * v[1]; },
       [](auto v) { return v[0] * v[1]; }},
      [](Raiser &r, onnx::NodeOp n) {
        return recognizeRmsNorm(r, n) || recognizeScaledNorm(r, n) || recognizeGatedActivation(r, n);
      });
  add(registry, "Div", 2,
      {op<arith::DivFOp>(), divide, [](auto v) { return v[0] / v[1]; }, divideSizes, false, false},
      recognizeRmsNorm);
  add(registry, "Pow", 2, {[](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                          APFloat exponent(0.0f);
                          if (matchPattern(v[1], m_ConstantFloat(&exponent)) && exponent.isExactlyValue(2))
                            return arith::MulFOp::create(b, l, v[0], v[0]);
                          return math::PowFOp::create(b, l, v[0], v[1]);
                        },
                        nullptr, [](auto v) { return std::pow(v[0], v[1]); }, nullptr});
  add(registry, "Min", kAnyNumber, {overAll<arith::MinimumFOp>(), overAll<arith::MinSIOp>(), nullptr, nullptr, false, false});
  add(registry, "Max", kAnyNumber, {overAll<arith::MaximumFOp>(), overAll<arith::MaxSIOp>(), nullptr, nullptr, false, false});

  add(registry, "Neg", 1,
      {op<arith::NegFOp>(),
       [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
         return arith::SubIOp::create(b, l, constant(b, l, v[0].getType(), 0), v[0]);
       },
       [](auto v) { return -v[0]; }, [](auto v) { return Size(0) - v[0]; }});
  add(registry, "Sqrt", 1, {op<math::SqrtOp>(), nullptr, [](auto v) { return std::sqrt(v[0]); }, nullptr});
  add(registry, "Reciprocal", 1, {[](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                                 return arith::DivFOp::create(b, l, constant(b, l, v[0].getType(), 1), v[0]);
                               },
                               nullptr, [](auto v) { return 1 / v[0]; }, nullptr});
  add(registry, "Exp", 1, {op<math::ExpOp>(), nullptr, nullptr, nullptr});
  add(registry, "Log", 1, {op<math::LogOp>(), nullptr, nullptr, nullptr});
  add(registry, "Tanh", 1, {op<math::TanhOp>(), nullptr, nullptr, nullptr});
  add(registry, "Erf", 1, {op<math::ErfOp>(), nullptr, nullptr, nullptr});
  add(registry, "Sin", 1, {op<math::SinOp>(), nullptr, nullptr, nullptr});
  add(registry, "Cos", 1, {op<math::CosOp>(), nullptr, nullptr, nullptr});
  add(registry, "Abs", 1, {op<math::AbsFOp>(), op<math::AbsIOp>(), nullptr, nullptr});
  add(registry, "Floor", 1, {op<math::FloorOp>(), nullptr, nullptr, nullptr});
  add(registry, "Ceil", 1, {op<math::CeilOp>(), nullptr, nullptr, nullptr});
  add(registry, "Sigmoid", 1,
      {[](OpBuilder &b, Location l, ArrayRef<Value> v) { return sigmoid(b, l, v[0]); }, nullptr, nullptr, nullptr});
  add(registry, "Relu", 1, {[](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                           return arith::MaximumFOp::create(b, l, v[0], constant(b, l, v[0].getType(), 0));
                         },
                         nullptr, nullptr, nullptr});

  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  add(registry, "Equal", 2, {compare(F::OEQ), compare(I::eq), nullptr,
                          [](ArrayRef<Size> v) -> std::optional<Size> {
                            if (std::optional<bool> zero = isZero(v[0] - v[1]))
                              return Size(*zero);
                            return std::nullopt;
                          },
                          true});
  add(registry, "Less", 2, {compare(F::OLT), compare(I::slt), nullptr, foldCompare(std::less<>()), true, false});
  add(registry, "LessOrEqual", 2, {compare(F::OLE), compare(I::sle), nullptr, foldCompare(std::less_equal<>()), true, false});
  add(registry, "Greater", 2, {compare(F::OGT), compare(I::sgt), nullptr, foldCompare(std::greater<>()), true, false});
  add(registry, "GreaterOrEqual", 2,
      {compare(F::OGE), compare(I::sge), nullptr, foldCompare(std::greater_equal<>()), true, false});
  add(registry, "And", 2, {nullptr, op<arith::AndIOp>(), nullptr, nullptr, true});
  add(registry, "Or", 2, {nullptr, op<arith::OrIOp>(), nullptr, nullptr, true});
  add(registry, "Xor", 2, {nullptr, op<arith::XOrIOp>(), nullptr, nullptr, true});
  add(registry, "Not", 1, {nullptr,
                        [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                          return arith::XOrIOp::create(b, l, v[0], constant(b, l, v[0].getType(), 1));
                        },
                        nullptr, nullptr, true});
  add(registry, "IsNaN", 1, {[](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                            return arith::CmpFOp::create(b, l, F::UNO, v[0], v[0]);
                          },
                          nullptr, nullptr, nullptr, true});
  auto select = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    return arith::SelectOp::create(b, l, v[0], v[1], v[2]);
  };
  add(registry, "Where", 3, {select, select, nullptr, [](ArrayRef<Size> v) -> std::optional<Size> {
                            if (!v[0].isConstant())
                              return std::nullopt;
                            return *v[0].constant() ? v[1] : v[2];
                          }});
  registry.add("Cast", raiseCast, 1, 1);
  registry.add("Clip", raiseClip, 1, 3);
  registry.add("Identity", [](Raiser &raiser, onnx::NodeOp node) {
    raiser.set(node, Known(raiser.input(node, 0)));
    return success();
  }, 1, 1);
}
