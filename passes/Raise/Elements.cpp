// SPDX-License-Identifier: Apache-2.0
//
// A coded float is sign, exponent, fraction from the top of its 8 or 4 bits down. Put where a float has those fields it
// is the number times a power of two, subnormal numbers too; so decoding is a shift and a product. Encoding rounds
// normal numbers in the bits of the float, where a carry goes up into the exponent by itself, and subnormal ones as a
// multiple of their last place.

#include "passes/Raise/Elements.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// What the codes without their sign mean. `largest` is the greatest finite one; above it come `infinity`, if there is
/// one, and NaN. The fnuz types have one NaN, the code of −0, which they lack.
struct Format {
  int bits, fraction, bias;
  int largest, infinity, nan;
  bool hasNegativeZero;
};

Format formatOf(int64_t coded) {
  switch (coded) {
  case Element::Float8E4M3FN:
    return {8, 3, 7, 0x7e, 0x7f, 0x7f, true};
  case Element::Float8E4M3FNUZ:
    return {8, 3, 8, 0x7f, 0x80, 0x80, false};
  case Element::Float8E5M2:
    return {8, 2, 15, 0x7b, 0x7c, 0x7e, true};
  case Element::Float8E5M2FNUZ:
    return {8, 2, 16, 0x7f, 0x80, 0x80, false};
  default: // float4e2m1 has neither NaN, which becomes 0 as in ml_dtypes, nor infinity
    return {4, 1, 1, 7, 7, 0, true};
  }
}

/// Scalar arithmetic at one place.
struct Scalars {
  OpBuilder &b;
  Location l;

  Value number(Type type, double value) { return raise::number(b, l, type, value); }
  Value bits(Type type, uint64_t value) {
    return arith::ConstantOp::create(
        b, l, IntegerAttr::get(type, APInt(64, value).trunc(type.getIntOrFloatBitWidth())));
  }
  template <typename Op> Value op(Value x, Value y) { return Op::create(b, l, x, y); }
  Value is(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, l, predicate, x, y);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, l, condition, yes, no);
  }
  Value bitcast(Type type, Value x) { return arith::BitcastOp::create(b, l, type, x); }
};

using P = arith::CmpIPredicate;

/// float8e8m0 is an exponent, biased by 127, and NaN. What its rounding modes do with zero and with what is out of range
/// is the table of ONNX's Cast; the sign is unspecified there and ignored here.
Value encodeExponent(Scalars s, Value real, Rounding rounding) {
  Type i32 = s.b.getI32Type(), f32 = s.b.getF32Type();
  Value x = real.getType() == f32 ? real : arith::TruncFOp::create(s.b, s.l, f32, real).getResult();
  Value a = s.op<arith::AndIOp>(s.bitcast(i32, x), s.bits(i32, 0x7fffffff));
  bool up = rounding.mode == "up", down = rounding.mode == "down";
  // A fraction of ½ is a tie between two powers, and they go up as they do in ONNX's own code.
  Value carry = s.bits(i32, up ? 0x7fffff : down ? 0 : 0x400000);
  Value normal = s.op<arith::ShRUIOp>(s.op<arith::AddIOp>(a, carry), s.bits(i32, 23));
  // Subnormal floats are below 2^-126: codes 0, which is 2^-127, and 1.
  Value one = s.is(P::ugt, a, s.bits(i32, up ? 0x400000 : down ? 0x7fffff : 0x5fffff));
  Value small = arith::ExtUIOp::create(s.b, s.l, i32, one);
  Value code = s.select(s.is(P::ult, a, s.bits(i32, 0x800000)), small, normal);
  Value tooLarge = s.is(P::ugt, code, s.bits(i32, 0xfe));
  Value tooSmall = s.is(P::ult, a, s.bits(i32, 0x400000));
  Value nan = s.bits(i32, 0xff);
  if (rounding.saturate) {
    code = s.select(tooLarge, s.bits(i32, 0xfe), code);
    code = s.select(tooSmall, s.bits(i32, 0), code);
    code = s.select(s.is(P::ugt, a, s.bits(i32, 0x7f800000)), nan, code);
  } else {
    code = s.select(s.op<arith::OrIOp>(tooLarge, tooSmall), nan, code);
  }
  return arith::TruncIOp::create(s.b, s.l, s.b.getI8Type(), code);
}

} // namespace

bool raise::isCoded(int64_t type) {
  return (type >= Element::Float8E4M3FN && type <= Element::Float8E5M2FNUZ) || type == Element::Float8E8M0 ||
         type == Element::Float4E2M1;
}

