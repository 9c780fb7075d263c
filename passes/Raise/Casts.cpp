// SPDX-License-Identifier: Apache-2.0
//
// Operators that give an element another type, or leave it as it is.

#include "passes/Raise/Elements.h"
#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// Contents in another type, where they are known and remain contents.
bool castContents(Raiser &raiser, const Known &input, int64_t to, Known &result) {
  if (isCoded(input.elementType) || isCoded(to) || (!input.integers && !input.reals))
    return false;
  bool toReal = isa<FloatType>(raiser.internalType(to));
  unsigned bits = onnx::elementBits(to);
  if (input.reals && toReal) {
    result.reals.emplace();
    for (double value : *input.reals)
      result.reals->push_back(to == Element::Double ? value : float(value));
    return true;
  }
  SmallVector<Size> integers;
  if (input.reals) {
    for (double value : *input.reals) {
      if (to != Element::Bool && !(std::fabs(value) < 0x1p31)) // beyond, the program decides
        return false;
      integers.push_back(Size(to == Element::Bool ? int64_t(value != 0) : int64_t(value)));
    }
  } else {
    integers = *input.integers;
  }
  if (toReal) {
    result.reals.emplace();
    for (const Size &size : integers) {
      if (!size.isConstant() || (input.elementType == Element::UInt64 && *size.constant() < 0)) {
        result.reals.reset();
        return false;
      }
      double value = double(*size.constant());
      result.reals->push_back(to == Element::Double ? value : float(value));
    }
    return true;
  }
  for (Size &size : integers) {
    std::optional<int64_t> constant = size.constant();
    if (to == Element::Bool) {
      if (!constant)
        return false;
      size = Size(int64_t(*constant != 0));
    } else if (constant && bits < 64) {
      uint64_t top = uint64_t(*constant) << (64 - bits);
      size = Size(raiser.isUnsigned(to) ? int64_t(top >> (64 - bits)) : int64_t(top) >> (64 - bits));
    }
  }
  result.integers = std::move(integers);
  return true;
}

LogicalResult castTo(Raiser &raiser, onnx::NodeOp node, int64_t to) {
  Known &input = raiser.input(node, 0);
  Type type = raiser.internalType(to);
  if (!type)
    return raiser.fail(node, "a cast to " + onnx::elementTypeName(to) +
                                 " is not supported (numbers and booleans are)");
  // Between floats that are computed in f32, and where nothing changes but the name, the value stays what it is.
  if (input.elementType == to || (raiser.isFloat(input.elementType) && raiser.isFloat(to))) {
    Known result = input;
    result.elementType = to;
    raiser.set(node, std::move(result));
    return success();
  }
  Known result;
  result.elementType = to;
  result.sizes = input.sizes;
  if (castContents(raiser, input, to, result)) {
    raiser.set(node, std::move(result));
    return success();
  }
  Rounding rounding;
  rounding.saturate = node.intOr("saturate", 1) != 0;
  if (auto mode = dyn_cast_or_null<StringAttr>(node.attribute("round_mode"))) {
    rounding.mode = mode.getValue();
    if (rounding.mode != "up" && rounding.mode != "down" && rounding.mode != "nearest")
      return raiser.fail(node, "its round_mode must be up, down or nearest, and is " + rounding.mode);
  }
  raiser.set(node, raiser.generated(to, input.sizes, [&](OpBuilder &b, ValueRange indices) {
    return castElement(b, node.getLoc(), raiser.element(b, input, indices), input.elementType, to, type, rounding);
  }));
  return success();
}

LogicalResult raiseCast(Raiser &raiser, onnx::NodeOp node) { return castTo(raiser, node, node.intOr("to", 0)); }

LogicalResult raiseCastLike(Raiser &raiser, onnx::NodeOp node) {
  return castTo(raiser, node, raiser.input(node, 1).elementType);
}

/// The same bits. Floats of 16 bits are f32 inside and turn back into their bits here.
LogicalResult raiseBitCast(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t from = input.elementType, to = node.intOr("to", 0);
  Type type = raiser.internalType(to);
  if (!type || onnx::elementBits(from) != onnx::elementBits(to))
    return raiser.fail(node, "the bits of " + onnx::elementTypeName(from) + " cannot be those of " +
                                 onnx::elementTypeName(to));
  Type storedFrom = raiser.storedType(from), storedTo = raiser.storedType(to);
  raiser.set(node, raiser.generated(to, input.sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Location l = node.getLoc();
    Value x = raiser.element(b, input, indices);
    if (from == Element::Bool)
      x = arith::ExtUIOp::create(b, l, b.getI8Type(), x);
    else if (x.getType() != storedFrom)
      x = arith::TruncFOp::create(b, l, storedFrom, x);
    if (to == Element::Bool)
      return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, x, number(b, l, x.getType(), 0));
    if (x.getType() != storedTo)
      x = arith::BitcastOp::create(b, l, storedTo, x);
    if (storedTo != type)
      return arith::ExtFOp::create(b, l, type, x);
    return onnx::elementBits(to) < 8 ? narrowed(b, l, x, to) : x;
  }));
  return success();
}

} // namespace

void raise::registerCasts(Registry &registry) {
  registry.add("Cast", raiseCast, 1, 1);
  registry.add("CastLike", raiseCastLike, 2, 2, 15);
  registry.add("BitCast", raiseBitCast, 1, 1, 26);
  registry.add("Identity", [](Raiser &raiser, onnx::NodeOp node) {
    raiser.set(node, Known(raiser.input(node, 0)));
    return success();
  }, 1, 1);
}
