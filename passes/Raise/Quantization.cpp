// SPDX-License-Identifier: Apache-2.0
//
// Between floats and integers: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Scales and zero points are one for a
// tensor, one for each index along an axis, or one for each block along an axis; the three differ in one index only.

#include "passes/Raise/Quantized.h"

#include "dialects/ONNX/ElementType.h"
#include "passes/Raise/Elements.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

//===------------------------------------------------------------------------------------------===//
// Scalars
//===------------------------------------------------------------------------------------------===//

std::optional<std::pair<int64_t, int64_t>> raise::quantizedRange(int64_t elementType) {
  bool isUnsigned = false;
  switch (elementType) {
  case Element::UInt2:
  case Element::UInt4:
  case Element::UInt8:
  case Element::UInt16:
    isUnsigned = true;
    break;
  case Element::Int2:
  case Element::Int4:
  case Element::Int8:
  case Element::Int16:
    break;
  case Element::Int32:
    return std::pair<int64_t, int64_t>(INT32_MIN, INT32_MAX);
  default:
    return std::nullopt;
  }
  int64_t count = int64_t(1) << onnx::elementBits(elementType);
  return isUnsigned ? std::pair<int64_t, int64_t>(0, count - 1) : std::pair<int64_t, int64_t>(-count / 2, count / 2 - 1);
}

static bool isUnsigned(int64_t elementType) {
  auto range = quantizedRange(elementType);
  return elementType == Element::Bool || elementType == Element::UInt32 || elementType == Element::UInt64 ||
         (range && range->first == 0);
}

Value raise::widened(OpBuilder &b, Location l, Value x, int64_t elementType) {
  if (x.getType().getIntOrFloatBitWidth() >= 32)
    return x;
  if (isUnsigned(elementType))
    return arith::ExtUIOp::create(b, l, b.getI32Type(), x);
  return arith::ExtSIOp::create(b, l, b.getI32Type(), x);
}

Value raise::toFloat(OpBuilder &b, Location l, Type type, Value integer, int64_t elementType) {
  Value wide = widened(b, l, integer, elementType);
  if (elementType == Element::UInt32 || elementType == Element::UInt64)
    return arith::UIToFPOp::create(b, l, type, wide);
  return arith::SIToFPOp::create(b, l, type, wide);
}

static Value realConstant(OpBuilder &b, Location l, Type type, double value) {
  return arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
}

Value raise::quantized(OpBuilder &b, Raiser &raiser, Value x, Value zero, int64_t elementType) {
  Location l = *raiser.currentLocation;
  Type type = x.getType();
  auto [low, high] = *quantizedRange(elementType);
  x = math::RoundEvenOp::create(b, l, x);
  if (zero)
    x = arith::AddFOp::create(b, l, x, arith::SIToFPOp::create(b, l, type, zero));
  // Clamped before it is an integer, where it may not fit; up to 24 bits this is exact. NaN becomes the least value.
  x = arith::MaxNumFOp::create(b, l, x, realConstant(b, l, type, double(low)));
  x = arith::MinNumFOp::create(b, l, x, realConstant(b, l, type, double(high)));
  Value integer = arith::FPToSIOp::create(b, l, b.getI32Type(), x);
  Type narrow = raiser.internalType(elementType);
  if (narrow.getIntOrFloatBitWidth() < 32)
    integer = arith::TruncIOp::create(b, l, narrow, integer);
  return integer;
}

//===------------------------------------------------------------------------------------------===//
// Spread
//===------------------------------------------------------------------------------------------===//

FailureOr<Spread> raise::spreadOf(Raiser &raiser, onnx::NodeOp node, ArrayRef<Size> sizes, const Known &parameter,
                                  int64_t axis, int64_t block) {
  Spread spread;
  int64_t rank = sizes.size();
  if (block == 0 && elementCount(parameter.sizes) == Size(1))
    return spread;
  spread.along = axis < 0 ? axis + rank : axis;
  if (spread.along < 0 || spread.along >= rank)
    return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(rank));
  if (block == 0) {
    if (parameter.rank() != 1 || parameter.sizes[0] != sizes[spread.along])
      return raiser.fail(node, "its scale and zero point must have one element, or one for each of " +
                                   sizes[spread.along].str() + " along axis " + Twine(spread.along));
    spread.kind = Spread::axis;
    return spread;
  }
  spread.kind = Spread::block;
  spread.size = block;
  bool fits = block > 0 && parameter.rank() == sizes.size();
  for (int64_t i = 0; fits && i != rank; ++i) {
    std::optional<int64_t> extent = sizes[i].constant(), blocks = parameter.sizes[i].constant();
    if (i == spread.along)
      fits = extent && blocks && *extent >= 0 && *blocks == *extent / block + (*extent % block != 0);
    else
      fits = sizes[i] == parameter.sizes[i];
  }
  if (!fits)
    return raiser.fail(node, "its scale and zero point must have the input's shape with one element for each block of " +
                                 Twine(block) + " along axis " + Twine(spread.along));
  return spread;
}

