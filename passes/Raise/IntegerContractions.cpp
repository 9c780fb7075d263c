// SPDX-License-Identifier: Apache-2.0
//
// Products of quantized matrices with 32-bit sums, exact as the operators define them: MatMulInteger, QLinearMatMul. By a constant
// weight QLinearMatMul is a linear (IntegerProducts.cpp).

#include "passes/Raise/Terms.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// A parameter of one side of a product: one for the matrix, one a row (of the left) or column (of the right), given as a
/// vector, or a tensor that broadcasts over the matrix.
LogicalResult checkSide(Raiser &raiser, onnx::NodeOp node, const Known &matrix, const Known &parameter, bool left,
                        StringRef what) {
  if (elementCount(parameter.sizes) == Size(1))
    return success();
  Size lines = matrix.sizes[matrix.rank() - (left ? 2 : 1)];
  if (parameter.rank() == 1 && parameter.sizes[0] == lines)
    return success();
  auto merged = raiser.broadcast(parameter.sizes, matrix.sizes);
  if (parameter.rank() >= 2 && merged && *merged == SmallVector<Size>(matrix.sizes) &&
      parameter.sizes[parameter.rank() - (left ? 1 : 2)] == Size(1))
    return success();
  return raiser.fail(node, what + " must be one number or one for each " + (left ? "row" : "column") + " of its matrix");
}

Value sideElement(OpBuilder &b, Raiser &raiser, Known &parameter, ValueRange indices, bool left) {
  if (elementCount(parameter.sizes) == Size(1)) {
    SmallVector<Value> zeros(parameter.rank(), arith::ConstantIndexOp::create(b, *raiser.currentLocation, 0));
    return raiser.element(b, parameter, zeros);
  }
  if (parameter.rank() == 1)
    return raiser.element(b, parameter, indices[indices.size() - (left ? 2 : 1)]);
  return raiser.element(b, parameter, indices);
}

struct Operand {
  Known *matrix, *zero; // zero may be null
};

/// Σ_k (a − za)(b − zb) as i32, over the batch that both broadcast to. A vector on the left is a row, on the right a column,
/// and its dimension is not in the result.
FailureOr<Known> product(Raiser &raiser, onnx::NodeOp node, Operand a, Operand b) {
  for (Operand operand : {a, b}) {
    int64_t type = operand.matrix->elementType;
    if (!quantizedRange(type) || onnx::elementBits(type) > 8)
      return raiser.fail(node, "elements of type " + onnx::elementTypeName(type) + " are not supported");
    if (operand.zero && operand.zero->elementType != type)
      return raiser.fail(node, "a zero point has another type than its matrix");
    if (operand.matrix->rank() == 0)
      return raiser.fail(node, "an operand has no dimension");
  }
  bool row = a.matrix->rank() == 1, column = b.matrix->rank() == 1;
  Known left = row ? raiser.reshaped(*a.matrix, {Size(1), a.matrix->sizes[0]}) : *a.matrix;
  Known right = column ? raiser.reshaped(*b.matrix, {b.matrix->sizes[0], Size(1)}) : *b.matrix;
  Size depth = left.sizes.back();
  if (depth != right.sizes[right.rank() - 2])
    return raiser.fail(node, "cannot contract " + depth.str() + " with " + right.sizes[right.rank() - 2].str());
  if ((a.zero && failed(checkSide(raiser, node, left, *a.zero, true, "the left zero point"))) ||
      (b.zero && failed(checkSide(raiser, node, right, *b.zero, false, "the right zero point"))))
    return failure();
  auto sizes = raiser.broadcast(ArrayRef<Size>(left.sizes).drop_back(2), ArrayRef<Size>(right.sizes).drop_back(2));
  if (!sizes)
    return raiser.fail(node, "leading dimensions do not broadcast");
  sizes->push_back(left.sizes[left.rank() - 2]);
  sizes->push_back(right.sizes.back());
  Location l = node.getLoc();
  Known result = raiser.generated(Element::Int32, *sizes, [&](OpBuilder &builder, ValueRange indices) -> Value {
    Value zero = arith::ConstantIndexOp::create(builder, l, 0), one = arith::ConstantIndexOp::create(builder, l, 1);
    Value extent = depth.isConstant() ? arith::ConstantIndexOp::create(builder, l, *depth.constant()).getResult()
                                      : SizeOp::create(builder, l, depth).getResult();
    Value initial = arith::ConstantOp::create(builder, l, builder.getI32IntegerAttr(0));
    auto loop = scf::ForOp::create(
        builder, l, zero, extent, one, ValueRange(initial), [&](OpBuilder &in, Location, Value k, ValueRange carried) {
          auto shifted = [&](Known &matrix, Known *offset, SmallVector<Value> at, bool isLeft) -> Value {
            Value x = widened(in, l, raiser.element(in, matrix, at), matrix.elementType);
            if (!offset)
              return x;
            Value z = sideElement(in, raiser, *offset, at, isLeft);
            return arith::SubIOp::create(in, l, x, widened(in, l, z, offset->elementType));
          };
          SmallVector<Value> atLeft(indices), atRight(indices);
          atLeft.back() = k;
          atRight[atRight.size() - 2] = k;
          Value term = arith::MulIOp::create(in, l, shifted(left, a.zero, atLeft, true), shifted(right, b.zero, atRight, false));
          scf::YieldOp::create(in, l, arith::AddIOp::create(in, l, carried[0], term).getResult());
        });
    return loop.getResult(0);
  });
  if (!row && !column)
    return result;
  SmallVector<Size> kept(result.sizes.begin(), result.sizes.end() - 2);
  if (!row)
    kept.push_back(result.sizes[result.rank() - 2]);
  if (!column)
    kept.push_back(result.sizes.back());
  return raiser.reshaped(result, kept);
}

