// SPDX-License-Identifier: Apache-2.0
//
// Operators that draw random numbers. A plan gives one answer for one input, so only what needs no draw is there: a
// Dropout that drops nothing.

#include "passes/Raise/Elements.h"
#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// Until opset 11 inference is meant always; since 12 an input says whether the model trains.
LogicalResult raiseDropout(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  if (raiser.hasInput(node, 2)) {
    std::optional<double> trains = raiser.scalar(node.getInputs()[2]);
    std::optional<double> ratio = raiser.hasInput(node, 1) ? raiser.scalar(node.getInputs()[1]) : 0.5;
    if (!(trains && *trains == 0) && !(ratio && *ratio == 0))
      return raiser.fail(node, trains ? "it drops at random, as in training (export the model for inference)"
                                      : "whether it trains depends on an input (export the model for inference)");
  }
  raiser.set(node, Known(input));
  if (node.getOutputs().size() < 2)
    return success();
  // Of opset 7 the mask has the type of the data.
  bool isBool = node.getVersion() >= 10;
  int64_t type = isBool ? int64_t(Element::Bool) : input.elementType;
  raiser.set(node, raiser.generated(type, input.sizes, [&](OpBuilder &b, ValueRange) -> Value {
    if (isBool)
      return arith::ConstantOp::create(b, node.getLoc(), b.getBoolAttr(true));
    return number(b, node.getLoc(), raiser.internalType(type), 1);
  }), 1);
  return success();
}

LogicalResult refuse(Raiser &raiser, onnx::NodeOp node) {
  return raiser.fail(node, "it draws random numbers, and a plan gives one answer for one input (make them an input of "
                           "the model)");
}

} // namespace

void raise::registerRandom(Registry &registry) {
  registry.add("Dropout", raiseDropout, 1, 3);
  registry.add("Bernoulli", refuse, 1, 1, 15);
  registry.add("Multinomial", refuse, 1, 1);
  registry.add("RandomNormal", refuse, 0, 0);
  registry.add("RandomUniform", refuse, 0, 0);
  registry.add("RandomNormalLike", refuse, 1, 1);
  registry.add("RandomUniformLike", refuse, 1, 1);
}
