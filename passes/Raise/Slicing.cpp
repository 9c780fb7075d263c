// SPDX-License-Identifier: Apache-2.0
//
// Slice and Split: parts of a tensor along its axes. Bounds are clamped into the dimension where sizes decide how, and at
// run time otherwise.

#include "passes/Raise/Numbers.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// A part of an axis: index i of it is input index start + i·step.
struct Part {
  Number start = 0, step = 1, length = 0;
};

constexpr int64_t kFarAway = int64_t(1) << 30; // exporters write such bounds for "to the end"; no dimension is as large

/// What a bound means before it is clamped: far away, counted from the end, or as it is.
Number bound(const Number &at, const Number &extent) {
  if (std::optional<int64_t> constant = at.constant(); constant && !extent.constant()) {
    if (*constant >= kFarAway)
      return extent;
    if (*constant <= -kFarAway)
      return -1;
  }
  return ifNegative(at, at + extent, at);
}

Part partOf(const Number &extent, const Number &start, const Number &end, const Number &step) {
  Number zero = 0, first = bound(start, extent), last = bound(end, extent);
  auto ascending = [&] {
    Number from = minimum(maximum(first, zero), extent), to = minimum(maximum(last, zero), extent);
    return std::pair(from, to);
  };
  auto descending = [&] {
    Number from = minimum(maximum(first, zero), extent - Number(1));
    Number to = minimum(maximum(last, Number(-1)), extent - Number(1));
    return std::pair(from, to);
  };
  auto [up, upEnd] = ascending();
  auto [down, downEnd] = descending();
  Number from = ifNegative(step, down, up);
  Number distance = maximum(ifNegative(step, down - downEnd, upEnd - up), zero);
  Number stride = maximum(ifNegative(step, zero - step, step), Number(1));
  return {from, step, quotientUp(distance, stride)};
}

/// The part where all is known: no wish for symbols, and the numbers are exact beyond 64 bits of difference.
Part constantPart(int64_t n, int64_t start, int64_t end, int64_t step) {
  start += start < 0 ? n : 0;
  end += end < 0 ? n : 0;
  if (n == 0)
    return {0, step, 0};
  start = std::clamp<int64_t>(start, 0, step > 0 ? n : n - 1);
  end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, n);
  uint64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? uint64_t(step) : 0 - uint64_t(step);
  bool empty = step > 0 ? end <= start : start <= end;
  return {start, step, empty ? 0 : int64_t((distance - 1) / stride + 1)};
}

/// Axes of data: each dimension asks whether one of them is meant. The check says that all of them were.
std::vector<Check> partsByData(ArrayRef<Size> sizes, ArrayRef<Number> starts, ArrayRef<Number> ends, ArrayRef<Number> axes,
                               ArrayRef<Number> steps, std::vector<Part> &parts) {
  Number rank = int64_t(sizes.size()), used = 0;
  for (auto [d, extent] : llvm::enumerate(sizes)) {
    Number start = 0, end = extent, step = 1, dimension = int64_t(d);
    for (auto [axis, from, to, by] : llvm::zip(axes, starts, ends, steps)) {
      Number at = ifNegative(axis, axis + rank, axis);
      start = ifEqual(at, dimension, from, start);
      end = ifEqual(at, dimension, to, end);
      step = ifEqual(at, dimension, by, step);
      used = used + ifEqual(at, dimension, 1, 0);
    }
    parts[d] = partOf(extent, start, end, step);
  }
  return {{used, Number(int64_t(axes.size())), "its axes"}};
}

