// SPDX-License-Identifier: Apache-2.0
//
// Operators that write at indices which are data: ScatterElements, its predecessor Scatter, ScatterND, MaxUnpool. Updates of one element apply in the order of the updates, so
// that reductions have the same bits everywhere: a work item owns all elements that one line of updates can reach.

#include "passes/Raise/IndexLimits.h"
#include "passes/Raise/Program.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

enum class Reduction { none, add, mul, max, min };

std::optional<Reduction> reductionOf(onnx::NodeOp node) {
  return llvm::StringSwitch<std::optional<Reduction>>(node.stringOr("reduction", "none"))
      .Case("none", Reduction::none)
      .Case("add", Reduction::add)
      .Case("mul", Reduction::mul)
      .Case("max", Reduction::max)
      .Case("min", Reduction::min)
      .Default(std::nullopt);
}

/// Puts `update` in the place of out[at], or together with it.
void apply(Program &p, Reduction kind, Value update, Value out, ValueRange at, bool isUnsigned) {
  if (kind == Reduction::none)
    return p.store(update, out, at);
  Value old = p.load(out, at), result;
  bool isFlag = update.getType().isInteger(1);
  if (isFlag)
    result = kind == Reduction::add || kind == Reduction::max ? p.either(old, update) : p.both(old, update);
  else if (kind == Reduction::add)
    result = p.add(old, update);
  else if (kind == Reduction::mul)
    result = p.mul(old, update);
  else
    result = kind == Reduction::max ? p.max(old, update, isUnsigned) : p.min(old, update, isUnsigned);
  p.store(result, out, at);
}

// An index outside ends the run with a sentence; the bodies see to it all the same that no write is outside.

LogicalResult raiseScatterElements(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &indices = raiser.input(node, 1), &updates = raiser.input(node, 2);
  int64_t rank = data.rank(), axis = node.intOr("axis", 0);
  axis += axis < 0 ? rank : 0;
  std::optional<Reduction> kind = reductionOf(node);
  if (!kind)
    return raiser.fail(node, "reduction \"" + node.stringOr("reduction", "") + "\" is not known");
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(node.intOr("axis", 0)) + " is outside rank " + Twine(rank));
  if (int64_t(indices.rank()) != rank)
    return raiser.fail(node, "its indices must have rank " + Twine(rank));
  if (failed(mustMatch(raiser, node, updates.sizes, indices.sizes, "its indices and updates must have one shape")))
    return failure();
  if (failed(checkIndices(raiser, node, node.getInputs()[1], data.sizes[axis])))
    return failure();
  SmallVector<Size> others(data.sizes);
  others.erase(others.begin() + axis);
  raiser.set(node, raiser.computed({{data.elementType, data.sizes}}, elementCount(others),
                                   [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, node.getLoc());
    SmallVector<Value> line = p.split(item, others);
    auto along = [&](Value i) {
      SmallVector<Value> at(line);
      at.insert(at.begin() + axis, i);
      return at;
    };
    Value length = p.extent(data.sizes[axis]);
    p.loop(length, [&](Value i) { p.store(raiser.element(b, data, along(i)), out[0], along(i)); });
    // Updates may cover only the first lines.
    Value count = p.extent(updates.sizes[axis]);
    for (auto [d, i] : llvm::enumerate(along(p.index(0))))
      if (int64_t(d) != axis && data.sizes[d] != updates.sizes[d])
        count = p.select(p.less(i, p.extent(updates.sizes[d])), count, p.index(0));
    p.loop(count, [&](Value i) {
      Value to = p.fromStart(p.toIndex(raiser.element(b, indices, along(i))), length);
      p.when(p.inside(to, length), [&] {
        apply(p, *kind, raiser.element(b, updates, along(i)), out[0], along(to), raiser.isUnsigned(data.elementType));
      });
    });
  }).front());
  return success();
}

