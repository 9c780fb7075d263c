// SPDX-License-Identifier: Apache-2.0
//
// MatMul and Gemm. By a constant matrix they are otf.linear; between activations a loop in a generate, unless they end an
// attention.

#include "passes/Raise/Numbers.h"
#include "passes/Raise/Quantized.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// y = x Wᵀ for a constant W, which the file holds as K x N if `transposed`.
Known linear(Raiser &raiser, onnx::NodeOp node, Known &input, Known &weight, bool transposed, Value bias = {}) {
  Value matrix = raiser.matrix(weight, transposed);
  Activations activations = activationsOf(raiser, input, weight);
  Value x = raiser.tensor(*activations.value);
  // Leading dimensions that an exporter flattened for a Gemm need not be: a reshape behind the linear
  // meets the one that undoes it.
  if (auto reshape = x.getDefiningOp<ReshapeOp>();
      reshape && !reshape.getChecked() && sizesOf(cast<RankedTensorType>(reshape.getSource().getType())).back() == input.sizes.back())
    x = reshape.getSource();
  x = roundedTo(raiser, x, activations.grid);
  Known product;
  product.elementType = input.elementType;
  product.sizes = sizesOf(cast<RankedTensorType>(x.getType()));
  product.sizes.back() = cast<MatrixType>(matrix.getType()).getRows();
  product.tensor = LinearOp::create(raiser.builder, node.getLoc(),
                                    tensorType(raiser.builder.getF32Type(), product.sizes), x, matrix, bias);
  SmallVector<Size> sizes(input.sizes);
  sizes.back() = product.sizes.back();
  return raiser.reshaped(product, sizes);
}

/// The matrix behind a MatMul's right operand: a constant, or a transpose of one (a tied head).
std::pair<Known *, bool> constantMatrix(Raiser &raiser, Value operand) {
  operand = raiser.source(operand);
  if (raiser.isMatrix(raiser.known(operand)))
    return {&raiser.known(operand), /*transposed=*/true};
  auto permutation = [](onnx::NodeOp node) {
    return dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("perm"));
  };
  if (onnx::NodeOp transpose = raiser.node(operand, "Transpose"); // without perm it swaps two dimensions
      transpose && (!permutation(transpose) ||
                    permutation(transpose).asArrayRef() == ArrayRef<int64_t>({1, 0}))) {
    Known &inner = raiser.known(raiser.source(transpose.getInputs()[0]));
    if (raiser.isMatrix(inner))
      return {&inner, /*transposed=*/false};
  }
  return {nullptr, false};
}

/// Σ_k left(k) · right(k) in a generate over `sizes`.
Known contraction(Raiser &raiser, onnx::NodeOp node, int64_t elementType, ArrayRef<Size> sizes, const Size &depth,
                  function_ref<std::pair<Value, Value>(OpBuilder &, ValueRange, Value)> operands) {
  Type type = raiser.internalType(elementType);
  return raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    return s.fold(s.index(depth), s.zero(type), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      auto [x, y] = operands(inner.b, indices, loop[0]);
      return inner.add(carried, inner.mul(x, y));
    });
  });
}

/// Sizes of a product; nothing, and an error, where the operands do not fit.
std::optional<SmallVector<Size>> productSizes(Raiser &raiser, onnx::NodeOp node, const Known &left, const Known &right) {
  Size depth = left.sizes.back(), other = right.sizes[right.rank() - 2];
  if (depth.isConstant() && other.isConstant() && depth != other) {
    (void)raiser.fail(node, "cannot contract " + depth.str() + " with " + other.str());
    return std::nullopt;
  }
  FailureOr<SmallVector<Size>> sizes = broadcastOrCheck(raiser, node, ArrayRef<Size>(left.sizes).drop_back(2),
                                                        ArrayRef<Size>(right.sizes).drop_back(2));
  if (failed(sizes) || failed(settled(raiser, node, {}, Check{depth, other, "the sizes that it contracts"})))
    return std::nullopt;
  sizes->push_back(left.sizes[left.rank() - 2]);
  sizes->push_back(right.sizes.back());
  return *sizes;
}

