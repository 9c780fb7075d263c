// SPDX-License-Identifier: Apache-2.0
//
// Operators that keep what passes a test: NonZero, Compress, NonMaxSuppression. Each counts first; the count becomes a
// size, and then the survivors are written.

#include "passes/Raise/Program.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

using Test = function_ref<Value(Program &, ValueRange indices)>;

/// Visits a space in row-major order and carries a number.
Value walk(Program &p, ArrayRef<Size> sizes, Value initial, function_ref<Value(ValueRange, Value)> body) {
  SmallVector<Value> indices;
  auto nest = [&](auto &self, Value carried) -> Value {
    if (indices.size() == sizes.size())
      return body(indices, carried);
    return p.fold(p.extent(sizes[indices.size()]), carried, [&](Value i, Value inner) {
      indices.push_back(i);
      Value result = self(self, inner);
      indices.pop_back();
      return result;
    });
  };
  return nest(nest, initial);
}

/// How many elements of a space pass, as a size.
Size count(Raiser &raiser, Location l, ArrayRef<Size> sizes, StringRef name, Test test) {
  Known number = raiser.generated(Element::Int64, {1}, [&](OpBuilder &b, ValueRange) {
    Program p(b, l);
    Value total = walk(p, sizes, p.index(0), [&](ValueRange at, Value sum) {
      return p.select(test(p, at), p.plus(sum, 1), sum);
    });
    return p.toInteger(total, b.getI64Type());
  });
  return raiser.bind(number.tensor, name).front();
}

/// Indices of the elements of a space that pass, in row-major order: [rank, count].
Known positions(Raiser &raiser, Location l, ArrayRef<Size> sizes, const Size &total, Test test) {
  return raiser.computed({{Element::Int64, {int64_t(sizes.size()), total}}}, 1, [&](OpBuilder &b, Value, ValueRange out) {
    Program p(b, l);
    walk(p, sizes, p.index(0), [&](ValueRange at, Value next) {
      Value passes = test(p, at);
      p.when(passes, [&] {
        for (auto [d, i] : llvm::enumerate(at))
          p.store(p.toInteger(i, b.getI64Type()), out[0], {p.index(d), next});
      });
      return p.select(passes, p.plus(next, 1), next);
    });
  }).front();
}

LogicalResult raiseNonZero(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  auto test = [&](Program &p, ValueRange at) { return p.isTrue(raiser.element(p.b, input, at)); };
  Size total = count(raiser, node.getLoc(), input.sizes, "nonzero", test);
  raiser.set(node, positions(raiser, node.getLoc(), input.sizes, total, test));
  return success();
}

LogicalResult raiseCompress(Raiser &raiser, onnx::NodeOp node) {
  Known input = raiser.input(node, 0);
  Known &condition = raiser.input(node, 1);
  int64_t axis = 0;
  if (!node.attribute("axis")) {
    input = raiser.reshaped(input, {elementCount(input.sizes)});
  } else {
    axis = node.intOr("axis", 0) + (node.intOr("axis", 0) < 0 ? int64_t(input.rank()) : 0);
    if (axis < 0 || axis >= int64_t(input.rank()))
      return raiser.fail(node, "axis " + Twine(node.intOr("axis", 0)) + " is outside rank " + Twine(input.rank()));
  }
  if (condition.rank() != 1)
    return raiser.fail(node, "its condition must have rank 1");
  raiser.tensor(input);
  // The condition may be shorter than the axis; past the axis nothing can be kept.
  auto test = [&](Program &p, ValueRange at) {
    Value passes = p.isTrue(raiser.element(p.b, condition, at));
    return p.both(passes, p.less(at[0], p.extent(input.sizes[axis])));
  };
  Size total = count(raiser, node.getLoc(), condition.sizes, "kept", test);
  Known kept = positions(raiser, node.getLoc(), condition.sizes, total, test);
  SmallVector<Size> sizes(input.sizes);
  sizes[axis] = total;
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Program p(b, node.getLoc());
    SmallVector<Value> from(at);
    from[axis] = p.toIndex(raiser.element(b, kept, {p.index(0), at[axis]}));
    return raiser.element(b, input, from);
  }));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// NonMaxSuppression
//===------------------------------------------------------------------------------------------===//

struct Box {
  Value low[2], high[2]; // by axis
};

Box boxAt(Raiser &raiser, Program &p, Known &boxes, Value batch, Value number, bool centred) {
  Value v[4];
  for (int64_t i = 0; i != 4; ++i)
    v[i] = raiser.element(p.b, boxes, {batch, number, p.index(i)});
  Box box;
  for (int i : {0, 1}) {
    if (centred) { // x, y, width, height
      Value half = p.div(v[i + 2], p.number(v[i].getType(), 2));
      box.low[i] = p.sub(v[i], half);
      box.high[i] = p.add(v[i], half);
    } else { // two corners, in any order
      box.low[i] = p.min(v[i], v[i + 2]);
      box.high[i] = p.max(v[i], v[i + 2]);
    }
  }
  return box;
}

/// Whether two boxes share more than `threshold` of what they cover together. Those without an area share nothing.
Value overlaps(Program &p, const Box &x, const Box &y, Value threshold) {
  Value zero = p.number(x.low[0].getType(), 0), shared, areas[2];
  for (int i : {0, 1}) {
    Value side = p.max(p.sub(p.min(x.high[i], y.high[i]), p.max(x.low[i], y.low[i])), zero);
    shared = i ? p.mul(shared, side) : side;
    for (int box : {0, 1}) {
      const Box &of = box ? y : x;
      Value own = p.sub(of.high[i], of.low[i]);
      areas[box] = i ? p.mul(areas[box], own) : own;
    }
  }
  Value together = p.sub(p.add(areas[0], areas[1]), shared);
  Value real = p.both(p.less(zero, shared), p.both(p.less(zero, areas[0]), p.both(p.less(zero, areas[1]), p.less(zero, together))));
  return p.both(real, p.less(threshold, p.div(shared, together)));
}