LogicalResult raiseScatterND(Raiser &raiser, onnx::NodeOp node) {
  Known &data = raiser.input(node, 0), &indices = raiser.input(node, 1), &updates = raiser.input(node, 2);
  std::optional<Reduction> kind = reductionOf(node);
  if (!kind)
    return raiser.fail(node, "reduction \"" + node.stringOr("reduction", "") + "\" is not known");
  std::optional<int64_t> depth = indices.rank() ? indices.sizes.back().constant() : std::nullopt;
  if (!depth || *depth < 1 || *depth > int64_t(data.rank()))
    return raiser.fail(node, "the last size of its indices must be constant and from 1 to " + Twine(data.rank()));
  ArrayRef<Size> outer = ArrayRef(data.sizes).take_front(*depth), inner = ArrayRef(data.sizes).drop_front(*depth);
  ArrayRef<Size> places = ArrayRef(indices.sizes).drop_back();
  SmallVector<Size> expected(places);
  llvm::append_range(expected, inner);
  if (failed(mustMatch(raiser, node, updates.sizes, expected,
                       "the shape of its updates must be that of its indices but the last, and then of its data from "
                       "dimension " + Twine(*depth) + " on")))
    return failure();
  if (failed(checkIndices(raiser, node, node.getInputs()[1], outer)))
    return failure();
  raiser.set(node, raiser.computed({{data.elementType, data.sizes}}, elementCount(inner),
                                   [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, node.getLoc());
    SmallVector<Value> slice = p.split(item, inner);
    auto join = [&](ValueRange leading) {
      SmallVector<Value> at(leading);
      llvm::append_range(at, slice);
      return at;
    };
    p.loops(outer, [&](ValueRange at) { p.store(raiser.element(b, data, join(at)), out[0], join(at)); });
    p.loops(places, [&](ValueRange place) {
      SmallVector<Value> to;
      Value fits = p.flag(true);
      for (int64_t d = 0; d != *depth; ++d) {
        SmallVector<Value> at(place);
        at.push_back(p.index(d));
        Value length = p.extent(outer[d]);
        to.push_back(p.fromStart(p.toIndex(raiser.element(b, indices, at)), length));
        fits = p.both(fits, p.inside(to.back(), length));
      }
      p.when(fits, [&] {
        apply(p, *kind, raiser.element(b, updates, join(place)), out[0], join(to), raiser.isUnsigned(data.elementType));
      });
    });
  }).front());
  return success();
}

/// Zeros but where an index, row-major in the whole result, puts an element. A work item owns a channel of a batch; an index
/// outside of it writes nothing.
LogicalResult raiseMaxUnpool(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0), &indices = raiser.input(node, 1);
  auto list = [&](StringRef name, size_t count, int64_t otherwise) {
    auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute(name));
    return given ? SmallVector<int64_t>(given.asArrayRef()) : SmallVector<int64_t>(count, otherwise);
  };
  size_t axes = input.rank() < 2 ? 0 : input.rank() - 2;
  SmallVector<int64_t> kernel = list("kernel_shape", 0, 0), strides = list("strides", axes, 1), pads = list("pads", 2 * axes, 0);
  if (axes == 0 || kernel.size() != axes || strides.size() != axes || pads.size() != 2 * axes)
    return raiser.fail(node, "kernel_shape, strides and pads must fit an input of rank " + Twine(input.rank()));
  if (failed(mustMatch(raiser, node, indices.sizes, input.sizes, "its indices must have the shape of its input")))
    return failure();
  SmallVector<Size> sizes = {input.sizes[0], input.sizes[1]};
  for (size_t d = 0; d != axes; ++d)
    sizes.push_back((input.sizes[d + 2] - Size(1)) * Size(strides[d]) + Size(kernel[d] - pads[d] - pads[d + axes]));
  Location l = node.getLoc();
  Type type = raiser.internalType(input.elementType);
  ArrayRef<Size> channel = ArrayRef(sizes).take_front(2), plane = ArrayRef(sizes).drop_front(2);
  std::vector<Known> made = raiser.computed({{input.elementType, sizes}}, elementCount(channel),
                                            [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, l);
    SmallVector<Value> leading = p.split(item, channel);
    auto join = [&](ValueRange place) {
      SmallVector<Value> at(leading);
      llvm::append_range(at, place);
      return at;
    };
    p.loops(plane, [&](ValueRange place) { p.store(p.number(type, 0), out[0], join(place)); });
    Value length = p.extent(elementCount(plane));
    p.loops(ArrayRef(input.sizes).drop_front(2), [&](ValueRange place) {
      Value index = p.toIndex(raiser.element(b, indices, join(place)));
      Value to = p.sub(index, p.mul(item, length));
      p.when(p.inside(to, length), [&] {
        p.store(raiser.element(b, input, join(place)), out[0], join(p.split(to, plane)));
      });
    });
  });
  if (!raiser.hasInput(node, 2)) {
    raiser.set(node, made[0]);
    return success();
  }
  // Another shape has the same elements in its first rows and columns, and zeros after them.
  Known &shape = raiser.input(node, 2);
  if (shape.rank() != 1 || shape.sizes[0] != Size(int64_t(sizes.size())))
    return raiser.fail(node, "its output_shape must have " + Twine(sizes.size()) + " elements");
  SmallVector<Size> asked = shape.integers ? *shape.integers : raiser.bind(raiser.tensor(shape), "unpooled");
  raiser.set(node, raiser.generated(input.elementType, asked, [&](OpBuilder &b, ValueRange at) {
    Program p(b, l);
    Value inside = p.flag(true);
    for (auto [i, size] : llvm::zip(at, sizes))
      inside = p.both(inside, p.less(i, p.extent(size)));
    return p.choose(inside, [&] { return raiser.element(b, made[0], at); }, [&] { return p.number(type, 0); });
  }));
  return success();
}

} // namespace

void raise::registerScatter(Registry &registry) {
  registry.add("MaxUnpool", raiseMaxUnpool, 2, 3, 9);
  registry.add("Scatter", raiseScatterElements, 3, 3, 9);
  registry.add("ScatterElements", raiseScatterElements, 3, 3, 11);
  registry.add("ScatterND", raiseScatterND, 3, 3, 11);
}
