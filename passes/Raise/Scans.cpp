// SPDX-License-Identifier: Apache-2.0
//
// CumSum and CumProd: a work item for each line along the axis. Where the axis is data, one item walks all elements in
// row-major order, in which the neighbour along any axis comes before.

#include "passes/Raise/Program.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

struct Scan {
  bool product, exclusive, reverse;

  Value initial(Program &p, Type type) const { return p.number(type, product ? 1 : 0); }
  Value combine(Program &p, Value x, Value y) const { return product ? p.mul(x, y) : p.add(x, y); }
};

std::vector<Known> scanAlong(Raiser &raiser, Known &input, int64_t axis, const Scan &scan, Location l) {
  SmallVector<Size> others(input.sizes);
  others.erase(others.begin() + axis);
  Type type = raiser.internalType(input.elementType);
  return raiser.computed({{input.elementType, input.sizes}}, elementCount(others),
                         [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, l);
    SmallVector<Value> line = p.split(item, others);
    Value length = p.extent(input.sizes[axis]);
    p.fold(length, scan.initial(p, type), [&](Value i, Value sum) {
      SmallVector<Value> at(line);
      at.insert(at.begin() + axis, scan.reverse ? p.sub(p.sub(length, p.index(1)), i) : i);
      Value next = scan.combine(p, sum, raiser.element(b, input, at));
      p.store(scan.exclusive ? sum : next, out[0], at);
      return next;
    });
  });
}

std::vector<Known> scanByData(Raiser &raiser, Known &input, Known &axisInput, const Scan &scan, Location l) {
  Type type = raiser.internalType(input.elementType);
  int64_t rank = input.rank();
  return raiser.computed({{input.elementType, input.sizes}}, 1, [&](OpBuilder &b, Value, ValueRange out) {
    Program p(b, l);
    Value axis = p.fromStart(p.toIndex(raiser.element(b, axisInput, {})), p.index(rank));
    // An axis outside is the caller's mistake; it counts as the nearest one.
    axis = p.max(p.min(axis, p.index(rank - 1)), p.index(0));
    Value length = p.extent(input.sizes[0]), stride = p.index(1);
    SmallVector<Value> strides(rank);
    strides[rank - 1] = p.index(1);
    for (int64_t d = rank - 1; d > 0; --d)
      strides[d - 1] = p.mul(strides[d], p.extent(input.sizes[d]));
    for (int64_t d = 0; d != rank; ++d) {
      Value here = p.equal(axis, p.index(d));
      length = p.select(here, p.extent(input.sizes[d]), length);
      stride = p.select(here, strides[d], stride);
    }
    Value count = p.extent(elementCount(input.sizes));
    p.loop(count, [&](Value i) {
      Value position = scan.reverse ? p.sub(p.sub(count, p.index(1)), i) : i;
      SmallVector<Value> at = p.split(position, input.sizes);
      Value along = p.rem(p.div(position, stride), length);
      Value isFirst = p.equal(along, scan.reverse ? p.sub(length, p.index(1)) : p.index(0));
      Value sum = p.choose(
          isFirst, [&] { return scan.exclusive ? scan.initial(p, type) : raiser.element(b, input, at); },
          [&] {
            SmallVector<Value> before =
                p.split(scan.reverse ? p.add(position, stride) : p.sub(position, stride), input.sizes);
            Value x = raiser.element(b, input, scan.exclusive ? before : at);
            return scan.combine(p, p.load(out[0], before), x);
          });
      p.store(sum, out[0], at);
    });
  });
}

LogicalResult raiseScan(Raiser &raiser, onnx::NodeOp node, bool product) {
  Known &input = raiser.input(node, 0), &axisInput = raiser.input(node, 1);
  int64_t rank = input.rank();
  if (rank == 0)
    return raiser.fail(node, "its input has no axis");
  if (elementCount(axisInput.sizes) != Size(1))
    return raiser.fail(node, "its axis must be one number");
  Scan scan{product, node.intOr("exclusive", 0) != 0, node.intOr("reverse", 0) != 0};
  std::optional<SmallVector<int64_t>> given = raiser.constants(node.getInputs()[1]);
  if (!given) {
    raiser.set(node, scanByData(raiser, input, axisInput, scan, node.getLoc()).front());
    return success();
  }
  int64_t axis = given->front() + (given->front() < 0 ? rank : 0);
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(given->front()) + " is outside rank " + Twine(rank));
  raiser.set(node, scanAlong(raiser, input, axis, scan, node.getLoc()).front());
  return success();
}

} // namespace

void raise::registerScans(Registry &registry) {
  registry.add("CumSum", [](Raiser &r, onnx::NodeOp node) { return raiseScan(r, node, false); }, 2, 2, 11);
  registry.add("CumProd", [](Raiser &r, onnx::NodeOp node) { return raiseScan(r, node, true); }, 2, 2, 26);
}