Known *inputOrNull(Raiser &raiser, onnx::NodeOp node, unsigned position) {
  return raiser.hasInput(node, position) ? &raiser.input(node, position) : nullptr;
}

LogicalResult raiseMatMulInteger(Raiser &raiser, onnx::NodeOp node) {
  FailureOr<Known> result = product(raiser, node, {&raiser.input(node, 0), inputOrNull(raiser, node, 2)},
                                    {&raiser.input(node, 1), inputOrNull(raiser, node, 3)});
  if (failed(result))
    return failure();
  raiser.set(node, std::move(*result));
  return success();
}

LogicalResult raiseQLinearMatMul(Raiser &raiser, onnx::NodeOp node) {
  Known &a = raiser.input(node, 0), &aScale = raiser.input(node, 1), &b = raiser.input(node, 3),
        &bScale = raiser.input(node, 4), &yScale = raiser.input(node, 6), &yZero = raiser.input(node, 7);
  if (a.rank() < 2 || b.rank() < 2)
    return raiser.fail(node, "operands of rank 1 are not supported (add a dimension before and drop it after)");
  if (b.rank() == 2 && elementCount(yScale.sizes) == Size(1) && elementCount(yZero.sizes) == Size(1))
    if (auto raised = raiseByGivenWeight(raiser, node, {0, 1, 2, 3, 4, 5}, 1, [&](Terms &t, Value x, Value w) {
          return t.finish(t.quantize(t.apply("MatMul", {x, w}), 6, yZero.elementType));
        }))
      return *raised;
  FailureOr<Known> sum = product(raiser, node, {&a, &raiser.input(node, 2)}, {&b, &raiser.input(node, 5)});
  if (failed(sum) || failed(checkSide(raiser, node, a, aScale, true, "the left scale")) ||
      failed(checkSide(raiser, node, b, bScale, false, "the right scale")) ||
      failed(checkSide(raiser, node, *sum, yScale, true, "the result's scale")) ||
      failed(checkSide(raiser, node, *sum, yZero, true, "the result's zero point")))
    return failure();
  for (Known *scale : {&aScale, &bScale, &yScale})
    if (!raiser.isFloat(scale->elementType))
      return raiser.fail(node, "a scale must be floats, not " + onnx::elementTypeName(scale->elementType));
  if (!quantizedRange(yZero.elementType) || onnx::elementBits(yZero.elementType) > 8)
    return raiser.fail(node, "a result of type " + onnx::elementTypeName(yZero.elementType) + " is not supported");
  Location l = node.getLoc();
  raiser.set(node, raiser.generated(yZero.elementType, sum->sizes, [&](OpBuilder &in, ValueRange at) -> Value {
    Value factor = arith::MulFOp::create(in, l, sideElement(in, raiser, aScale, at, true), sideElement(in, raiser, bScale, at, false));
    factor = arith::DivFOp::create(in, l, factor, sideElement(in, raiser, yScale, at, true));
    Value x = arith::SIToFPOp::create(in, l, in.getF32Type(), raiser.element(in, *sum, at));
    Value zero = widened(in, l, sideElement(in, raiser, yZero, at, true), yZero.elementType);
    return quantized(in, raiser, arith::MulFOp::create(in, l, x, factor), zero, yZero.elementType);
  }));
  return success();
}

} // namespace

void raise::registerIntegerContractions(Registry &registry) {
  registry.add("MatMulInteger", raiseMatMulInteger, 2, 4, 10);
  registry.add("QLinearMatMul", raiseQLinearMatMul, 8, 8, 10);
}
