// SPDX-License-Identifier: Apache-2.0
//
// Operators on the last two dimensions as matrices: triangles, identities, determinants; and AffineGrid.

#include "passes/Raise/Numbers.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

LogicalResult raiseTrilu(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  bool upper = node.intOr("upper", 1) != 0;
  if (input.rank() < 2)
    return raiser.fail(node, "expects at least rank 2");
  FailureOr<SmallVector<Number>> diagonal = numbersOf(raiser, node, 1);
  if (failed(diagonal))
    return failure();
  if (diagonal->size() > 1)
    return raiser.fail(node, "expects one diagonal");
  Number k = diagonal->empty() ? Number(0) : diagonal->front();
  Type type = raiser.internalType(input.elementType);
  raiser.set(node, raiser.generated(input.elementType, input.sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Value row = indices[indices.size() - 2], column = indices.back();
    Value distance = s.sub(column, row), offset = k.emit(s);
    Value kept = upper ? s.atLeast(distance, offset) : s.atLeast(offset, distance);
    return s.select(kept, raiser.element(b, input, indices), s.zero(type));
  }));
  return success();
}

LogicalResult raiseEyeLike(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t elementType = node.intOr("dtype", input.elementType), k = node.intOr("k", 0);
  Type type = raiser.internalType(elementType);
  if (input.rank() != 2 || !type)
    return raiser.fail(node, "expects rank 2 and a numeric type");
  raiser.set(node, raiser.generated(elementType, input.sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    return s.select(s.equal(s.sub(indices[1], indices[0]), s.index(k)), s.constant(type, 1), s.zero(type));
  }));
  return success();
}

constexpr int64_t kMostRows = 64; // each row of a determinant is three kernels

/// Elimination with the largest pivot of each column. A step takes n × n to (n − 1) × (n − 1) and leaves one factor.
LogicalResult raiseDet(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  std::optional<int64_t> rows = input.rank() >= 2 ? input.sizes.back().constant() : std::nullopt;
  Type type = raiser.internalType(input.elementType);
  if (!rows || input.sizes[input.rank() - 2] != input.sizes.back() || *rows > kMostRows || !isa<FloatType>(type))
    return raiser.fail(node, "expects square matrices of floats with a constant number of rows, at most " + Twine(kMostRows));
  SmallVector<Size> batch(input.sizes.begin(), input.sizes.end() - 2);
  Location l = node.getLoc();
  auto at = [](ValueRange outer, std::initializer_list<Value> inner) {
    SmallVector<Value> all(outer);
    all.append(inner);
    return all;
  };
  Known matrix = input, result;
  result = raiser.generated(input.elementType, batch, [&](OpBuilder &b, ValueRange) { return Expressions{b, l}.constant(type, 1); });
  for (int64_t n = *rows; n > 0; --n) {
    // The row of the largest element of the first column.
    Known pivot = raiser.generated(onnx::ElementType::Int64, batch, [&](OpBuilder &b, ValueRange outer) -> Value {
      Expressions s{b, l};
      auto size = [&](Expressions inner, Value row) -> Value {
        return math::AbsFOp::create(inner.b, l, raiser.element(inner.b, matrix, at(outer, {row, inner.index(0)})));
      };
      SmallVector<Value> found = s.loop({s.index(n)}, {s.index(0), s.zero(type)}, [&](Expressions inner, ArrayRef<Value> loop, ValueRange carried) {
        Value x = size(inner, loop[0]), better = inner.less(carried[1], x);
        return SmallVector<Value>{inner.select(better, loop[0], carried[0]), inner.select(better, x, carried[1])};
      });
      return s.fromIndex(b.getI64Type(), found[0]);
    });
    auto pivotRow = [&](Expressions s, ValueRange outer) { return s.toIndex(raiser.element(s.b, pivot, outer)); };
    Known product = result;
    result = raiser.generated(input.elementType, batch, [&](OpBuilder &b, ValueRange outer) -> Value {
      Expressions s{b, l};
      Value row = pivotRow(s, outer), x = raiser.element(b, matrix, at(outer, {row, s.index(0)}));
      Value sign = s.select(s.equal(row, s.index(0)), s.constant(type, 1), s.constant(type, -1));
      return s.mul(raiser.element(b, product, outer), s.mul(x, sign));
    });
    if (n == 1)
      break;
    SmallVector<Size> sizes(batch);
    sizes.append({Size(n - 1), Size(n - 1)});
    Known whole = matrix;
    matrix = raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
      Expressions s{b, l};
      ValueRange outer = indices.drop_back(2);
      Value first = pivotRow(s, outer), zero = s.index(0), column = s.add(indices.back(), 1);
      // The pivot's row changed places with the first.
      Value row = s.add(indices[indices.size() - 2], 1);
      row = s.select(s.equal(row, first), zero, row);
      auto element = [&](Value r, Value c) { return raiser.element(b, whole, at(outer, {r, c})); };
      Value head = element(first, zero);
      Value singular = s.equal(head, s.zero(type));
      Value factor = s.div(element(row, zero), s.select(singular, s.constant(type, 1), head));
      return s.sub(element(row, column), s.mul(factor, element(first, column)));
    });
  }
  raiser.set(node, std::move(result));
  return success();
}

