// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements: each output element is one input element, found by index arithmetic. On contents that are
// known the same arithmetic is done here and now.

#include "passes/Raise/AttentionForm.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

Value indexConstant(OpBuilder &b, Location l, const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return arith::ConstantIndexOp::create(b, l, *constant);
  return SizeOp::create(b, l, size);
}

/// Moves contents where there are any: `position` maps each output position to an input position.
template <typename Position>
void moveContents(const Known &input, Known &result, size_t count, Position position) {
  if (input.integers) {
    result.integers.emplace();
    for (size_t i = 0; i != count; ++i)
      result.integers->push_back((*input.integers)[position(i)]);
  }
  if (input.reals) {
    result.reals.emplace();
    for (size_t i = 0; i != count; ++i)
      result.reals->push_back((*input.reals)[position(i)]);
  }
}

LogicalResult raiseTranspose(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  SmallVector<int64_t> permutation;
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("perm")))
    permutation.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  else
    for (size_t i = input.rank(); i-- > 0;)
      permutation.push_back(i);
  SmallVector<bool> seen(input.rank(), false);
  if (permutation.size() != input.rank())
    return raiser.fail(node, "perm must have " + Twine(input.rank()) + " axes");
  SmallVector<Size> sizes;
  for (int64_t axis : permutation) {
    if (axis < 0 || axis >= int64_t(input.rank()) || seen[axis])
      return raiser.fail(node, "perm is no permutation");
    seen[axis] = true;
    sizes.push_back(input.sizes[axis]);
  }
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    SmallVector<Value> at(input.rank());
    for (auto [to, from] : llvm::enumerate(permutation))
      at[from] = indices[to];
    return raiser.element(b, input, at);
  }));
  return success();
}

/// One axis of a slice: output index i is input index start + i·step.
struct Range {
  Size start = 0;
  int64_t step = 1;
};

/// The bounds of a slice of an axis of `extent`. What is clamped at run time in ONNX must be decidable here.
std::optional<std::pair<Range, Size>> sliceAxis(const Size &extent, Size start, Size end, int64_t step) {
  if (step != 1 && !(extent.isConstant() && start.isConstant() && end.isConstant()))
    return std::nullopt;
  if (extent.isConstant() && start.isConstant() && end.isConstant()) {
    int64_t n = *extent.constant(), first = *start.constant(), last = *end.constant();
    first += first < 0 ? n : 0;
    last += last < 0 ? n : 0;
    if (n == 0)
      return std::pair(Range{0, step}, Size(0));
    first = std::clamp<int64_t>(first, 0, step > 0 ? n : n - 1);
    last = std::clamp<int64_t>(last, step > 0 ? 0 : -1, n);
    int64_t distance = step > 0 ? last - first : first - last, stride = step > 0 ? step : -step;
    return std::pair(Range{first, step}, Size(distance <= 0 ? 0 : (distance + stride - 1) / stride));
  }
  auto resolve = [&](const Size &at) -> Size {
    if (std::optional<int64_t> constant = at.constant()) {
      if (*constant >= int64_t(1) << 30) // "to the end"
        return extent;
      if (*constant < 0)
        return extent + at;
    }
    return at;
  };
  Size first = resolve(start), last = resolve(end);
  if (!first.isAtLeast(0) || !last.isAtLeast(first) || !extent.isAtLeast(last))
    return std::nullopt;
  return std::pair(Range{first, 1}, last - first);
}

