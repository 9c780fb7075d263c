// SPDX-License-Identifier: Apache-2.0
//
// Operators that read at indices which are data: the gathers, OneHot. Negative indices count from the end.
// An index outside ends the run with a sentence; the bodies see to it all the same that no read is outside.

#include "passes/Raise/IndexLimits.h"
#include "passes/Raise/Numbers.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

LogicalResult raiseGather(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &ids = raiser.input(node, 1);
  int64_t rank = data.rank();
  std::optional<int64_t> inside = axisInside(node.intOr("axis", 0), rank);
  if (!inside)
    return raiser.fail(node, "axis is outside rank " + Twine(rank));
  int64_t axis = *inside;
  Known result;
  result.elementType = data.elementType;
  result.sizes.assign(data.sizes.begin(), data.sizes.begin() + axis);
  result.sizes.append(ids.sizes.begin(), ids.sizes.end());
  result.sizes.append(data.sizes.begin() + axis + 1, data.sizes.end());

  std::optional<SmallVector<int64_t>> positions = raiser.constants(node.getInputs()[1]);
  if ((data.integers || data.reals) && rank == 1 && positions) {
    int64_t extent = *data.sizes[0].constant();
    for (int64_t &position : *positions) {
      if (position < -extent || position >= extent)
        return raiser.fail(node, "index " + Twine(position) + " is outside " + Twine(extent));
      position += position < 0 ? extent : 0;
    }
    moveContents(data, result, positions->size(), [&](size_t i) { return (*positions)[i]; });
    raiser.set(node, std::move(result));
    return success();
  }
  if (failed(checkIndices(raiser, node, node.getInputs()[1], data.sizes[axis])))
    return failure();
  // Rows of a constant, or of a transposed one: a head of [K, N] that is the table too.
  Value table;
  if (axis == 0 && !ids.integers && raiser.isMatrix(data))
    table = raiser.matrix(data, /*transposed=*/false);
  else if (onnx::NodeOp transpose = raiser.node(node.getInputs()[0], "Transpose");
           transpose && axis == 0 && !ids.integers && data.sizes != raiser.input(transpose, 0).sizes)
    table = raiser.matrix(raiser.known(raiser.source(transpose.getInputs()[0])), /*transposed=*/true);
  if (table) {
    result.tensor = EmbeddingOp::create(raiser.builder, node.getLoc(),
                                        tensorType(raiser.builder.getF32Type(), result.sizes),
                                        raiser.tensor(ids), table);
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(data.elementType, result.sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    Value id = s.toIndex(raiser.element(b, ids, indices.slice(axis, ids.rank())));
    SmallVector<Value> all(indices.begin(), indices.begin() + axis);
    all.push_back(s.position(id, s.index(data.sizes[axis])));
    llvm::append_range(all, indices.drop_front(axis + ids.rank()));
    return guardedElement(raiser, s, data, all);
  }));
  return success();
}

LogicalResult raiseGatherElements(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &ids = raiser.input(node, 1);
  std::optional<int64_t> axis = axisInside(node.intOr("axis", 0), data.rank());
  if (!axis || ids.rank() != data.rank())
    return raiser.fail(node, "its inputs must have one rank, and axis must be inside it");
  if (failed(checkIndices(raiser, node, node.getInputs()[1], data.sizes[*axis])))
    return failure();
  raiser.set(node, raiser.generated(data.elementType, ids.sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    for (size_t i = 0; i != at.size(); ++i) {
      if (int64_t(i) == *axis)
        at[i] = s.position(s.toIndex(raiser.element(b, ids, indices)), s.index(data.sizes[i]));
      else if (!data.sizes[i].isAtLeast(ids.sizes[i]))
        at[i] = s.clamp(at[i], s.index(data.sizes[i]));
    }
    return guardedElement(raiser, s, data, at);
  }));
  return success();
}

/// The last dimension of the indices is a position in the dimensions of data behind the batch's.
LogicalResult raiseGatherND(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &ids = raiser.input(node, 1);
  int64_t batch = node.intOr("batch_dims", 0);
  std::optional<int64_t> width = ids.rank() ? ids.sizes.back().constant() : std::nullopt;
  if (!width)
    return raiser.fail(node, "the last dimension of its indices must be constant");
  if (batch < 0 || batch >= int64_t(ids.rank()) || *width < 0 || batch + *width > int64_t(data.rank()))
    return raiser.fail(node, "indices of " + Twine(*width) + " numbers behind " + Twine(batch) +
                                 " batch dimensions do not fit rank " + Twine(data.rank()));
  for (int64_t i = 0; i != batch; ++i)
    if (data.sizes[i] != ids.sizes[i])
      return raiser.fail(node, "batch dimension " + Twine(i) + " is " + data.sizes[i].str() + " in data and " +
                                   ids.sizes[i].str() + " in indices");
  if (*width > 0 && failed(checkIndices(raiser, node, node.getInputs()[1], ArrayRef(data.sizes).slice(batch, *width))))
    return failure();
  size_t outer = ids.rank() - 1;
  SmallVector<Size> sizes(ids.sizes.begin(), ids.sizes.end() - 1);
  sizes.append(data.sizes.begin() + batch + *width, data.sizes.end());
  raiser.set(node, raiser.generated(data.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices.begin(), indices.begin() + batch), id(indices.begin(), indices.begin() + outer);
    id.push_back({});
    for (int64_t i = 0; i != *width; ++i) {
      id.back() = s.index(i);
      at.push_back(s.position(s.toIndex(raiser.element(b, ids, id)), s.index(data.sizes[batch + i])));
    }
    llvm::append_range(at, indices.drop_front(outer));
    return guardedElement(raiser, s, data, at);
  }));
  return success();
}

LogicalResult raiseOneHot(Raiser &raiser, onnx::NodeOp node) {
  Known &ids = raiser.input(node, 0), &values = raiser.input(node, 2);
  std::optional<int64_t> axis = axisInside(node.intOr("axis", -1), ids.rank() + 1);
  FailureOr<SmallVector<Number>> depth = numbersOf(raiser, node, 1);
  if (failed(depth))
    return failure();
  if (!axis || depth->size() != 1 || elementCount(values.sizes) != Size(2))
    return raiser.fail(node, "expects an axis inside rank " + Twine(ids.rank() + 1) + ", one depth and two values");
  FailureOr<SmallVector<Size>> extent = settled(raiser, node, maximum(depth->front(), 0));
  if (failed(extent))
    return failure();
  SmallVector<Size> sizes(ids.sizes);
  sizes.insert(sizes.begin() + *axis, extent->front());
  raiser.set(node, raiser.generated(values.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    at.erase(at.begin() + *axis);
    Value id = s.toIndex(raiser.element(b, ids, at));
    id = s.select(s.less(id, s.index(0)), s.add(id, s.index(extent->front())), id);
    Value on = raiser.element(b, values, s.index(1)), off = raiser.element(b, values, s.index(0));
    return s.select(s.equal(id, indices[*axis]), on, off);
  }));
  return success();
}

} // namespace

void raise::registerIndexing(Registry &registry) {
  registry.add("Gather", raiseGather, 2, 2);
  registry.add("GatherElements", raiseGatherElements, 2, 2, 11);
  registry.add("GatherND", raiseGatherND, 2, 2, 11);
  registry.add("OneHot", raiseOneHot, 3, 3, 9);
}
