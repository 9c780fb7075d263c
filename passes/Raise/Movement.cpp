// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements: each output element is one input element, found by index arithmetic. On contents that are
// known the same arithmetic is done here and now.

#include "passes/Raise/AttentionForm.h"
#include "passes/Raise/Numbers.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

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

/// The part of a Concat along `axis` that holds each index, by nested selects. All parts are read, at indices that are
/// clamped into them, so that no load leaves its tensor.
Value concatElement(Raiser &raiser, Expressions s, ArrayRef<Known *> parts, size_t axis, ValueRange indices) {
  Value result;
  Size start = 0;
  Value zero = s.index(0);
  Type type = raiser.internalType(parts.front()->elementType);
  for (Known *part : parts) {
    if (part->sizes[axis] == Size(0))
      continue;
    SmallVector<Value> at(indices);
    Value begin = s.index(start);
    Value local = s.sub(indices[axis], begin);
    Value last = s.index(part->sizes[axis] - Size(1));
    at[axis] = s.max(s.min(local, last), zero);
    // A part may be empty at run time; then nothing may be read.
    Value value = part->sizes[axis].isConstant()
                      ? raiser.element(s.b, *part, at)
                      : s.whenElseZero(s.atLeast(last, zero), type,
                                       [&](Expressions then) { return raiser.element(then.b, *part, at); });
    result = result ? s.select(s.atLeast(indices[axis], begin), value, result) : value;
    start = start + part->sizes[axis];
  }
  return result ? result : s.zero(type); // of no parts with elements nothing is asked
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
  std::vector<Check> checks;
  for (Known *part : parts) {
    if (part->rank() != size_t(rank))
      return raiser.fail(node, "its inputs differ in rank");
    for (int64_t i = 0; i != rank; ++i)
      if (i != axis && part->sizes[i] != result.sizes[i]) {
        checks.push_back({part->sizes[i], result.sizes[i], "the sizes of dimension " + std::to_string(i) + " of its inputs"});
        if (part->sizes[i].isConstant()) // a constant tells more
          result.sizes[i] = part->sizes[i];
      }
    result.sizes[axis] = result.sizes[axis] + part->sizes[axis];
  }
  if (failed(settled(raiser, node, {}, checks)))
    return failure();
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
    return concatElement(raiser, Expressions{b, node.getLoc()}, parts, axis, indices);
  }));
  return success();
}

LogicalResult raiseTile(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> repeats = numbersOf(raiser, node, 1);
  if (failed(repeats))
    return failure();
  if (repeats->size() != input.rank())
    return raiser.fail(node, "it has " + Twine(repeats->size()) + " repeats for " + Twine(input.rank()) + " dimensions");
  SmallVector<Number> extents;
  for (auto [size, times] : llvm::zip(input.sizes, *repeats))
    extents.push_back(Number(size) * times); // a negative size is refused
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents);
  if (failed(sizes))
    return failure();
  if (*sizes == input.sizes) {
    raiser.set(node, Known(input));
    return success();
  }
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    for (size_t i = 0; i != at.size(); ++i)
      if ((*sizes)[i] != input.sizes[i] && input.sizes[i] != Size(1))
        at[i] = s.rem(at[i], s.index(input.sizes[i]));
    return raiser.element(b, input, at);
  }));
  return success();
}

/// The first lengths[i] elements along the time axis come in reverse, the rest as they are.
LogicalResult raiseReverseSequence(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0), &lengths = raiser.input(node, 1);
  std::optional<int64_t> time = axisInside(node.intOr("time_axis", 0), input.rank());
  std::optional<int64_t> batch = axisInside(node.intOr("batch_axis", 1), input.rank());
  if (!time || !batch || *time == *batch)
    return raiser.fail(node, "time_axis and batch_axis must be two axes inside rank " + Twine(input.rank()));
  if (lengths.rank() != 1 || lengths.sizes[0] != input.sizes[*batch])
    return raiser.fail(node, "sequence_lens must have " + input.sizes[*batch].str() + " elements");
  raiser.set(node, raiser.generated(input.elementType, input.sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at(indices);
    Value length = s.toIndex(raiser.element(b, lengths, {indices[*batch]}));
    length = s.min(length, s.index(input.sizes[*time]));
    Value mirrored = s.sub(s.add(length, -1), at[*time]);
    at[*time] = s.select(s.less(at[*time], length), mirrored, at[*time]);
    return raiser.element(b, input, at);
  }));
  return success();
}

/// Both directions read a dimension's index split by the block: out = block·in + offset.
LogicalResult raiseDepthToSpace(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t block = node.intOr("blocksize", 0);
  bool depthFirst = node.stringOr("mode", "DCR") == "DCR";
  if (input.rank() != 4 || block <= 0 || (!depthFirst && node.stringOr("mode", "DCR") != "CRD"))
    return raiser.fail(node, "expects rank 4, a positive blocksize, and mode DCR or CRD");
  std::optional<Size> depth = input.sizes[1].divide(Size(block) * Size(block));
  if (!depth)
    return raiser.fail(node, "its " + input.sizes[1].str() + " channels must divide by " + Twine(block) + " squared");
  SmallVector<Size> sizes = {input.sizes[0], *depth, input.sizes[2] * Size(block), input.sizes[3] * Size(block)};
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    Value extent = s.index(block);
    Value row = s.rem(indices[2], extent), column = s.rem(indices[3], extent);
    Value offset = s.add(s.mul(row, block), column);
    Value channel = depthFirst ? s.add(s.mul(offset, s.index(*depth)), indices[1])
                               : s.add(s.mul(indices[1], block * block), offset);
    return raiser.element(b, input, {indices[0], channel, s.div(indices[2], extent), s.div(indices[3], extent)});
  }));
  return success();
}

LogicalResult raiseSpaceToDepth(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t block = node.intOr("blocksize", 0);
  bool depthFirst = node.stringOr("mode", "DCR") == "DCR";
  if (input.rank() != 4 || block <= 0 || (!depthFirst && node.stringOr("mode", "DCR") != "CRD"))
    return raiser.fail(node, "expects rank 4, a positive blocksize, and mode DCR or CRD");
  std::optional<Size> height = input.sizes[2].divide(block), width = input.sizes[3].divide(block);
  if (!height || !width)
    return raiser.fail(node, "its dimensions " + input.sizes[2].str() + " and " + input.sizes[3].str() +
                                 " must divide by " + Twine(block));
  SmallVector<Size> sizes = {input.sizes[0], input.sizes[1] * Size(block) * Size(block), *height, *width};
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    Value squared = s.index(block * block), channels = s.index(input.sizes[1]);
    Value channel = depthFirst ? s.rem(indices[1], channels) : s.div(indices[1], squared);
    Value offset = depthFirst ? s.div(indices[1], channels) : s.rem(indices[1], squared);
    Value row = s.div(offset, s.index(block)), column = s.rem(offset, s.index(block));
    return raiser.element(b, input, {indices[0], channel, s.add(s.mul(indices[2], block), row),
                                     s.add(s.mul(indices[3], block), column)});
  }));
  return success();
}

} // namespace

void raise::registerMovement(Registry &registry) {
  registry.add("Transpose", raiseTranspose, 1, 1);
  registry.add("Concat", raiseConcat, 1, kAnyNumber);
  registry.add("Tile", raiseTile, 2, 2);
  registry.add("ReverseSequence", raiseReverseSequence, 2, 2, 10);
  registry.add("DepthToSpace", raiseDepthToSpace, 1, 1);
  registry.add("SpaceToDepth", raiseSpaceToDepth, 1, 1);
}
