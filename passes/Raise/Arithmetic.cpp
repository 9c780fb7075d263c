// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic and the functions of school mathematics, by element. Integers wrap; nothing traps.

#include "passes/Raise/Elementwise.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Numbers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

using F = arith::CmpFPredicate;
using I = arith::CmpIPredicate;

/// Integer arithmetic on one type at one place.
struct Integers {
  OpBuilder &b;
  Location l;
  Type type;
  Value number(int64_t value) const { return raise::number(b, l, type, double(value)); }
  Value is(I predicate, Value x, int64_t y) const { return arith::CmpIOp::create(b, l, predicate, x, number(y)); }
  Value select(Value condition, Value yes, Value no) const {
    return arith::SelectOp::create(b, l, condition, yes, no);
  }
  /// A divisor that cannot trap: 1 in place of 0, and of −1, over which the least integer overflows.
  Value divisor(Value y, bool isSigned) const {
    Value zero = is(I::eq, y, 0);
    return select(isSigned ? arith::OrIOp::create(b, l, zero, is(I::eq, y, -1)).getResult() : zero, number(1), y);
  }
  Value negative(Value x) const { return arith::SubIOp::create(b, l, number(0), x); }
};

//===-- division ------------------------------------------------------------------------------===//

/// ONNX truncates, leaves x / 0 open, for which we give x, and the least integer over −1 wraps.
Value divide(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Integers i{b, l, v[0].getType()};
  Value quotient = arith::DivSIOp::create(b, l, v[0], i.divisor(v[1], true));
  return i.select(i.is(I::eq, v[1], -1), i.negative(v[0]), quotient);
}

Value divideNatural(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Integers i{b, l, v[0].getType()};
  return arith::DivUIOp::create(b, l, v[0], i.divisor(v[1], false));
}

std::optional<Size> divideSizes(ArrayRef<Size> v) {
  std::optional<int64_t> x = v[0].constant(), y = v[1].constant();
  if (x && y) {
    if (*y == 0 || (*y == -1 && *x == INT64_MIN))
      return std::nullopt;
    return Size(*x / *y);
  }
  return v[0].divide(v[1]);
}

/// x mod 0 is open in ONNX and 0 here, as in numpy.
Elementwise modulo(onnx::NodeOp node) {
  bool truncates = node.intOr("fmod", 0) != 0;
  Elementwise op;
  op.real = [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Formula f{b, l, v[0].getType()};
    Value rest = arith::RemFOp::create(b, l, v[0], v[1]), zero = f.number(0);
    if (truncates)
      return rest;
    // The sign is the divisor's, that of zero too.
    Value differs = arith::XOrIOp::create(b, l, f.less(rest, zero), f.less(v[1], zero));
    Value isZero = arith::CmpFOp::create(b, l, F::OEQ, rest, zero);
    Value signedZero = math::CopySignOp::create(b, l, zero, v[1]);
    return f.select(isZero, signedZero, f.select(differs, f.add(rest, v[1]), rest));
  };
  op.integer = [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Integers i{b, l, v[0].getType()};
    Value rest = arith::RemSIOp::create(b, l, v[0], i.divisor(v[1], true));
    if (truncates)
      return rest;
    Value differs = arith::XOrIOp::create(b, l, i.is(I::slt, rest, 0), i.is(I::slt, v[1], 0));
    Value adjust = arith::AndIOp::create(b, l, differs, i.is(I::ne, rest, 0));
    return i.select(adjust, arith::AddIOp::create(b, l, rest, v[1]), rest);
  };
  op.natural = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
    Integers i{b, l, v[0].getType()};
    return arith::RemUIOp::create(b, l, v[0], i.divisor(v[1], false));
  };
  op.foldSize = [=](ArrayRef<Size> v) -> std::optional<Size> {
    std::optional<int64_t> x = v[0].constant(), y = v[1].constant();
    if (!x || !y || *y == 0)
      return v[1] != Size(0) && v[0].divide(v[1]) ? std::optional<Size>(Size(0)) : std::nullopt;
    int64_t rest = *y == -1 ? 0 : *x % *y;
    return Size(!truncates && rest != 0 && (rest < 0) != (*y < 0) ? rest + *y : rest);
  };
  return op;
}

//===-- powers --------------------------------------------------------------------------------===//