Value raise::parameterAt(OpBuilder &b, Raiser &raiser, Known &parameter, const Spread &spread, ValueRange indices) {
  Location l = *raiser.currentLocation;
  SmallVector<Value> at;
  if (spread.kind == Spread::tensor) {
    at.assign(parameter.rank(), arith::ConstantIndexOp::create(b, l, 0));
  } else if (spread.kind == Spread::axis) {
    at.push_back(indices[spread.along]);
  } else {
    at.assign(indices.begin(), indices.end());
    at[spread.along] = arith::DivUIOp::create(b, l, at[spread.along], arith::ConstantIndexOp::create(b, l, spread.size));
  }
  return raiser.element(b, parameter, at);
}

//===------------------------------------------------------------------------------------------===//
// Operators
//===------------------------------------------------------------------------------------------===//

namespace {

/// fp8 and fp4, but for float8e8m0, which is a type of scales.
bool isQuantizedFloat(int64_t type) { return isCoded(type) && type != Element::Float8E8M0; }

/// Zero points of floats are 0 and there for their type only. Where the file says otherwise it means something that ONNX does not.
LogicalResult checkFloatZero(Raiser &raiser, onnx::NodeOp node) {
  Known &zero = raiser.input(node, 2);
  if (isQuantizedFloat(zero.elementType) && zero.integers && !llvm::all_of(*zero.integers, [](const Size &bits) { return bits == Size(0); }))
    return raiser.fail(node, "a zero point of " + onnx::elementTypeName(zero.elementType) + " must be 0");
  return success();
}

/// The default axis is 1, and before opset 13 there is none.
struct Arguments {
  Spread scale, zero;
  bool hasZero = false;
};

FailureOr<Arguments> argumentsOf(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1);
  int64_t axis = node.intOr("axis", 1), block = node.intOr("block_size", 0);
  Arguments result;
  FailureOr<Spread> spread = spreadOf(raiser, node, x.sizes, scale, axis, block);
  if (failed(spread))
    return failure();
  result.scale = *spread;
  if (!isa<FloatType>(raiser.internalType(scale.elementType)) && scale.elementType != Element::Float8E8M0)
    return raiser.fail(node, "its scale must be floats, not " + onnx::elementTypeName(scale.elementType));
  result.hasZero = raiser.hasInput(node, 2);
  if (!result.hasZero)
    return result;
  spread = spreadOf(raiser, node, x.sizes, raiser.input(node, 2), axis, block);
  if (failed(spread))
    return failure();
  result.zero = *spread;
  if (failed(checkFloatZero(raiser, node)))
    return failure();
  return result;
}

Value converted(OpBuilder &b, Location l, Type type, Value x) {
  unsigned from = x.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return x;
  return from < to ? arith::ExtFOp::create(b, l, type, x).getResult() : arith::TruncFOp::create(b, l, type, x).getResult();
}

/// The scale of an element as `type`; powers of two are held as their exponents.
Value scaleAt(OpBuilder &b, Raiser &raiser, Known &scale, const Spread &spread, Type type, ValueRange at) {
  Location l = *raiser.currentLocation;
  Value value = parameterAt(b, raiser, scale, spread, at);
  if (scale.elementType == Element::Float8E8M0)
    value = decodeElement(b, l, value, scale.elementType);
  return converted(b, l, type, value);
}

