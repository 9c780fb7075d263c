// SPDX-License-Identifier: Apache-2.0
//
// Col2Im and Upsample: each element of the image asks which elements of the input it is made of.

#include "passes/Raise/Numbers.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

SmallVector<int64_t> listOr(onnx::NodeOp node, StringRef name, size_t count, int64_t otherwise) {
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name)))
    return SmallVector<int64_t>(given.asArrayRef());
  return SmallVector<int64_t>(count, otherwise);
}

/// Sums the blocks that overlap: input [N, C · block, number of blocks], output [N, C, image].
LogicalResult raiseCol2Im(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  FailureOr<SmallVector<Number>> image = numbersOf(raiser, node, 1), block = numbersOf(raiser, node, 2);
  if (failed(image) || failed(block))
    return failure();
  size_t dims = image->size();
  SmallVector<int64_t> dilations = listOr(node, "dilations", dims, 1), strides = listOr(node, "strides", dims, 1);
  SmallVector<int64_t> pads = listOr(node, "pads", 2 * dims, 0);
  auto positive = [](int64_t value) { return value > 0; };
  if (input.rank() != 3 || block->size() != dims || dilations.size() != dims || strides.size() != dims || pads.size() != 2 * dims ||
      !llvm::all_of(dilations, positive) || !llvm::all_of(strides, positive))
    return raiser.fail(node, "expects rank 3 and equally many image sizes, block sizes, positive dilations and strides, and pads");
  SmallVector<Number> extents = {Number(input.sizes[0])}, counts;
  Number volume = 1, blocks = 1;
  for (size_t i = 0; i != dims; ++i) {
    Number reach = Number(dilations[i]) * ((*block)[i] - Number(1)) + Number(1);
    Number room = (*image)[i] + Number(pads[i] + pads[dims + i]) - reach;
    counts.push_back(ifNegative(room, 0, quotient(maximum(room, 0), strides[i]) + Number(1)));
    volume = volume * (*block)[i];
    blocks = blocks * counts.back();
  }
  extents.push_back(quotient(input.sizes[1], volume));
  extents.append(*image);
  Check checks[] = {{blocks, input.sizes[2], "the number of blocks and its last dimension"},
                    {volume * extents[1], input.sizes[1], "its channels and the elements of its blocks"}};
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents, checks);
  if (failed(sizes))
    return failure();
  Type type = raiser.internalType(input.elementType);
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    SmallVector<Value> loops, extent;
    for (size_t i = 0; i != dims; ++i) {
      loops.push_back((*block)[i].emit(s));
      extent.push_back(counts[i].emit(s));
    }
    return s.fold(loops, s.zero(type), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      Value row = indices[1], column = inner.index(0), inside;
      for (size_t i = 0; i != dims; ++i) {
        Value at = inner.sub(inner.add(indices[2 + i], pads[i]), inner.mul(loop[i], dilations[i]));
        Value stride = inner.index(strides[i]), place = inner.div(at, stride);
        Value here = inner.both(inner.both(inner.atLeast(at, inner.index(0)), inner.less(place, extent[i])),
                                inner.equal(inner.mul(place, stride), at));
        inside = inside ? inner.both(inside, here) : here;
        row = inner.add(inner.mul(row, loops[i]), loop[i]);
        column = inner.add(inner.mul(column, extent[i]), place);
      }
      Value x = inside ? inner.whenElseZero(inside, type, [&](Expressions then) {
        return raiser.element(then.b, input, {indices[0], row, column});
      }) : raiser.element(inner.b, input, {indices[0], row, column});
      return inner.add(carried, x);
    });
  }));
  return success();
}

/// One dimension's scale: a constant, or an element at run time.
struct Scale {
  std::optional<double> constant;
  std::function<Value(Expressions)> emit; // f32

  bool isOne() const { return constant == 1.0; }
};

