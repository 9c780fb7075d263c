// SPDX-License-Identifier: Apache-2.0
//
// Codes of a constant weight that a file casts to floats and multiplies by their scales: a DequantizeLinear in other words.

#include "passes/Raise/Terms.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

/// The axis of a matrix that `scale` has one number each for, [N], [1, N] or [K, 1]; nothing where it is no scale of it. One number
/// for all fits either axis.
static std::optional<int64_t> axisOf(const Known &scale, const Known &codes) {
  if (scale.rank() > 2 || (!scale.reals && !scale.constant))
    return std::nullopt;
  Size count = elementCount(scale.sizes);
  if (count == Size(1) || (scale.sizes.back() == count && count == codes.sizes[1]))
    return 1;
  if (scale.rank() == 2 && scale.sizes[0] == count && count == codes.sizes[0])
    return 0;
  return std::nullopt;
}

bool raise::recognizeScaledCodes(Raiser &raiser, onnx::NodeOp mul) {
  for (unsigned side : {0u, 1u}) {
    auto cast = mul.getInputs()[side].getDefiningOp<onnx::NodeOp>();
    if (!cast || !cast.is("Cast") || !raiser.isFloat(cast.intOr("to", 0)))
      continue;
    Known &codes = raiser.input(cast, 0), &scale = raiser.input(mul, 1 - side);
    if (!isGivenWeight(codes) || codes.rank() != 2 || !raiser.isFloat(scale.elementType))
      continue;
    std::optional<int64_t> axis = axisOf(scale, codes);
    if (!axis)
      continue;
    Terms t{raiser, mul};
    Value vector = t.value(raiser.reshaped(scale, {elementCount(scale.sizes)}));
    Value floats = t.apply("DequantizeLinear", {cast.getInputs()[0], vector}, {t.integer("axis", *axis)});
    return !t.failed && raiser.known(floats).given && succeeded(t.finish(floats));
  }
  return false;
}