/// Of each batch and class the best box, then the best of those that overlap none taken before, and so on. Equal scores
/// keep their order.
LogicalResult raiseNonMaxSuppression(Raiser &raiser, onnx::NodeOp node) {
  Known &boxes = raiser.input(node, 0), &scores = raiser.input(node, 1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.sizes[2] != Size(4) || boxes.sizes[0] != scores.sizes[0] ||
      boxes.sizes[1] != scores.sizes[2])
    return raiser.fail(node, "expects boxes [batch, boxes, 4] and scores [batch, classes, boxes]");
  for (unsigned position : {2u, 3u, 4u})
    if (raiser.hasInput(node, position) && elementCount(raiser.input(node, position).sizes) != Size(1))
      return raiser.fail(node, "input " + Twine(position) + " must be one number");
  bool centred = node.intOr("center_point_box", 0) != 0;
  Location l = node.getLoc();
  Type type = raiser.internalType(scores.elementType), i64 = raiser.builder.getI64Type();
  Size batches = scores.sizes[0], classes = scores.sizes[1], number = scores.sizes[2];
  // By batch and class: how many boxes are taken, and which; then scratch, which ones are out.
  std::vector<Known> made = raiser.computed(
      {{Element::Int64, {batches, classes}}, {Element::Int64, scores.sizes}, {Element::Bool, scores.sizes}},
      batches * classes, [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, l);
    SmallVector<Value> group = p.split(item, {batches, classes});
    auto at = [&](Value i) { return SmallVector<Value>{group[0], group[1], i}; };
    auto given = [&](unsigned position, double otherwise) {
      return raiser.hasInput(node, position) ? raiser.element(b, raiser.input(node, position), p.index(0))
                                             : p.number(type, otherwise);
    };
    Value n = p.extent(number), zero = p.index(0), none = p.index(-1);
    Value most = raiser.hasInput(node, 2) ? p.toIndex(raiser.element(b, raiser.input(node, 2), zero)) : zero;
    Value threshold = given(3, 0);
    p.loop(n, [&](Value i) {
      Value isOut = p.flag(false);
      if (raiser.hasInput(node, 4))
        isOut = p.negate(p.less(given(4, 0), raiser.element(b, scores, at(i))));
      p.store(isOut, out[2], at(i));
      p.store(p.number(i64, 0), out[1], at(i));
    });
    auto best = [&] {
      return p.fold(n, none, [&](Value i, Value sofar) {
        Value better = p.choose(p.load(out[2], at(i)), [&] { return p.flag(false); }, [&] {
          return p.choose(p.equal(sofar, none), [&] { return p.flag(true); }, [&] {
            return p.less(raiser.element(b, scores, at(sofar)), raiser.element(b, scores, at(i)));
          });
        });
        return p.select(better, i, sofar);
      });
    };
    // Carried: how many were taken, and the next to take, or -1.
    Value taken = p.repeat(
        {zero, best()},
        [&](ValueRange v) { return p.both(p.less(v[0], most), p.less(none, v[1])); },
        [&](ValueRange v) -> SmallVector<Value> {
          p.store(p.toInteger(v[1], i64), out[1], at(v[0]));
          Box mine = boxAt(raiser, p, boxes, group[0], v[1], centred);
          p.loop(n, [&](Value i) {
            Value gone = p.either(p.load(out[2], at(i)),
                                  overlaps(p, mine, boxAt(raiser, p, boxes, group[0], i, centred), threshold));
            p.store(p.either(gone, p.equal(i, v[1])), out[2], at(i));
          });
          return {p.plus(v[0], 1), best()};
        })[0];
    p.store(p.toInteger(taken, i64), out[0], {group[0], group[1]});
  });
  Known sum = raiser.generated(Element::Int64, {1}, [&](OpBuilder &b, ValueRange) {
    Program p(b, l);
    return walk(p, {batches, classes}, p.number(i64, 0), [&](ValueRange at, Value total) {
      return p.add(total, raiser.element(b, made[0], at));
    });
  });
  Size total = raiser.bind(sum.tensor, "selected").front();
  raiser.set(node, raiser.computed({{Element::Int64, {total, 3}}}, 1, [&](OpBuilder &b, Value, ValueRange out) {
    Program p(b, l);
    walk(p, {batches, classes}, p.index(0), [&](ValueRange group, Value next) {
      Value taken = p.toIndex(raiser.element(b, made[0], group));
      p.loop(taken, [&](Value i) {
        Value row = p.add(next, i);
        p.store(p.toInteger(group[0], i64), out[0], {row, p.index(0)});
        p.store(p.toInteger(group[1], i64), out[0], {row, p.index(1)});
        p.store(raiser.element(b, made[1], {group[0], group[1], i}), out[0], {row, p.index(2)});
      });
      return p.add(next, taken);
    });
  }).front());
  return success();
}

} // namespace

void raise::registerSelection(Registry &registry) {
  registry.add("NonZero", raiseNonZero, 1, 1, 9);
  registry.add("Compress", raiseCompress, 2, 2, 9);
  registry.add("NonMaxSuppression", raiseNonMaxSuppression, 2, 5, 10);
}