/// The product of two values of at least two dimensions, by loops.
Known product(Raiser &raiser, onnx::NodeOp node, Known &left, Known &right, ArrayRef<Size> sizes) {
  return contraction(raiser, node, left.elementType, sizes, left.sizes.back(),
                     [&](OpBuilder &b, ValueRange indices, Value k) {
                       SmallVector<Value> l(indices), r(indices);
                       l.back() = k;
                       r[r.size() - 2] = k;
                       return std::pair(raiser.element(b, left, l), raiser.element(b, right, r));
                     });
}

/// A vector is a row on the left and a column on the right, and the product does not have that dimension.
LogicalResult raiseVectorProduct(Raiser &raiser, onnx::NodeOp node) {
  Known left = raiser.input(node, 0), right = raiser.input(node, 1);
  if (left.rank() == 0 || right.rank() == 0)
    return raiser.fail(node, "an operand is a scalar, which MatMul does not take (use Mul)");
  bool row = left.rank() == 1, column = right.rank() == 1;
  if (row)
    left = raiser.reshaped(left, {Size(1), left.sizes[0]});
  if (column)
    right = raiser.reshaped(right, {right.sizes[0], Size(1)});
  std::optional<SmallVector<Size>> sizes = productSizes(raiser, node, left, right);
  if (!sizes)
    return failure();
  Known whole = raiser.isMatrix(right) && isa<Float32Type>(raiser.internalType(left.elementType))
                    ? linear(raiser, node, left, right, /*transposed=*/true)
                    : product(raiser, node, left, right, *sizes);
  if (column)
    sizes->pop_back();
  if (row)
    sizes->erase(sizes->end() - (column ? 1 : 2));
  raiser.set(node, raiser.reshaped(whole, *sizes));
  return success();
}

LogicalResult raiseMatMul(Raiser &raiser, onnx::NodeOp node) {
  Known &left = raiser.input(node, 0), &right = raiser.input(node, 1);
  if (left.rank() < 2 || right.rank() < 2)
    return raiseVectorProduct(raiser, node);
  std::optional<SmallVector<Size>> sizes = productSizes(raiser, node, left, right);
  if (!sizes)
    return failure();
  auto [weight, transposed] = constantMatrix(raiser, node.getInputs()[1]);
  if (weight && isa<Float32Type>(raiser.internalType(left.elementType))) {
    Known x = left;
    if (Size depth = right.sizes[right.rank() - 2]; x.sizes.back() != depth) { // checked above
      SmallVector<Size> known(x.sizes);
      known.back() = depth;
      x = raiser.reshapedChecked(x, known);
    }
    raiser.set(node, linear(raiser, node, x, *weight, transposed));
    return success();
  }
  if (recognizeAttention(raiser, node))
    return success();
  raiser.set(node, product(raiser, node, left, right, *sizes));
  return success();
}