/// Places are output index / scale; `nearest` rounds down, `linear` interpolates.
LogicalResult raiseUpsample(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  size_t rank = input.rank();
  StringRef mode = node.stringOr("mode", "nearest");
  bool linear = mode == "linear" || mode == "bilinear";
  SmallVector<Scale> scales;
  auto add = [&](double value) {
    scales.push_back({value, [value](Expressions s) { return s.constant(s.b.getF32Type(), value); }});
  };
  // An attribute in opset 7, an input in 9.
  if (raiser.hasInput(node, 1)) {
    Known &given = raiser.input(node, 1);
    if (elementCount(given.sizes) != Size(int64_t(rank)) || given.rank() != 1)
      return raiser.fail(node, "expects a scale for each of " + Twine(rank) + " dimensions");
    for (size_t i = 0; i != rank; ++i)
      if (given.reals)
        add((*given.reals)[i]);
      else
        scales.push_back({std::nullopt, [&, i](Expressions s) { return raiser.element(s.b, given, s.index(int64_t(i))); }});
  } else if (auto given = dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute("scales"))) {
    for (float value : given.asArrayRef())
      add(value);
  }
  Type type = raiser.internalType(input.elementType);
  if (scales.size() != rank || (!linear && mode != "nearest") || (linear && !isa<Float32Type>(type)))
    return raiser.fail(node, "expects a scale for each of " + Twine(rank) + " dimensions and mode nearest or linear, this one of floats");
  SmallVector<Number> extents;
  for (auto [size, scale] : llvm::zip(input.sizes, scales)) {
    if (scale.constant && *scale.constant < 1)
      return raiser.fail(node, "scales must be at least 1");
    std::optional<int64_t> extent = size.constant();
    if (scale.constant && *scale.constant == std::floor(*scale.constant))
      extents.push_back(Number(size * Size(int64_t(*scale.constant))));
    else if (scale.constant && extent)
      extents.push_back(Number(int64_t(std::floor(float(*extent) * float(*scale.constant)))));
    else
      extents.push_back(Number([size = size, scale = scale](Expressions s) -> Value {
        Value real = s.mul(s.fromIndex(s.b.getF32Type(), s.index(size)), scale.emit(s));
        return s.max(s.toIndex(math::FloorOp::create(s.b, s.l, real)), s.index(0));
      }));
  }
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents);
  if (failed(sizes))
    return failure();
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Type real = b.getF32Type();
    SmallVector<Value> at(indices);
    // Corners of the cell around the place, each with its weight.
    SmallVector<std::pair<SmallVector<Value>, Value>> corners = {{at, {}}};
    for (size_t i = 0; i != rank; ++i) {
      if (scales[i].isOne())
        continue;
      Value place = s.div(s.fromIndex(real, indices[i]), scales[i].emit(s)), extent = s.index(input.sizes[i]);
      Value floor = math::FloorOp::create(b, s.l, place);
      Value low = s.clamp(s.toIndex(floor), extent), high = s.clamp(s.add(low, 1), extent);
      Value weight = s.sub(place, floor), opposite = s.sub(s.constant(real, 1), weight);
      SmallVector<std::pair<SmallVector<Value>, Value>> next;
      for (auto &[corner, factor] : corners) {
        SmallVector<Value> lower(corner), upper(corner);
        lower[i] = low;
        upper[i] = high;
        next.push_back({lower, !linear ? Value() : factor ? s.mul(factor, opposite) : opposite});
        if (linear)
          next.push_back({upper, factor ? s.mul(factor, weight) : weight});
      }
      corners = next;
    }
    Value sum;
    for (auto &[corner, factor] : corners) {
      Value x = raiser.element(b, input, corner);
      x = factor ? s.mul(x, factor) : x;
      sum = sum ? s.add(sum, x) : x;
    }
    return sum;
  }));
  return success();
}

} // namespace

void raise::registerImages(Registry &registry) {
  registry.add("Col2Im", raiseCol2Im, 3, 3, 18);
  registry.add("Upsample", raiseUpsample, 1, 2);
}