/// x^n by squaring, in n's 63 bits; 1 / x^|n| truncated where n is negative.
Value integerPower(OpBuilder &b, Location l, Value x, Value n, bool signedExponent) {
  Integers i{b, l, x.getType()}, e{b, l, n.getType()};
  auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(b, l, value).getResult(); };
  Value magnitude = n;
  if (signedExponent)
    magnitude = e.select(e.is(I::slt, n, 0), e.negative(n), n);
  auto loop = scf::ForOp::create(
      b, l, index(0), index(n.getType().getIntOrFloatBitWidth()), index(1), ValueRange{i.number(1), x, magnitude},
      [&](OpBuilder &inner, Location at, Value, ValueRange carried) {
        Integers in{inner, at, x.getType()}, exponent{inner, at, n.getType()};
        Value bit = arith::AndIOp::create(inner, at, carried[2], exponent.number(1));
        Value times = arith::MulIOp::create(inner, at, carried[0], carried[1]);
        Value product = in.select(exponent.is(I::ne, bit, 0), times, carried[0]);
        Value square = arith::MulIOp::create(inner, at, carried[1], carried[1]);
        Value rest = arith::ShRUIOp::create(inner, at, carried[2], exponent.number(1));
        scf::YieldOp::create(inner, at, ValueRange{product, square, rest});
      });
  Value power = loop.getResult(0);
  if (!signedExponent)
    return power;
  // ±1 is its own reciprocal; of others nothing is left.
  Value isOne = arith::OrIOp::create(b, l, i.is(I::eq, x, 1), i.is(I::eq, x, -1));
  return i.select(e.is(I::slt, n, 0), i.select(isOne, power, i.number(0)), power);
}

Value realPower(OpBuilder &b, Location l, Value x, Value n) {
  APFloat exponent(0.0f);
  if (matchPattern(n, m_ConstantFloat(&exponent)) && exponent.isExactlyValue(2))
    return arith::MulFOp::create(b, l, x, x);
  return math::PowFOp::create(b, l, x, n);
}

/// The exponent may have a type of its own, and the result has the base's.
LogicalResult raisePow(Raiser &raiser, onnx::NodeOp node) {
  Known &base = raiser.input(node, 0), &exponent = raiser.input(node, 1);
  int64_t from = base.elementType, other = exponent.elementType;
  if (isCoded(from) || isCoded(other) || from == Element::Bool || other == Element::Bool ||
      onnx::elementBits(from) < 8 || onnx::elementBits(other) < 8)
    return raiser.fail(node, "elements of type " + onnx::elementTypeName(from) + " and " +
                                 onnx::elementTypeName(other) + " are not supported (cast them to floats)");
  Type type = raiser.internalType(from), otherType = raiser.internalType(other);
  if (isa<FloatType>(type) && isa<FloatType>(otherType) && type == otherType) {
    Elementwise op;
    op.real = [](OpBuilder &b, Location l, ArrayRef<Value> v) { return realPower(b, l, v[0], v[1]); };
    op.foldReal = [](ArrayRef<double> v) { return std::pow(v[0], v[1]); };
    return raiseElementwise(raiser, node, op);
  }
  FailureOr<SmallVector<Size>> sizes = broadcastOrCheck(raiser, node, base.sizes, exponent.sizes);
  if (failed(sizes))
    return failure();
  raiser.set(node, raiser.generated(from, *sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Location l = node.getLoc();
    Value x = raiser.element(b, base, at), n = raiser.element(b, exponent, at);
    if (!isa<FloatType>(type) && !isa<FloatType>(otherType))
      return integerPower(b, l, x, n, !raiser.isUnsigned(other));
    // Of floats in the base's type, of an integer to a float in f64.
    bool real = isa<FloatType>(type);
    int64_t in = real ? from : int64_t(Element::Double);
    Type inType = raiser.internalType(in);
    Value power = realPower(b, l, castElement(b, l, x, from, in, inType), castElement(b, l, n, other, in, inType));
    return castElement(b, l, power, in, from, type);
  }));
  return success();
}

//===-- bounds --------------------------------------------------------------------------------===//

