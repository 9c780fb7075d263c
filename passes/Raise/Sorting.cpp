// SPDX-License-Identifier: Apache-2.0
//
// ArgMax and ArgMin, TopK, Unique.

#include "passes/Raise/Program.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

//===------------------------------------------------------------------------------------------===//
// ArgMax, ArgMin
//===------------------------------------------------------------------------------------------===//

/// The place of the best element, the first or the last of equal ones. A NaN is better than every number.
LogicalResult raiseArgExtremum(Raiser &raiser, onnx::NodeOp node, bool largest) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank(), axis = node.intOr("axis", 0);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(node.intOr("axis", 0)) + " is outside rank " + Twine(rank));
  bool keep = node.intOr("keepdims", 1) != 0, last = node.intOr("select_last_index", 0) != 0;
  bool isUnsigned = raiser.isUnsigned(input.elementType);
  SmallVector<Size> sizes(input.sizes);
  if (keep)
    sizes[axis] = 1;
  else
    sizes.erase(sizes.begin() + axis);
  raiser.set(node, raiser.generated(Element::Int64, sizes, [&](OpBuilder &b, ValueRange indices) {
    Program p(b, node.getLoc());
    auto element = [&](Value i) {
      SmallVector<Value> at(indices);
      if (keep)
        at[axis] = i;
      else
        at.insert(at.begin() + axis, i);
      return raiser.element(b, input, at);
    };
    Value best = p.fold(p.extent(input.sizes[axis]), p.index(0), [&](Value i, Value sofar) {
      Value x = element(i), y = element(sofar);
      Value better = largest ? p.less(y, x, isUnsigned) : p.less(x, y, isUnsigned);
      if (last)
        better = p.either(better, p.equal(x, y));
      if (isa<FloatType>(x.getType())) {
        Value isNan = p.negate(p.equal(x, x)), wasNan = p.negate(p.equal(y, y));
        better = p.either(better, last ? isNan : p.both(isNan, p.negate(wasNan)));
      }
      return p.select(better, i, sofar);
    });
    return p.toInteger(best, b.getI64Type());
  }));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// TopK
//===------------------------------------------------------------------------------------------===//

/// How many are asked for: an attribute before opset 10; else a size, or data, which must be at most what there is.
FailureOr<Size> countOf(Raiser &raiser, onnx::NodeOp node, const Size &available) {
  Size count = node.intOr("k", -1);
  if (raiser.hasInput(node, 1)) {
    Known &given = raiser.input(node, 1);
    if (failed(mustBeNumber(raiser, node, given, "its k must be one number")))
      return failure();
    if (given.integers) {
      count = given.integers->front();
    } else {
      Known checked = raiser.generated(Element::Int64, {1}, [&](OpBuilder &b, ValueRange) {
        Program p(b, node.getLoc());
        Value k = p.toIndex(raiser.element(b, given, p.index(0)));
        Value tooMany = p.less(p.extent(available), k);
        return p.toInteger(p.select(tooMany, p.index(-1), k), b.getI64Type());
      });
      return raiser.bind(checked.tensor, "k", "its k is negative, or larger than its axis").front();
    }
  }
  if (!count.isAtLeast(0) || !available.isAtLeast(count))
    return raiser.fail(node, "cannot give " + count.str() + " of " + available.str() + " elements");
  return count;
}