LogicalResult raiseSlice(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  // Attributes before opset 10, inputs since.
  auto list = [&](unsigned position, StringRef name) -> std::optional<SmallVector<Size>> {
    if (raiser.hasInput(node, position)) {
      Known &what = raiser.input(node, position);
      if (!what.integers)
        return std::nullopt;
      return *what.integers;
    }
    SmallVector<Size> values;
    if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name)))
      for (int64_t value : array.asArrayRef())
        values.push_back(value);
    return values;
  };
  auto starts = list(1, "starts"), ends = list(2, "ends"), axes = list(3, "axes"), steps = list(4, "steps");
  if (!starts || !ends || !axes || !steps)
    return raiser.fail(node, "its bounds depend on data");
  if (axes->empty())
    for (size_t i = 0; i != starts->size(); ++i)
      axes->push_back(int64_t(i));
  if (steps->empty())
    steps->assign(starts->size(), Size(1));
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return raiser.fail(node, "starts, ends, axes and steps differ in length");
  SmallVector<Range> ranges(input.rank());
  Known result;
  result.elementType = input.elementType;
  result.sizes = input.sizes;
  for (size_t i = 0; i != starts->size(); ++i) {
    std::optional<int64_t> axis = (*axes)[i].constant(), step = (*steps)[i].constant();
    if (!axis || !step || *step == 0)
      return raiser.fail(node, "axes and steps must be constant, and steps not 0");
    int64_t at = *axis < 0 ? *axis + int64_t(input.rank()) : *axis;
    if (at < 0 || at >= int64_t(input.rank()))
      return raiser.fail(node, "axis " + Twine(*axis) + " is outside rank " + Twine(input.rank()));
    auto sliced = sliceAxis(input.sizes[at], (*starts)[i], (*ends)[i], *step);
    if (!sliced)
      return raiser.fail(node, "whether its bounds lie inside the dimension of size " + input.sizes[at].str() +
                                   " depends on the input (a slice from start to end, or with constant sizes, is supported)");
    ranges[at] = sliced->first;
    result.sizes[at] = sliced->second;
  }
  if (result.sizes == input.sizes &&
      llvm::all_of(ranges, [](const Range &r) { return r.step == 1 && r.start == Size(0); })) {
    raiser.set(node, Known(input));
    return success();
  }
  std::optional<int64_t> count = elementCount(result.sizes).constant();
  if ((input.integers || input.reals) && count && input.rank() == 1) {
    moveContents(input, result, *count,
                 [&](size_t i) { return *ranges[0].start.constant() + int64_t(i) * ranges[0].step; });
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(input.elementType, result.sizes, [&](OpBuilder &b, ValueRange indices) {
    Location l = node.getLoc();
    SmallVector<Value> at;
    for (auto [index, range] : llvm::zip(indices, ranges)) {
      Value i = index;
      if (range.step != 1)
        i = arith::MulIOp::create(b, l, i, arith::ConstantIndexOp::create(b, l, range.step));
      if (range.start != Size(0))
        i = arith::AddIOp::create(b, l, i, indexConstant(b, l, range.start));
      at.push_back(i);
    }
    return raiser.element(b, input, at);
  }));
  return success();
}

/// The part of a Concat along `axis` that holds each index, by nested selects. All parts are read, at indices that are
/// clamped into them, so that no load leaves its tensor.
Value concatElement(Raiser &raiser, OpBuilder &b, Location l, ArrayRef<Known *> parts, size_t axis,
                    ValueRange indices) {
  Value result;
  Size start = 0;
  Value zero = arith::ConstantIndexOp::create(b, l, 0);
  for (Known *part : parts) {
    if (part->sizes[axis] == Size(0))
      continue;
    SmallVector<Value> at(indices);
    Value begin = indexConstant(b, l, start);
    Value local = arith::SubIOp::create(b, l, indices[axis], begin);
    Value last = indexConstant(b, l, part->sizes[axis] - Size(1));
    local = arith::MaxSIOp::create(b, l, arith::MinSIOp::create(b, l, local, last), zero);
    at[axis] = local;
    // A part may be empty at run time; then nothing may be read.
    Value value;
    if (part->sizes[axis].isConstant()) {
      value = raiser.element(b, *part, at);
    } else {
      Type type = raiser.internalType(part->elementType);
      Value some = arith::CmpIOp::create(b, l, arith::CmpIPredicate::sge, last, zero);
      auto branch = scf::IfOp::create(b, l, TypeRange(type), some, /*withElseRegion=*/true);
      OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
      scf::YieldOp::create(then, l, raiser.element(then, *part, at));
      scf::YieldOp::create(otherwise, l,
                           arith::ConstantOp::create(otherwise, l, otherwise.getZeroAttr(type)).getResult());
      value = branch.getResult(0);
    }
    if (!result) {
      result = value;
    } else {
      Value here = arith::CmpIOp::create(b, l, arith::CmpIPredicate::sge, indices[axis], begin);
      result = arith::SelectOp::create(b, l, here, value, result);
    }
    start = start + part->sizes[axis];
  }
  return result;
}