LogicalResult raiseQuantize(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1);
  FailureOr<Arguments> arguments = argumentsOf(raiser, node);
  if (failed(arguments))
    return failure();
  int64_t asked = node.intOr("output_dtype", 0);
  int64_t to = arguments->hasZero ? raiser.input(node, 2).elementType : asked ? asked : int64_t(Element::UInt8);
  if (asked && asked != to)
    return raiser.fail(node, "output_dtype is " + onnx::elementTypeName(asked) + " and its zero point " +
                                 onnx::elementTypeName(to) + " (they must agree)");
  Type from = raiser.internalType(x.elementType);
  bool coded = isQuantizedFloat(to);
  if (!coded && (!quantizedRange(to) || to == Element::Int32 || !raiser.internalType(to)))
    return raiser.fail(node, "quantizing to " + onnx::elementTypeName(to) + " is not supported");
  if (!isa<FloatType>(from) && x.elementType != Element::Int32)
    return raiser.fail(node, "quantizing " + onnx::elementTypeName(x.elementType) + " is not supported");
  // `precision` says in what the division is: floats below f64 are f32 here.
  bool wide = node.intOr("precision", scale.elementType) == Element::Double || from.isF64();
  Type type = wide ? Type(raiser.builder.getF64Type()) : Type(raiser.builder.getF32Type());
  Known codes = raiser.generated(to, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Location l = node.getLoc();
    Value value = raiser.element(b, x, at);
    value = isa<FloatType>(from) ? converted(b, l, type, value) : arith::SIToFPOp::create(b, l, type, value).getResult();
    Value by = scaleAt(b, raiser, scale, arguments->scale, type, at), zero;
    if (coded)
      return encodeElement(b, l, arith::DivFOp::create(b, l, value, by), to, {node.intOr("saturate", 1) != 0, "nearest"});
    if (arguments->hasZero)
      zero = widened(b, l, parameterAt(b, raiser, raiser.input(node, 2), arguments->zero, at), to);
    return quantized(b, raiser, arith::DivFOp::create(b, l, value, by), zero, to);
  });
  if (type.isF32() && isa<FloatType>(from))
    codes.codesOf = CodesOf{codes.tensor, node.getInputs()[0], node.getInputs()[1], node.inputOrNull(2)};
  raiser.set(node, std::move(codes));
  return success();
}

LogicalResult raiseDequantize(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1);
  FailureOr<Arguments> arguments = argumentsOf(raiser, node);
  if (failed(arguments))
    return failure();
  bool coded = isQuantizedFloat(x.elementType);
  if (!coded && (!quantizedRange(x.elementType) || !raiser.internalType(x.elementType)))
    return raiser.fail(node, "dequantizing " + onnx::elementTypeName(x.elementType) + " is not supported");
  if (arguments->hasZero && raiser.input(node, 2).elementType != x.elementType)
    return raiser.fail(node, "its zero point is " + onnx::elementTypeName(raiser.input(node, 2).elementType) +
                                 ", and its input " + onnx::elementTypeName(x.elementType) + " (they must agree)");
  int64_t to = node.intOr("output_dtype", 0);
  to = to ? to : scale.elementType == Element::Float8E8M0 ? int64_t(Element::Float) : scale.elementType;
  Type type = raiser.internalType(to);
  if (!isa_and_nonnull<FloatType>(type))
    return raiser.fail(node, "dequantizing to " + onnx::elementTypeName(to) + " is not supported");
  Known *zero = arguments->hasZero ? &raiser.input(node, 2) : nullptr;
  auto dequantize = [&raiser, &x, &scale, zero, type, node, coded, arguments = *arguments]() mutable {
    return raiser.generate(type, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
      Location l = node.getLoc();
      Value by = scaleAt(b, raiser, scale, arguments.scale, type, at);
      if (coded)
        return arith::MulFOp::create(
            b, l, converted(b, l, type, decodeElement(b, l, raiser.element(b, x, at), x.elementType)), by);
      Value value = widened(b, l, raiser.element(b, x, at), x.elementType);
      if (zero)
        value = arith::SubIOp::create(b, l, value,
                                      widened(b, l, parameterAt(b, raiser, *zero, arguments.zero, at), x.elementType));
      return arith::MulFOp::create(b, l, arith::SIToFPOp::create(b, l, type, value), by);
    });
  };
  Known result;
  result.elementType = to;
  result.sizes = x.sizes;
  // A weight may stay as the file has it, and is made floats only for who cannot read it so.
  if (raiser.isFloat(to))
    result.given = givenCodes(raiser, x, scale, zero, arguments->scale);
  if (result.given)
    result.given->dequantize = dequantize;
  else
    result.tensor = dequantize();
  if (arguments->scale.kind == Spread::tensor && arguments->zero.kind == Spread::tensor && result.tensor)
    result.onGrid = onGrid(raiser, node, result);
  raiser.set(node, std::move(result));
  return success();
}

