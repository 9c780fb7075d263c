// SPDX-License-Identifier: Apache-2.0
//
// FusedMatMul of com.microsoft: alpha · op(A) op(B), where op may swap the last two dimensions.

#include "passes/Raise/AttentionForm.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

static Known scaled(Raiser &raiser, Known product, float alpha) {
  if (alpha == 1)
    return product;
  return raiser.generated(product.elementType, product.sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Location l = *raiser.currentLocation;
    Value x = raiser.element(b, product, i);
    return arith::MulFOp::create(b, l, x, arith::ConstantOp::create(b, l, b.getFloatAttr(x.getType(), alpha)));
  });
}

static LogicalResult raiseFusedMatMul(Raiser &raiser, onnx::NodeOp node) {
  Location l = node.getLoc();
  Known &left = raiser.input(node, 0), &right = raiser.known(raiser.source(node.getInputs()[1]));
  bool transA = node.intOr("transA", 0) != 0, transB = node.intOr("transB", 0) != 0;
  float alpha = node.floatOr("alpha", 1);
  Type type = raiser.internalType(left.elementType);
  if (node.intOr("transBatchA", 0) != 0 || node.intOr("transBatchB", 0) != 0)
    return raiser.fail(node, "transBatchA and transBatchB are not supported");
  if (left.rank() < 2 || right.rank() < 2 || !isa<FloatType>(type))
    return raiser.fail(node, "expects floats of rank 2 or more");
  size_t a = left.rank(), c = right.rank();
  const Size depth = left.sizes[transA ? a - 2 : a - 1], other = right.sizes[transB ? c - 1 : c - 2];
  if (depth != other)
    return raiser.fail(node, "cannot contract " + depth.str() + " with " + other.str());
  if (!transA && raiser.isMatrix(right) && type.isF32()) {
    Known product = left;
    product.sizes.back() = right.sizes[transB ? 0 : 1];
    Value x = raiser.tensor(left), matrix = raiser.matrix(right, /*transposed=*/!transB);
    product.state = nullptr;
    product.tensor = LinearOp::create(raiser.builder, l, tensorType(type, product.sizes), x, matrix, Value());
    raiser.set(node, scaled(raiser, std::move(product), alpha));
    return success();
  }
  auto batch = raiser.broadcast(ArrayRef<Size>(left.sizes).drop_back(2), ArrayRef<Size>(right.sizes).drop_back(2));
  if (!batch)
    return raiser.fail(node, "leading dimensions do not broadcast");
  SmallVector<Size> sizes = *batch;
  sizes.push_back(left.sizes[transA ? a - 1 : a - 2]);
  sizes.push_back(right.sizes[transB ? c - 2 : c - 1]);
  Known product = raiser.generated(left.elementType, sizes, [&](OpBuilder &b, ValueRange i) -> Value {
    Value zero = arith::ConstantIndexOp::create(b, l, 0), one = arith::ConstantIndexOp::create(b, l, 1);
    Value none = arith::ConstantOp::create(b, l, b.getZeroAttr(type));
    return scf::ForOp::create(b, l, zero, extentOf(b, l, depth), one, ValueRange(none),
                              [&](OpBuilder &inner, Location, Value k, ValueRange sum) {
                                SmallVector<Value> x(i), y(i);
                                size_t last = i.size() - 1;
                                x[last] = transA ? i[last - 1] : k;
                                x[last - 1] = transA ? k : i[last - 1];
                                y[last] = transB ? k : i[last];
                                y[last - 1] = transB ? i[last] : k;
                                Value term = arith::MulFOp::create(inner, l, raiser.element(inner, left, x),
                                                                   raiser.element(inner, right, y));
                                scf::YieldOp::create(inner, l, arith::AddFOp::create(inner, l, sum[0], term).getResult());
                              })
        .getResult(0);
  });
  raiser.set(node, scaled(raiser, std::move(product), alpha));
  return success();
}

void raise::registerFusedMatMul(Registry &registry) {
  registry.add("com.microsoft::FusedMatMul", raiseFusedMatMul, 2, 2, 1);
}