LogicalResult raiseConcat(Raiser &raiser, onnx::NodeOp node) {
  SmallVector<Known *> parts;
  for (Value operand : node.getInputs())
    parts.push_back(&raiser.known(operand));
  int64_t rank = parts.front()->rank(), axis = node.intOr("axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis is outside rank " + Twine(rank));
  Known result;
  result.elementType = parts.front()->elementType;
  result.sizes = parts.front()->sizes;
  result.sizes[axis] = 0;
  for (Known *part : parts) {
    if (part->rank() != size_t(rank))
      return raiser.fail(node, "its inputs differ in rank");
    for (int64_t i = 0; i != rank; ++i)
      if (i != axis && part->sizes[i] != result.sizes[i])
        return raiser.fail(node, "its inputs differ in dimension " + Twine(i) + ": " +
                                     part->sizes[i].str() + " and " + result.sizes[i].str());
    result.sizes[axis] = result.sizes[axis] + part->sizes[axis];
  }
  if (raiser.isCacheOf(node.getInputs()[0], node)) {
    std::optional<Known> present = appendStep(raiser, node, node.getInputs()[0], *parts.back());
    if (!present)
      return failure();
    raiser.set(node, std::move(*present));
    return success();
  }
  bool integers = rank == 1 && llvm::all_of(parts, [](Known *k) { return k->integers.has_value(); });
  bool reals = rank == 1 && llvm::all_of(parts, [](Known *k) { return k->reals.has_value(); });
  if (integers || reals) {
    if (integers)
      result.integers.emplace();
    else
      result.reals.emplace();
    for (Known *part : parts) {
      if (integers)
        llvm::append_range(*result.integers, *part->integers);
      else
        llvm::append_range(*result.reals, *part->reals);
    }
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(result.elementType, result.sizes, [&](OpBuilder &b, ValueRange indices) {
    return concatElement(raiser, b, node.getLoc(), parts, axis, indices);
  }));
  return success();
}

LogicalResult raiseSplit(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank(), axis = node.intOr("axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis is outside rank " + Twine(rank));
  SmallVector<Size> parts;
  if (raiser.hasInput(node, 1)) {
    if (!raiser.input(node, 1).integers)
      return raiser.fail(node, "the sizes of its parts depend on data");
    parts = *raiser.input(node, 1).integers;
  } else if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("split"))) {
    for (int64_t size : given.asArrayRef())
      parts.push_back(size);
  } else {
    std::optional<int64_t> extent = input.sizes[axis].constant();
    int64_t count = node.getOutputs().size();
    if (!extent)
      return raiser.fail(node, "a dimension that is not constant cannot be split evenly");
    int64_t each = (*extent + count - 1) / count;
    for (int64_t i = 0; i != count; ++i)
      parts.push_back(std::min(each, *extent - std::min(*extent, i * each)));
  }
  if (parts.size() != node.getOutputs().size())
    return raiser.fail(node, "it has " + Twine(parts.size()) + " sizes for " +
                                 Twine(node.getOutputs().size()) + " outputs");
  Size start = 0;
  for (auto [output, part] : llvm::enumerate(parts)) {
    SmallVector<Size> sizes(input.sizes);
    sizes[axis] = part;
    Size first = start;
    raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
      SmallVector<Value> at(indices);
      if (first != Size(0))
        at[axis] = arith::AddIOp::create(b, node.getLoc(), at[axis], indexConstant(b, node.getLoc(), first));
      return raiser.element(b, input, at);
    }), output);
    start = start + part;
  }
  if (start != input.sizes[axis])
    return raiser.fail(node, "its parts sum to " + start.str() + ", not to " + input.sizes[axis].str());
  return success();
}

LogicalResult raiseGather(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &ids = raiser.input(node, 1);
  int64_t rank = data.rank(), axis = node.intOr("axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis is outside rank " + Twine(rank));
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
  raiser.limitIndices(node.getInputs()[1], data.sizes[axis]);
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
    Location l = node.getLoc();
    Value id = raiser.element(b, ids, indices.slice(axis, ids.rank()));
    Value at = arith::IndexCastOp::create(b, l, b.getIndexType(), id);
    Value extent = indexConstant(b, l, data.sizes[axis]);
    Value zero = arith::ConstantIndexOp::create(b, l, 0);
    Value negative = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, at, zero);
    at = arith::SelectOp::create(b, l, negative, arith::AddIOp::create(b, l, at, extent), at);
    // An index outside is the caller's mistake; it must not become a read outside.
    Value last = arith::SubIOp::create(b, l, extent, arith::ConstantIndexOp::create(b, l, 1));
    at = arith::MaxSIOp::create(b, l, arith::MinSIOp::create(b, l, at, last), zero);
    SmallVector<Value> all(indices.begin(), indices.begin() + axis);
    all.push_back(at);
    llvm::append_range(all, indices.drop_front(axis + ids.rank()));
    return raiser.element(b, data, all);
  }));
  return success();
}

} // namespace

void raise::registerMovement(Registry &registry) {
  registry.add("Transpose", raiseTranspose, 1, 1);
  registry.add("Slice", raiseSlice, 1, 5);
  registry.add("Concat", raiseConcat, 1, kAnyNumber);
  registry.add("Split", raiseSplit, 1, 2);
  registry.add("Gather", raiseGather, 2, 2);
}