/// scale = (max(x, 0) − min(x, 0)) / 255, zero = rint(−min / scale), and x as uint8 by them.
LogicalResult raiseDynamicQuantize(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  Location l = node.getLoc();
  Type type = raiser.builder.getF32Type();
  if (raiser.internalType(x.elementType) != type)
    return raiser.fail(node, "quantizing " + onnx::elementTypeName(x.elementType) + " is not supported");
  // Of each row, which many threads find, and then of these.
  Size width = x.rank() ? x.sizes.back() : Size(1);
  Size rows = x.rank() ? elementCount(ArrayRef<Size>(x.sizes).drop_back()) : Size(1);
  Known matrix = raiser.reshaped(x, {rows, width});
  auto extremumOf = [&](Known &from, ArrayRef<Size> sizes, const Size &count, bool greatest) {
    return raiser.generated(Element::Float, sizes, [&](OpBuilder &b, ValueRange outer) -> Value {
      Value none = arith::ConstantIndexOp::create(b, l, 0), one = arith::ConstantIndexOp::create(b, l, 1);
      Value extent = count.isConstant() ? arith::ConstantIndexOp::create(b, l, *count.constant()).getResult()
                                        : SizeOp::create(b, l, count).getResult();
      return scf::ForOp::create(b, l, none, extent, one, ValueRange(realConstant(b, l, type, 0)),
                                [&](OpBuilder &in, Location, Value i, ValueRange carried) {
                                  SmallVector<Value> at(outer);
                                  at.push_back(i);
                                  Value value = raiser.element(in, from, at), next;
                                  if (greatest)
                                    next = arith::MaximumFOp::create(in, l, carried[0], value);
                                  else
                                    next = arith::MinimumFOp::create(in, l, carried[0], value);
                                  scf::YieldOp::create(in, l, next);
                                })
          .getResult(0);
    });
  };
  auto extremum = [&](bool greatest) {
    Known ofRows = extremumOf(matrix, {rows}, width, greatest);
    return extremumOf(ofRows, {}, rows, greatest);
  };
  Known greatest = extremum(true), least = extremum(false);
  Known scale = raiser.generated(Element::Float, {}, [&](OpBuilder &b, ValueRange) -> Value {
    Value width = arith::SubFOp::create(b, l, raiser.element(b, greatest, {}), raiser.element(b, least, {}));
    Value flat = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, width, realConstant(b, l, type, 0));
    width = arith::SelectOp::create(b, l, flat, realConstant(b, l, type, 1), width);
    return arith::DivFOp::create(b, l, width, realConstant(b, l, type, 255));
  });
  Known zero = raiser.generated(Element::UInt8, {}, [&](OpBuilder &b, ValueRange) -> Value {
    Value low = arith::NegFOp::create(b, l, raiser.element(b, least, {}));
    return quantized(b, raiser, arith::DivFOp::create(b, l, low, raiser.element(b, scale, {})), {}, Element::UInt8);
  });
  Known codes = raiser.generated(Element::UInt8, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Value value = arith::DivFOp::create(b, l, raiser.element(b, x, at), raiser.element(b, scale, {}));
    return quantized(b, raiser, value, widened(b, l, raiser.element(b, zero, {}), Element::UInt8), Element::UInt8);
  });
  if (node.getOutputs().size() > 2)
    codes.codesOf = CodesOf{codes.tensor, node.getInputs()[0], node.getOutputs()[1], node.getOutputs()[2]};
  raiser.set(node, std::move(codes), 0);
  if (node.getOutputs().size() > 1)
    raiser.set(node, std::move(scale), 1);
  if (node.getOutputs().size() > 2)
    raiser.set(node, std::move(zero), 2);
  return success();
}

} // namespace

void raise::registerQuantization(Registry &registry) {
  registry.add("QuantizeLinear", raiseQuantize, 2, 3, 10);
  registry.add("DequantizeLinear", raiseDequantize, 2, 3, 10);
  registry.add("DynamicQuantizeLinear", raiseDynamicQuantize, 1, 1, 11);
  // The same operators as ONNX Runtime writes them for 16-bit and 4-bit types before opset 21.
  registry.add("com.microsoft::QuantizeLinear", raiseQuantize, 2, 3, 1);
  registry.add("com.microsoft::DequantizeLinear", raiseDequantize, 2, 3, 1);
}