LogicalResult raiseGemm(Raiser &raiser, onnx::NodeOp node) {
  Known &a = raiser.input(node, 0), &b = raiser.input(node, 1);
  bool transA = node.intOr("transA", 0) != 0, transB = node.intOr("transB", 0) != 0;
  float alpha = node.floatOr("alpha", 1), beta = node.floatOr("beta", 1);
  if (a.rank() != 2 || b.rank() != 2)
    return raiser.fail(node, "operands must have rank 2");
  Size rows = a.sizes[transA ? 1 : 0], depth = a.sizes[transA ? 0 : 1];
  if (depth != b.sizes[transB ? 1 : 0])
    return raiser.fail(node, "cannot contract " + depth.str() + " with " + b.sizes[transB ? 1 : 0].str());
  bool hasC = raiser.hasInput(node, 2) && beta != 0;
  bool byMatrix = raiser.isMatrix(b) && !transA && isa<Float32Type>(raiser.internalType(a.elementType));
  // A plain bias belongs to the linear.
  if (byMatrix && hasC && alpha == 1 && beta == 1) {
    Known &c = raiser.input(node, 2);
    if (c.rank() == 1 && c.sizes[0] == b.sizes[transB ? 0 : 1]) {
      Value bias = raiser.tensor(c);
      raiser.set(node, linear(raiser, node, a, b, /*transposed=*/!transB, bias));
      return success();
    }
  }
  Known product;
  if (byMatrix)
    product = linear(raiser, node, a, b, /*transposed=*/!transB);
  else
    product = contraction(raiser, node, a.elementType, {rows, b.sizes[transB ? 0 : 1]}, depth,
                          [&](OpBuilder &inner, ValueRange at, Value k) {
                            Value x = transA ? raiser.element(inner, a, {k, at[0]}) : raiser.element(inner, a, {at[0], k});
                            Value y = transB ? raiser.element(inner, b, {at[1], k}) : raiser.element(inner, b, {k, at[1]});
                            return std::pair(x, y);
                          });
  if (!hasC && alpha == 1) {
    raiser.set(node, std::move(product));
    return success();
  }
  if (hasC && raiser.broadcast(raiser.input(node, 2).sizes, product.sizes) != product.sizes)
    return raiser.fail(node, "C does not broadcast to the product");
  raiser.set(node, raiser.generated(product.elementType, product.sizes, [&](OpBuilder &inner, ValueRange at) -> Value {
    Expressions s{inner, node.getLoc()};
    Type type = raiser.internalType(product.elementType);
    // Integers are scaled in f64, and the sum is cut towards zero.
    bool exact = isa<FloatType>(type) || (alpha == std::trunc(alpha) && beta == std::trunc(beta));
    Type wide = exact ? type : inner.getF64Type();
    bool isUnsigned = raiser.isUnsigned(product.elementType);
    auto scaled = [&](Value x, float factor) -> Value {
      if (!exact)
        x = isUnsigned ? arith::UIToFPOp::create(inner, s.l, wide, x).getResult()
                       : arith::SIToFPOp::create(inner, s.l, wide, x).getResult();
      return factor == 1 ? x : s.mul(x, s.constant(wide, factor));
    };
    Value sum = scaled(raiser.element(inner, product, at), alpha);
    if (hasC)
      sum = s.add(sum, scaled(raiser.element(inner, raiser.input(node, 2), at), beta));
    if (exact)
      return sum;
    return isUnsigned ? arith::FPToUIOp::create(inner, s.l, type, sum).getResult()
                      : arith::FPToSIOp::create(inner, s.l, type, sum).getResult();
  }));
  return success();
}

} // namespace

Known raise::raiseLinear(Raiser &raiser, onnx::NodeOp node, Known &x, Known &weight, bool transposed, Value bias) {
  return linear(raiser, node, x, weight, transposed, bias);
}

bool raise::recognizeBias(Raiser &raiser, onnx::NodeOp add) {
  for (unsigned side : {0u, 1u}) {
    Known &sum = raiser.input(add, side), &bias = raiser.input(add, 1 - side);
    if (!sum.tensor || bias.rank() != 1 || !(bias.constant || bias.reals))
      continue;
    // Bias may come after a reshape of the product's leading dimensions; only the plain case is a linear's.
    auto op = sum.tensor.getDefiningOp<LinearOp>();
    if (!op || op.getBias() || bias.sizes[0] != sum.sizes.back() ||
        !isa<Float32Type>(raiser.internalType(bias.elementType)))
      continue;
    Known result = sum;
    Value vector = raiser.tensor(bias);
    result.tensor = LinearOp::create(raiser.builder, add.getLoc(), op.getType(), op.getInput(), op.getWeight(), vector,
                                     op.getWindowAttr());
    raiser.set(add, std::move(result));
    return true;
  }
  return false;
}

void raise::registerContractions(Registry &registry) {
  registry.add("MatMul", raiseMatMul, 2, 2);
  registry.add("Gemm", raiseGemm, 2, 3);
}