bool raise::takesSmallElements(StringRef op) {
  static const llvm::StringSet<> names = {
      "BitCast", "Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace",
      "DequantizeLinear", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "If",
      "IsInf", "IsNaN", "Loop", "Pad", "QuantizeLinear", "Reshape", "ReverseSequence", "Scan", "Scatter",
      "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "TensorScatter",
      "Tile", "Transpose", "Unsqueeze", "Where"};
  return names.contains(op);
}

Value raise::number(OpBuilder &b, Location l, Type type, double value) {
  TypedAttr attribute = isa<FloatType>(type) ? TypedAttr(b.getFloatAttr(type, value))
                                             : TypedAttr(b.getIntegerAttr(type, int64_t(value)));
  return arith::ConstantOp::create(b, l, attribute);
}

Value raise::decodeElement(OpBuilder &b, Location l, Value byte, int64_t coded) {
  Scalars s{b, l};
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value code = arith::ExtUIOp::create(b, l, i32, byte);
  if (coded == Element::Float8E8M0) {
    // 2^-127 is subnormal, and 255 is NaN and not infinity: both have a fraction of ½.
    Value ends = s.op<arith::OrIOp>(s.is(P::eq, code, s.bits(i32, 0)), s.is(P::eq, code, s.bits(i32, 255)));
    Value fraction = s.select(ends, s.bits(i32, 0x400000), s.bits(i32, 0));
    return s.bitcast(f32, s.op<arith::OrIOp>(s.op<arith::ShLIOp>(code, s.bits(i32, 23)), fraction));
  }
  Format f = formatOf(coded);
  int signPlace = f.bits - 1, shift = 23 - f.fraction;
  Value sign = s.op<arith::ShLIOp>(s.op<arith::AndIOp>(code, s.bits(i32, 1u << signPlace)), s.bits(i32, 31 - signPlace));
  Value magnitude = s.op<arith::AndIOp>(code, s.bits(i32, (1u << signPlace) - 1));
  Value field = s.bitcast(f32, s.op<arith::ShLIOp>(magnitude, s.bits(i32, shift)));
  Value value = s.op<arith::MulFOp>(field, s.number(f32, std::ldexp(1.0, 127 - f.bias)));
  Value bits = s.op<arith::OrIOp>(s.bitcast(i32, value), sign);
  if (!f.hasNegativeZero)
    bits = s.select(s.is(P::eq, code, s.bits(i32, f.nan)), s.bits(i32, 0x7fc00000), bits);
  else if (f.bits == 8) {
    // Infinity of e5m2 keeps its fraction 0; what is NaN gets one.
    Value top = s.op<arith::OrIOp>(s.op<arith::ShLIOp>(magnitude, s.bits(i32, shift)), s.bits(i32, 0x7f800000));
    bits = s.select(s.is(P::ugt, magnitude, s.bits(i32, f.largest)), s.op<arith::OrIOp>(top, sign), bits);
  }
  return s.bitcast(f32, bits);
}

Value raise::encodeElement(OpBuilder &b, Location l, Value real, int64_t coded, Rounding rounding) {
  Scalars s{b, l};
  if (coded == Element::Float8E8M0)
    return encodeExponent(s, real, rounding);
  Format f = formatOf(coded);
  Type type = real.getType();
  bool wide = type.isF64();
  Type word = wide ? b.getI64Type() : b.getI32Type();
  int fraction = wide ? 52 : 23, bias = wide ? 1023 : 127, width = wide ? 64 : 32;
  Value bits = s.bitcast(word, real);
  Value a = s.op<arith::AndIOp>(bits, s.bits(word, ~(uint64_t(1) << (width - 1))));

  // Half of the last place that stays, less one where that is even: what carries rounds to nearest even.
  int shift = fraction - f.fraction;
  Value dropped = s.bits(word, shift), one = s.bits(word, 1);
  Value odd = s.op<arith::AndIOp>(s.op<arith::ShRUIOp>(a, dropped), one);
  Value half = s.op<arith::AddIOp>(s.bits(word, (uint64_t(1) << (shift - 1)) - 1), odd);
  Value rounded = s.op<arith::ShRUIOp>(s.op<arith::AddIOp>(a, half), dropped);
  Value normal = s.op<arith::SubIOp>(rounded, s.bits(word, uint64_t(bias - f.bias) << f.fraction));

  // Subnormal: multiples of 2^(1 − bias − fraction). A large `a` gives a number that is not chosen, kept in range.
  double smallest = std::ldexp(1.0, 1 - f.bias);
  Value magnitude = s.bitcast(type, a);
  Value isSmall = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OLT, magnitude, s.number(type, smallest));
  Value places = s.op<arith::MulFOp>(s.select(isSmall, magnitude, s.number(type, 0)),
                                     s.number(type, std::ldexp(1.0, f.fraction) / smallest));
  Value small = arith::FPToSIOp::create(b, l, word, math::RoundEvenOp::create(b, l, places));

  Value code = s.select(isSmall, small, normal);
  int beyond = rounding.saturate || f.bits == 4 ? f.largest : f.infinity;
  code = s.select(s.is(P::ugt, code, s.bits(word, f.largest)), s.bits(word, beyond), code);
  Value sign = s.op<arith::ShLIOp>(s.op<arith::ShRUIOp>(bits, s.bits(word, width - 1)), s.bits(word, f.bits - 1));
  if (!f.hasNegativeZero)
    sign = s.select(s.is(P::eq, code, s.bits(word, 0)), s.bits(word, 0), sign);
  // NaN is above infinity. With the sign, but where −NaN and −0 would be one.
  Value isNan = s.is(P::ugt, a, s.bits(word, wide ? 0x7ff0000000000000 : 0x7f800000));
  code = s.op<arith::OrIOp>(s.select(isNan, s.bits(word, f.nan), code), sign);
  return arith::TruncIOp::create(b, l, b.getI8Type(), code);
}