LogicalResult raiseClip(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  // Bounds are attributes before opset 11, of floats only, and inputs since. Both at once: the upper one wins.
  SmallVector<Known *> inputs;
  Known low, high;
  bool hasLow = false, hasHigh = false;
  for (auto [position, name, bound, has] : {std::tuple(1u, "min", &low, &hasLow), std::tuple(2u, "max", &high, &hasHigh)}) {
    if (raiser.hasInput(node, position)) {
      if (elementCount(raiser.input(node, position).sizes) != Size(1))
        return raiser.fail(node, Twine(name) + " must be a scalar");
      *bound = raiser.reshaped(raiser.input(node, position), {});
      inputs.push_back(bound);
    } else if (node.attribute(name)) {
      if (!isa<FloatType>(raiser.internalType(input.elementType)))
        return raiser.fail(node, "its bounds are floats, and its elements of type " +
                                     onnx::elementTypeName(input.elementType));
      bound->elementType = input.elementType;
      bound->reals = {node.floatOr(name, 0)};
      inputs.push_back(bound);
    } else {
      continue;
    }
    *has = true;
  }
  inputs.push_back(&input);
  auto clip = [&]<typename Larger, typename Smaller>(Larger larger, Smaller smaller) -> Scalar {
    return [=](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
      Value x = v.back();
      if (hasLow)
        x = larger(b, l, ArrayRef<Value>{x, v[0]});
      if (hasHigh)
        x = smaller(b, l, ArrayRef<Value>{x, v[hasLow]});
      return x;
    };
  };
  Elementwise op;
  op.real = clip(overAll<arith::MaximumFOp>(), overAll<arith::MinimumFOp>());
  op.integer = clip(overAll<arith::MaxSIOp>(), overAll<arith::MinSIOp>());
  op.natural = clip(overAll<arith::MaxUIOp>(), overAll<arith::MinUIOp>());
  op.foldSize = [=](ArrayRef<Size> v) -> std::optional<Size> {
    for (const Size &size : v)
      if (!size.isConstant())
        return std::nullopt;
    int64_t x = *v.back().constant();
    x = hasLow ? std::max(x, *v[0].constant()) : x;
    return Size(hasHigh ? std::min(x, *v[hasLow].constant()) : x);
  };
  if (!raiser.isUnsigned(input.elementType) || onnx::elementBits(input.elementType) < 64)
    return raiseElementwise(raiser, node, inputs, op);
  op.foldSize = nullptr; // Size has no 64 bits without a sign
  return raiseElementwise(raiser, node, inputs, op);
}

/// The largest or the least of constants; sizes by name have no order.
FoldSize foldExtremum(bool largest) {
  return [=](ArrayRef<Size> v) -> std::optional<Size> {
    std::optional<int64_t> best;
    for (const Size &size : v) {
      std::optional<int64_t> next = size.constant();
      if (!next)
        return v.size() == 1 ? std::optional<Size>(size) : std::nullopt;
      best = !best ? *next : largest ? std::max(*best, *next) : std::min(*best, *next);
    }
    return Size(*best);
  };
}

//===-- functions of one number ---------------------------------------------------------------===//

template <typename Op> void addFunction(Registry &registry, StringRef name, double (*fold)(double), int64_t since = 7) {
  Elementwise op;
  op.real = scalarOp<Op>();
  if (fold)
    op.foldReal = [fold](ArrayRef<double> v) { return fold(v[0]); };
  addElementwise(registry, name, 1, std::move(op), nullptr, since);
}

Value absolute(OpBuilder &b, Location l, ArrayRef<Value> v) { return math::AbsIOp::create(b, l, v[0]); }
Value same(OpBuilder &, Location, ArrayRef<Value> v) { return v[0]; }

Value signOfReal(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Formula f{b, l, v[0].getType()};
  Value zero = f.number(0); // and NaN stays as it is
  return f.select(f.less(zero, v[0]), f.number(1), f.select(f.less(v[0], zero), f.number(-1), v[0]));
}
Value signOfInteger(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Integers i{b, l, v[0].getType()};
  return i.select(i.is(I::sgt, v[0], 0), i.number(1), i.select(i.is(I::slt, v[0], 0), i.number(-1), i.number(0)));
}
Value signOfNatural(OpBuilder &b, Location l, ArrayRef<Value> v) {
  Integers i{b, l, v[0].getType()};
  return i.select(i.is(I::ne, v[0], 0), i.number(1), i.number(0));
}

} // namespace