LogicalResult raiseSlice(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank();
  // Attributes before opset 10, inputs since.
  auto starts = numbersOf(raiser, node, 1, "starts"), ends = numbersOf(raiser, node, 2, "ends");
  auto axes = numbersOf(raiser, node, 3, "axes"), steps = numbersOf(raiser, node, 4);
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  if (!raiser.hasInput(node, 3) && axes->empty())
    for (size_t i = 0; i != starts->size(); ++i)
      axes->push_back(Number(int64_t(i)));
  if (!raiser.hasInput(node, 4))
    steps->assign(starts->size(), Number(1));
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return raiser.fail(node, "starts, ends, axes and steps differ in length");

  std::vector<Part> parts;
  for (const Size &size : input.sizes)
    parts.push_back({0, 1, size});
  SmallVector<bool> seen(rank, false);
  std::vector<Check> checks;
  if (!llvm::all_of(*axes, [](const Number &axis) { return axis.constant().has_value(); }))
    checks = partsByData(input.sizes, *starts, *ends, *axes, *steps, parts);
  for (size_t i = 0; checks.empty() && i != starts->size(); ++i) {
    std::optional<int64_t> given = (*axes)[i].constant(), step = (*steps)[i].constant(), axis = axisInside(*given, rank);
    if (!axis)
      return raiser.fail(node, "axis " + Twine(*given) + " is outside rank " + Twine(rank));
    int64_t at = *axis;
    if (seen[at] || (step && *step == 0))
      return raiser.fail(node, "axis " + Twine(at) + (seen[at] ? " is there twice" : " has step 0"));
    seen[at] = true;
    std::optional<int64_t> n = input.sizes[at].constant(), start = (*starts)[i].constant(), end = (*ends)[i].constant();
    parts[at] = n && start && end && step ? constantPart(*n, *start, *end, *step)
                                          : partOf(input.sizes[at], (*starts)[i], (*ends)[i], (*steps)[i]);
  }
  SmallVector<Number> lengths;
  for (const Part &part : parts)
    lengths.push_back(part.length);
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, lengths, checks);
  if (failed(sizes))
    return failure();
  if (*sizes == input.sizes && llvm::all_of(parts, [](const Part &p) { return p.step.is(1) && p.start.is(0); })) {
    raiser.set(node, Known(input));
    return success();
  }
  std::optional<int64_t> count = elementCount(*sizes).constant();
  std::optional<int64_t> first = rank == 1 ? parts[0].start.constant() : std::nullopt;
  std::optional<int64_t> step = rank == 1 ? parts[0].step.constant() : std::nullopt;
  if ((input.integers || input.reals) && count && first && step) {
    Known result;
    result.elementType = input.elementType;
    result.sizes = *sizes;
    moveContents(input, result, *count, [&](size_t i) { return *first + int64_t(i) * *step; });
    raiser.set(node, std::move(result));
    return success();
  }
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> at;
    for (auto [index, part, size] : llvm::zip(indices, parts, input.sizes)) {
      Value i = index;
      if (!part.step.is(1))
        i = s.mul(i, part.step.emit(s));
      if (!part.start.is(0))
        i = s.add(i, part.start.emit(s));
      at.push_back(i);
    }
    return raiser.element(b, input, at);
  }));
  return success();
}

/// The sizes of the parts: given, or even ones of which the last may be smaller.
FailureOr<SmallVector<Size>> splitSizes(Raiser &raiser, onnx::NodeOp node, const Size &extent) {
  FailureOr<SmallVector<Number>> parts = numbersOf(raiser, node, 1, "split");
  if (failed(parts))
    return failure();
  int64_t count = node.getOutputs().size();
  if (!raiser.hasInput(node, 1) && parts->empty()) {
    if (int64_t asked = node.intOr("num_outputs", count); asked != count)
      return raiser.fail(node, "num_outputs is " + Twine(asked) + ", and it has " + Twine(count) + " outputs");
    Number each = quotientUp(extent, count);
    FailureOr<SmallVector<Size>> size = settled(raiser, node, {each});
    if (failed(size))
      return failure();
    each = Number(size->front());
    for (int64_t i = 0; i != count; ++i)
      parts->push_back(maximum(minimum(each, Number(extent) - Number(i) * each), Number(0)));
    // Where the parts are equal, no minimum is needed to say it.
    if (size->front() * Size(count) == extent)
      parts->assign(count, each);
  }
  if (parts->size() != size_t(count))
    return raiser.fail(node, "it has " + Twine(parts->size()) + " sizes for " + Twine(count) + " outputs");
  Number sum = 0;
  for (const Number &part : *parts)
    sum = sum + part;
  return settled(raiser, node, *parts, Check{sum, extent, "the sum of its parts and the dimension"});
}

LogicalResult raiseSplit(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  std::optional<int64_t> axis = axisInside(node.intOr("axis", 0), input.rank());
  if (!axis)
    return raiser.fail(node, "axis is outside rank " + Twine(input.rank()));
  Size extent = input.sizes[*axis], start = 0;
  FailureOr<SmallVector<Size>> parts = splitSizes(raiser, node, extent);
  if (failed(parts))
    return failure();
  for (auto [output, part] : llvm::enumerate(*parts)) {
    SmallVector<Size> sizes(input.sizes);
    sizes[*axis] = part;
    std::optional<int64_t> first = start.constant(), count = part.constant();
    if ((input.integers || input.reals) && input.rank() == 1 && first && count) {
      Known result;
      result.elementType = input.elementType;
      result.sizes = sizes;
      moveContents(input, result, *count, [&](size_t i) { return *first + int64_t(i); });
      raiser.set(node, std::move(result), output);
    } else {
      raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange indices) {
        Expressions s{b, node.getLoc()};
        SmallVector<Value> at(indices);
        if (start != Size(0))
          at[*axis] = s.add(at[*axis], s.index(start));
        return raiser.element(b, input, at);
      }), output);
    }
    start = start + part;
  }
  return success();
}

} // namespace

void raise::registerSlicing(Registry &registry) {
  registry.add("Slice", raiseSlice, 1, 5);
  registry.add("Split", raiseSplit, 1, 2);
}