/// Keeps the best so far in order, and inserts each element that is better than the last. Equal ones stay in order.
LogicalResult raiseTopK(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank(), axis = node.intOr("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node, "axis " + Twine(node.intOr("axis", -1)) + " is outside rank " + Twine(rank));
  FailureOr<Size> count = countOf(raiser, node, input.sizes[axis]);
  if (failed(count))
    return failure();
  bool largest = node.intOr("largest", 1) != 0, isUnsigned = raiser.isUnsigned(input.elementType);
  SmallVector<Size> sizes(input.sizes), others(input.sizes);
  sizes[axis] = *count;
  others.erase(others.begin() + axis);
  std::vector<Known> results = raiser.computed(
      {{input.elementType, sizes}, {Element::Int64, sizes}}, elementCount(others),
      [&](OpBuilder &b, Value item, ValueRange out) {
    Program p(b, node.getLoc());
    SmallVector<Value> line = p.split(item, others);
    auto along = [&](Value i) {
      SmallVector<Value> at(line);
      at.insert(at.begin() + axis, i);
      return at;
    };
    Value k = p.extent(*count), length = p.extent(input.sizes[axis]);
    length = p.select(p.less(p.index(0), k), length, p.index(0));
    p.fold(length, p.index(0), [&](Value i, Value filled) {
      Value x = raiser.element(b, input, along(i));
      auto isBetterThan = [&](Value place) {
        Value other = p.load(out[0], along(place));
        return largest ? p.less(other, x, isUnsigned) : p.less(x, other, isUnsigned);
      };
      Value last = p.sub(k, p.index(1)), isFull = p.equal(filled, k);
      Value enters = p.choose(isFull, [&] { return isBetterThan(last); }, [&] { return p.flag(true); });
      p.when(enters, [&] {
        Value place = p.repeat(
            p.min(filled, last),
            [&](ValueRange v) {
              return p.choose(p.less(p.index(0), v[0]), [&] { return isBetterThan(p.plus(v[0], -1)); },
                              [&] { return p.flag(false); });
            },
            [&](ValueRange v) -> SmallVector<Value> {
              Value before = p.plus(v[0], -1);
              for (Value handle : out)
                p.store(p.load(handle, along(before)), handle, along(v[0]));
              return {before};
            })[0];
        p.store(x, out[0], along(place));
        p.store(p.toInteger(i, b.getI64Type()), out[1], along(place));
      });
      return p.min(p.plus(filled, 1), k);
    });
  });
  for (auto [position, result] : llvm::enumerate(results))
    if (position < node.getOutputs().size())
      raiser.set(node, result, position);
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Unique
//===------------------------------------------------------------------------------------------===//

/// Slices along the axis, or elements, get sorted with their numbers; neighbours that are equal are one. How many there
/// are is known after that only, so four tensors are made for the case that all differ, and cut when it is known.
LogicalResult raiseUnique(Raiser &raiser, onnx::NodeOp node) {
  Known input = raiser.input(node, 0);
  bool sorted = node.intOr("sorted", 1) != 0, isUnsigned = raiser.isUnsigned(input.elementType);
  int64_t axis = 0;
  if (!node.attribute("axis")) {
    input = raiser.reshaped(input, {elementCount(input.sizes)});
  } else {
    axis = node.intOr("axis", 0) + (node.intOr("axis", 0) < 0 ? int64_t(input.rank()) : 0);
    if (axis < 0 || axis >= int64_t(input.rank()))
      return raiser.fail(node, "axis " + Twine(node.intOr("axis", 0)) + " is outside rank " + Twine(input.rank()));
  }
  Size count = input.sizes[axis];
  SmallVector<Size> others(input.sizes);
  others.erase(others.begin() + axis);
  raiser.tensor(input);
  Location l = node.getLoc();
  Type i64 = raiser.builder.getI64Type();
  // The number of groups; by group its first slice and how many it has; by slice its group. Then scratch: two lines to
  // sort in, by slice the first one that equals it.
  std::vector<Known> made = raiser.computed(
      {{Element::Int64, {1}}, {Element::Int64, {count}}, {Element::Int64, {count}}, {Element::Int64, {count}},
       {Element::Int64, {2, count}}, {Element::Int64, {count}}},
      1, [&](OpBuilder &b, Value, ValueRange out) {
    Program p(b, l);
    Value groups = out[0], first = out[1], counts = out[2], group = out[3], lines = out[4], leader = out[5];
    Value n = p.extent(count), zero = p.index(0);
    auto element = [&](Value slice, ValueRange place) {
      SmallVector<Value> at(place);
      at.insert(at.begin() + axis, slice);
      return raiser.element(b, input, at);
    };
    // -1, 0 or 1 as x's slice comes before, equals or comes after y's.
    auto compare = [&](Value x, Value y) {
      Value order = p.index(0);
      SmallVector<Value> place;
      auto nest = [&](auto &self, size_t d, Value order) -> Value {
        if (d == others.size())
          return p.choose(p.equal(order, p.index(0)), [&] {
            Value left = element(x, place), right = element(y, place);
            return p.select(p.less(left, right, isUnsigned), p.index(-1),
                            p.select(p.less(right, left, isUnsigned), p.index(1), p.index(0)));
          }, [&] { return order; });
        return p.fold(p.extent(others[d]), order, [&](Value i, Value carried) {
          place.push_back(i);
          Value result = self(self, d + 1, carried);
          place.pop_back();
          return result;
        });
      };
      return nest(nest, 0, order);
    };
    auto load = [&](Value handle, Value at) { return p.toIndex(p.load(handle, at)); };
    auto store = [&](Value value, Value handle, Value at) { p.store(p.toInteger(value, i64), handle, at); };
    Value row = p.sort(n, lines, {}, [&](Value x, Value y) { return p.less(compare(x, y), p.index(0)); });
    p.loop(n, [&](Value i) {
      store(zero, first, i);
      store(zero, counts, i);
    });
    // Equal slices stand in order, so the first of them is the leader.
    auto slice = [&](Value i) { return p.toIndex(p.load(lines, {row, i})); };
    auto startsGroup = [&](Value i) {
      return p.choose(p.equal(i, zero), [&] { return p.flag(true); },
                      [&] { return p.negate(p.equal(compare(slice(p.plus(i, -1)), slice(i)), zero)); });
    };
    p.fold(n, zero, [&](Value i, Value current) {
      Value mine = slice(i), now = p.select(startsGroup(i), mine, current);
      store(now, leader, mine);
      return now;
    });
    // Groups are numbered in sorted order, or in the order of their leaders.
    auto number = [&](function_ref<Value(Value)> sliceAt) {
      return p.fold(n, zero, [&](Value i, Value next) {
        Value mine = sliceAt(i), leads = p.equal(load(leader, mine), mine);
        p.when(leads, [&] {
          store(next, group, mine);
          store(mine, first, next);
        });
        return p.select(leads, p.plus(next, 1), next);
      });
    };
    Value total = sorted ? number(slice) : number([](Value i) { return i; });
    store(total, groups, zero);
    p.loop(n, [&](Value i) {
      Value mine = load(group, load(leader, i));
      store(mine, group, i);
      store(p.plus(load(counts, mine), 1), counts, mine);
    });
  });
  Size total = raiser.bind(made[0].tensor, "unique").front();
  auto cut = [&](Known &from) {
    return raiser.generated(Element::Int64, {total}, [&](OpBuilder &b, ValueRange at) {
      return raiser.element(b, from, at);
    });
  };
  SmallVector<Size> sizes(input.sizes);
  sizes[axis] = total;
  raiser.set(node, raiser.generated(input.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Program p(b, l);
    SmallVector<Value> from(at);
    from[axis] = p.toIndex(raiser.element(b, made[1], at[axis]));
    return raiser.element(b, input, from);
  }));
  if (node.getOutputs().size() > 1)
    raiser.set(node, cut(made[1]), 1);
  if (node.getOutputs().size() > 2)
    raiser.set(node, made[3], 2);
  if (node.getOutputs().size() > 3)
    raiser.set(node, cut(made[2]), 3);
  return success();
}

} // namespace

void raise::registerSorting(Registry &registry) {
  registry.add("ArgMax", [](Raiser &r, onnx::NodeOp node) { return raiseArgExtremum(r, node, true); }, 1, 1);
  registry.add("ArgMin", [](Raiser &r, onnx::NodeOp node) { return raiseArgExtremum(r, node, false); }, 1, 1);
  registry.add("TopK", raiseTopK, 1, 2);
  registry.add("Unique", raiseUnique, 1, 1, 11);
}