void raise::registerArithmetic(Registry &registry) {
  auto sum = [](auto v) { return v[0] + v[1]; };
  auto difference = [](auto v) { return v[0] - v[1]; };
  auto product = [](auto v) { return v[0] * v[1]; };
  addElementwise(registry, "Add", 2,
                 Elementwise{.real = scalarOp<arith::AddFOp>(), .foldReal = sum, .foldSize = sum}.integers(
                     scalarOp<arith::AddIOp>()),
                 [](Raiser &r, onnx::NodeOp n) { return recognizeRope(r, n) || recognizeBias(r, n); });
  addElementwise(registry, "Sub", 2,
                 Elementwise{.real = scalarOp<arith::SubFOp>(), .foldReal = difference, .foldSize = difference}.integers(
                     scalarOp<arith::SubIOp>()));
  addElementwise(registry, "Mul", 2,
                 Elementwise{.real = scalarOp<arith::MulFOp>(), .foldReal = product, .foldSize = product}.integers(
                     scalarOp<arith::MulIOp>()),
                 [](Raiser &r, onnx::NodeOp n) {
                   return recognizeRmsNorm(r, n) || recognizeScaledNorm(r, n) || recognizeGatedActivation(r, n) ||
                          recognizeIntegerProduct(r, n) || recognizeScaledCodes(r, n);
                 });
  addElementwise(registry, "Div", 2,
                 {.real = scalarOp<arith::DivFOp>(),
                  .integer = divide,
                  .natural = divideNatural,
                  .foldReal = [](auto v) { return v[0] / v[1]; },
                  .foldSize = divideSizes},
                 recognizeRmsNorm);
  addElementwise(registry, "Mod", 2, modulo, 10);
  registry.add("Pow", raisePow, 2, 2);
  registry.add("Clip", raiseClip, 1, 3);

  addElementwise(registry, "Min", kAnyNumber,
                 {.real = overAll<arith::MinimumFOp>(),
                  .integer = overAll<arith::MinSIOp>(),
                  .natural = overAll<arith::MinUIOp>(),
                  .foldSize = foldExtremum(false)});
  addElementwise(registry, "Max", kAnyNumber,
                 {.real = overAll<arith::MaximumFOp>(),
                  .integer = overAll<arith::MaxSIOp>(),
                  .natural = overAll<arith::MaxUIOp>(),
                  .foldSize = foldExtremum(true)});
  addElementwise(registry, "Sum", kAnyNumber, Elementwise{.real = overAll<arith::AddFOp>()});
  addElementwise(registry, "Mean", kAnyNumber,
                 Elementwise{.real = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                   Formula f{b, l, v[0].getType()};
                   return f.div(overAll<arith::AddFOp>()(b, l, v), f.number(double(v.size())));
                 }});

  auto negate = [](auto v) { return decltype(v[0] + v[0])(0) - v[0]; };
  addElementwise(registry, "Neg", 1,
                 {.real = scalarOp<arith::NegFOp>(),
                  .integer = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                    return Integers{b, l, v[0].getType()}.negative(v[0]);
                  },
                  .foldReal = [](ArrayRef<double> v) { return -v[0]; },
                  .foldSize = negate});
  addElementwise(registry, "Abs", 1,
                 {.real = scalarOp<math::AbsFOp>(), .integer = absolute, .natural = same,
                  .foldReal = [](ArrayRef<double> v) { return std::fabs(v[0]); }});
  addElementwise(registry, "Sign", 1,
                 {.real = signOfReal, .integer = signOfInteger, .natural = signOfNatural}, nullptr, 9);
  addElementwise(registry, "Reciprocal", 1,
                 Elementwise{.real = [](OpBuilder &b, Location l, ArrayRef<Value> v) -> Value {
                               Formula f{b, l, v[0].getType()};
                               return f.div(f.number(1), v[0]);
                             },
                             .foldReal = [](ArrayRef<double> v) { return 1 / v[0]; }});

  addFunction<math::SqrtOp>(registry, "Sqrt", std::sqrt);
  addFunction<math::ExpOp>(registry, "Exp", nullptr);
  addFunction<math::LogOp>(registry, "Log", nullptr);
  addFunction<math::ErfOp>(registry, "Erf", nullptr, 9);
  addFunction<math::FloorOp>(registry, "Floor", std::floor);
  addFunction<math::CeilOp>(registry, "Ceil", std::ceil);
  addFunction<math::RoundEvenOp>(registry, "Round", std::nearbyint, 11);
  addFunction<math::SinOp>(registry, "Sin", nullptr);
  addFunction<math::CosOp>(registry, "Cos", nullptr);
  addFunction<math::TanOp>(registry, "Tan", nullptr);
  addFunction<math::AsinOp>(registry, "Asin", nullptr);
  addFunction<math::AcosOp>(registry, "Acos", nullptr);
  addFunction<math::AtanOp>(registry, "Atan", nullptr);
  addFunction<math::SinhOp>(registry, "Sinh", nullptr, 9);
  addFunction<math::CoshOp>(registry, "Cosh", nullptr, 9);
  addFunction<math::TanhOp>(registry, "Tanh", nullptr);
  addFunction<math::AsinhOp>(registry, "Asinh", nullptr, 9);
  addFunction<math::AcoshOp>(registry, "Acosh", nullptr, 9);
  addFunction<math::AtanhOp>(registry, "Atanh", nullptr, 9);
}