Value raise::narrowed(OpBuilder &b, Location l, Value byte, int64_t elementType) {
  Scalars s{b, l};
  Type i8 = b.getI8Type();
  Value left = s.bits(i8, 8 - onnx::elementBits(elementType));
  Value top = s.op<arith::ShLIOp>(byte, left);
  bool isSigned = elementType == Element::Int4 || elementType == Element::Int2;
  return isSigned ? s.op<arith::ShRSIOp>(top, left) : s.op<arith::ShRUIOp>(top, left);
}

namespace {

bool isNatural(int64_t type) {
  return type == Element::Bool || type == Element::UInt2 || type == Element::UInt4 || type == Element::UInt8 ||
         type == Element::UInt16 || type == Element::UInt32 || type == Element::UInt64;
}

Value castInteger(OpBuilder &b, Location l, Value x, bool isUnsigned, Type to) {
  unsigned fromBits = x.getType().getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
  if (fromBits == toBits)
    return x;
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, l, to, x);
  return isUnsigned ? arith::ExtUIOp::create(b, l, to, x).getResult()
                    : arith::ExtSIOp::create(b, l, to, x).getResult();
}

/// Out of range is left open by ONNX; numbers that fit 32 or 64 bits wrap, as they do in numpy.
Value toInteger(OpBuilder &b, Location l, Value x, int64_t to, Type internal) {
  if (to == Element::UInt64)
    return arith::FPToUIOp::create(b, l, internal, x);
  unsigned width = internal.getIntOrFloatBitWidth();
  Type wide = b.getIntegerType(to == Element::UInt32 ? 64 : std::max(width, 32u));
  return castInteger(b, l, arith::FPToSIOp::create(b, l, wide, x), false, internal);
}

} // namespace

Value raise::castElement(OpBuilder &b, Location l, Value x, int64_t from, int64_t to, Type internal,
                         Rounding rounding) {
  if (from == to)
    return x;
  if (isCoded(from)) {
    x = decodeElement(b, l, x, from);
    from = Element::Float;
  }
  Type source = x.getType();
  bool isReal = isa<FloatType>(source);
  if (to == Element::Bool) {
    Value zero = number(b, l, source, 0);
    if (isReal)
      return arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNE, x, zero);
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, x, zero);
  }
  auto toReal = [&](Type type) -> Value {
    if (!isReal)
      return isNatural(from) ? arith::UIToFPOp::create(b, l, type, x).getResult()
                             : arith::SIToFPOp::create(b, l, type, x).getResult();
    if (source == type)
      return x;
    return type.isF64() ? arith::ExtFOp::create(b, l, type, x).getResult()
                        : arith::TruncFOp::create(b, l, type, x).getResult();
  };
  if (isCoded(to)) {
    // One rounding: an integer of 32 bits is exact in f64 only.
    bool wide = isReal ? source.isF64() : source.getIntOrFloatBitWidth() >= 32;
    return encodeElement(b, l, toReal(wide ? b.getF64Type() : b.getF32Type()), to, rounding);
  }
  if (isa<FloatType>(internal))
    return toReal(internal);
  Value result = isReal ? toInteger(b, l, x, to, internal) : castInteger(b, l, x, isNatural(from), internal);
  return onnx::elementBits(to) < 8 ? narrowed(b, l, result, to) : result;
}