/// Places from −1 to 1 along each dimension, through the affine map theta [N, d, d + 1].
LogicalResult raiseAffineGrid(Raiser &raiser, onnx::NodeOp node) {
  Known &theta = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> size = numbersOf(raiser, node, 1);
  if (failed(size))
    return failure();
  bool corners = node.intOr("align_corners", 0) != 0;
  int64_t dims = int64_t(size->size()) - 2;
  Type type = raiser.internalType(theta.elementType);
  if ((dims != 2 && dims != 3) || theta.rank() != 3 || theta.sizes[1] != Size(dims) || theta.sizes[2] != Size(dims + 1) ||
      !isa<FloatType>(type))
    return raiser.fail(node, "expects theta of N x 2 x 3 with a size of 4 numbers, or of N x 3 x 4 with 5");
  SmallVector<Number> extents;
  for (int64_t i = 0; i != dims + 2; ++i)
    if (i != 1)
      extents.push_back((*size)[i]);
  Check check{extents.front(), theta.sizes[0], "the batches of size and theta"};
  extents.front() = theta.sizes[0];
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents, check);
  if (failed(sizes))
    return failure();
  sizes->push_back(dims);
  raiser.set(node, raiser.generated(theta.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Value row = indices.back();
    Value sum = raiser.element(b, theta, {indices[0], row, s.index(dims)});
    for (int64_t i = 0; i != dims; ++i) {
      // Coordinates are in the order x, y, z: the last dimension comes first.
      int64_t dim = dims - i;
      Value at = s.fromIndex(type, indices[dim]), extent = s.fromIndex(type, s.index((*sizes)[dim]));
      Value one = s.constant(type, 1), two = s.constant(type, 2);
      Value place = corners ? s.sub(s.mul(at, s.div(two, s.sub(extent, one))), one)
                            : s.sub(s.div(s.add(s.mul(at, two), one), extent), one);
      if (corners) // one place alone is at the beginning
        place = s.select(s.equal(extent, one), s.constant(type, -1), place);
      sum = s.add(sum, s.mul(raiser.element(b, theta, {indices[0], row, s.index(i)}), place));
    }
    return sum;
  }));
  return success();
}

} // namespace

void raise::registerMatrices(Registry &registry) {
  registry.add("Trilu", raiseTrilu, 1, 2, 14);
  registry.add("EyeLike", raiseEyeLike, 1, 1, 9);
  registry.add("Det", raiseDet, 1, 1, 11);
  registry.add("AffineGrid", raiseAffineGrid, 2, 2, 20);
}
