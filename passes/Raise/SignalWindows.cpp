// SPDX-License-Identifier: Apache-2.0
//
// What is made once for a spectrogram: the window functions and MelWeightMatrix, computed in f64.

#include "passes/Raise/Numbers.h"

#include "dialects/ONNX/ElementType.h"

#include <numbers>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// An f64 as an element of ONNX type `elementType`.
Value asElement(Raiser &raiser, Expressions s, int64_t elementType, Value x) {
  Type type = raiser.internalType(elementType);
  if (isa<FloatType>(type))
    return s.toReal(type, x);
  return raiser.isUnsigned(elementType) ? arith::FPToUIOp::create(s.b, s.l, type, x).getResult()
                                        : arith::FPToSIOp::create(s.b, s.l, type, x).getResult();
}

/// Σ coefficients[i] · cos(2π i · x / N), where N is the size, less 1 for a symmetric window.
LogicalResult raiseWindow(Raiser &raiser, onnx::NodeOp node, std::array<double, 3> coefficients) {
  int64_t elementType = node.intOr("output_datatype", Element::Float);
  Type type = raiser.internalType(elementType);
  bool periodic = node.intOr("periodic", 1) != 0;
  if (!type || type.isInteger(1))
    return raiser.fail(node, "a window of this type is not supported");
  FailureOr<SmallVector<Number>> size = numbersOf(raiser, node, 0);
  if (failed(size))
    return failure();
  if (size->size() != 1)
    return raiser.fail(node, "its size must be one number");
  FailureOr<SmallVector<Size>> length = settled(raiser, node, maximum(size->front(), 0));
  if (failed(length))
    return failure();
  raiser.set(node, raiser.generated(elementType, *length, [&](OpBuilder &b, ValueRange at) -> Value {
    Expressions s{b, node.getLoc()};
    Type wide = b.getF64Type();
    Value steps = s.fromIndex(wide, s.add(s.index(length->front()), periodic ? 0 : -1));
    Value angle = s.div(s.mul(s.fromIndex(wide, at[0]), s.constant(wide, 2 * std::numbers::pi)), steps);
    Value sum = s.constant(wide, coefficients[0]);
    for (int i : {1, 2})
      if (coefficients[i] != 0) {
        Value cosine = math::CosOp::create(b, s.l, s.mul(angle, s.constant(wide, i)));
        sum = s.add(sum, s.mul(cosine, s.constant(wide, coefficients[i])));
      }
    return asElement(raiser, s, elementType, sum);
  }));
  return success();
}

/// Column i is a triangle over the bins of a spectrum: it rises between the edges i and i + 1 and falls to edge i + 2, which
/// are evenly spaced on the mel scale and rounded down to bins.
LogicalResult raiseMelWeightMatrix(Raiser &raiser, onnx::NodeOp node) {
  int64_t elementType = node.intOr("output_datatype", Element::Float);
  Type type = raiser.internalType(elementType);
  if (!type || type.isInteger(1))
    return raiser.fail(node, "a matrix of this type is not supported");
  for (unsigned i = 0; i != 5; ++i)
    if (elementCount(raiser.input(node, i).sizes) != Size(1) || isa<FloatType>(raiser.internalType(raiser.input(node, i).elementType)) != (i > 2))
      return raiser.fail(node, "expects three integers and two floats");
  Number bands = maximum(numberAt(raiser, raiser.input(node, 0), 0), 0), length = maximum(numberAt(raiser, raiser.input(node, 1), 0), 0);
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, {quotient(length, 2) + Number(1), bands});
  if (failed(sizes))
    return failure();
  raiser.set(node, raiser.generated(elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Type wide = b.getF64Type();
    auto real = [&](double value) { return s.constant(wide, value); };
    auto hertz = [&](unsigned input) { return s.toReal(wide, raiser.element(b, raiser.input(node, input), s.index(0))); };
    double scale = 2595 / std::numbers::ln10;
    auto mel = [&](Value f) { return s.mul(real(scale), math::LogOp::create(b, s.l, s.add(real(1), s.div(f, real(700))))); };
    Value low = mel(hertz(3)), high = mel(hertz(4));
    Value step = s.div(s.sub(high, low), s.fromIndex(wide, s.add(bands.emit(s), 2)));
    Value perHertz = s.fromIndex(wide, s.add(length.emit(s), 1));
    Value rate = s.fromIndex(wide, numberAt(raiser, raiser.input(node, 2), 0).emit(s));
    auto edge = [&](int64_t i) -> Value {
      Value at = s.add(s.mul(s.fromIndex(wide, s.add(indices[1], i)), step), low);
      Value f = s.mul(real(700), s.sub(math::ExpOp::create(b, s.l, s.div(at, real(scale))), real(1)));
      return math::FloorOp::create(b, s.l, s.div(s.mul(perHertz, f), rate));
    };
    Value bin = s.fromIndex(wide, indices[0]), left = edge(0), center = edge(1), right = edge(2);
    auto ratio = [&](Value x, Value y) { return s.div(x, s.select(s.equal(y, real(0)), real(1), y)); };
    Value rise = s.sub(center, left), fall = s.sub(right, center);
    Value rising = s.both(s.atLeast(bin, left), s.atLeast(center, bin));
    Value result = s.select(rising, s.select(s.equal(rise, real(0)), real(1), ratio(s.sub(bin, left), rise)), real(0));
    Value falling = s.both(s.atLeast(bin, center), s.less(bin, right));
    return asElement(raiser, s, elementType, s.select(falling, ratio(s.sub(right, bin), fall), result));
  }));
  return success();
}

} // namespace

void raise::registerWindows(Registry &registry) {
  auto window = [&](StringRef name, std::array<double, 3> coefficients) {
    registry.add(name, [coefficients](Raiser &raiser, onnx::NodeOp node) { return raiseWindow(raiser, node, coefficients); },
                 1, 1, 17);
  };
  window("HannWindow", {0.5, -0.5, 0});
  window("HammingWindow", {25.0 / 46, 25.0 / 46 - 1, 0});
  window("BlackmanWindow", {0.42, -0.5, 0.08});
  registry.add("MelWeightMatrix", raiseMelWeightMatrix, 5, 5, 17);
}
