// SPDX-License-Identifier: Apache-2.0
//
// GridSample and the interpolation that it shares with DeformConv.

#include "passes/Raise/Sampling.h"

#include "passes/Raise/Raiser.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// x reflected at `low` and `high` until it lies between them.
Value reflect(Scalars &s, Value x, Value low, Value high) {
  Value range = s.sub(high, low);
  Value below = s.less(x, low), above = s.less(high, x);
  Value distance = s.select(below, s.sub(low, x), s.sub(x, high));
  Value times = s.floor(s.div(distance, range));
  Value rest = s.sub(distance, s.mul(times, range));
  Value even = s.equal(times, s.mul(s.floor(s.mul(times, 0.5)), 2));
  Value fromLow = arith::CmpIOp::create(s.b, s.l, arith::CmpIPredicate::eq, below, even);
  Value reflected = s.select(fromLow, s.add(low, rest), s.sub(high, rest));
  // Between equal limits there is one place.
  reflected = s.select(s.equal(range, s.number(x.getType(), 0)), low, reflected);
  return s.select(s.either(below, above), reflected, x);
}

struct Limits {
  Value low, high;
};

Limits limitsOf(Scalars &s, Type type, const Size &size, Outside outside) {
  double edge = outside == Outside::reflectAtCentres ? 0 : 0.5;
  return {s.number(type, -edge), s.add(s.real(type, s.index(size)), edge - 1)};
}

/// The index inside the axis that stands for i; for zeros i itself.
Value resolve(Scalars &s, Type type, Value i, const Size &size, Outside outside) {
  switch (outside) {
  case Outside::zeros:
    return i;
  case Outside::border:
    return s.clamp(i, size);
  case Outside::reflectAtCentres:
  case Outside::reflectAtEdges: {
    Limits limits = limitsOf(s, type, size, outside);
    return s.clamp(s.toIndex(reflect(s, s.real(type, i), limits.low, limits.high)), size);
  }
  }
  return {};
}

/// The weight of an element at a distance, which is not negative. Cubic: Keys's, with a = −0.75.
Value weight(Scalars &s, Value d, Interpolation interpolation) {
  Type type = d.getType();
  if (interpolation == Interpolation::linear)
    return s.sub(s.number(type, 1), d);
  constexpr double a = -0.75;
  Value near = s.add(s.mul(s.mul(s.add(s.mul(d, a + 2), -(a + 3)), d), d), 1);
  Value far = s.add(s.mul(s.add(s.mul(s.add(s.mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
  return s.select(s.lessEqual(d, s.number(type, 1)), near, far);
}

LogicalResult raiseGridSample(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &grid = raiser.input(node, 1);
  size_t rank = x.rank() < 2 ? 0 : x.rank() - 2;
  Type type = raiser.internalType(x.elementType), gridType = raiser.internalType(grid.elementType);
  if (rank == 0 || grid.rank() != x.rank() || grid.sizes.back() != Size(int64_t(rank)) ||
      grid.sizes[0] != x.sizes[0] || !isa<FloatType>(gridType))
    return raiser.fail(node,
                       "expects an input [batch, channels, spatial...] and a grid [batch, ..., " +
                           Twine(rank) + "] of floats");
  StringRef mode = node.stringOr("mode", "linear"),
            padding = node.stringOr("padding_mode", "zeros");
  bool corners = node.intOr("align_corners", 0) != 0;
  Interpolation interpolation = mode == "nearest"                      ? Interpolation::nearest
                                : mode == "cubic" || mode == "bicubic" ? Interpolation::cubic
                                                                       : Interpolation::linear;
  if (interpolation == Interpolation::linear && mode != "linear" && mode != "bilinear")
    return raiser.fail(node, "mode is " + mode + ", and must be linear, nearest or cubic");
  if (interpolation != Interpolation::nearest && !isa<FloatType>(type))
    return raiser.fail(node, "only mode nearest takes elements that are no floats");
  Outside outside = padding == "border"       ? Outside::border
                    : padding != "reflection" ? Outside::zeros
                    : corners                 ? Outside::reflectAtCentres
                                              : Outside::reflectAtEdges;
  if (outside == Outside::zeros && padding != "zeros")
    return raiser.fail(node,
                       "padding_mode is " + padding + ", and must be zeros, border or reflection");
  Type coordinate = isa<FloatType>(type) ? type : gridType;
  SmallVector<Size> sizes{x.sizes[0], x.sizes[1]};
  sizes.append(grid.sizes.begin() + 1, grid.sizes.end() - 1);
  raiser.set(node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, node.getLoc());
    SmallVector<SampledAxis> axes;
    for (size_t i = 0; i != rank; ++i) {
      // The grid has the last axis first, from −1 to 1.
      SmallVector<Value> where{at[0]};
      llvm::append_range(where, at.drop_front(2));
      where.push_back(s.index(rank - 1 - i));
      Value n = s.add(s.real(coordinate, raiser.element(b, grid, where)), 1);
      const Size &size = x.sizes[2 + i];
      Value extent = s.real(coordinate, s.index(size));
      Value place = corners ? s.mul(s.mul(n, 0.5), s.add(extent, -1))
                            : s.mul(s.add(s.mul(n, extent), -1), 0.5);
      if (interpolation == Interpolation::nearest)
        place = math::RoundEvenOp::create(b, s.l, place);
      if (outside == Outside::border) {
        place = s.max(s.min(place, s.add(extent, -1)), s.number(coordinate, 0));
      } else if (outside != Outside::zeros) {
        Limits limits = limitsOf(s, coordinate, size, outside);
        place = reflect(s, place, limits.low, limits.high);
      }
      axes.push_back({size, place});
    }
    return sample(s, type, axes, interpolation, outside, [&](Scalars &s, ValueRange place) {
      SmallVector<Value> from{at[0], at[1]};
      llvm::append_range(from, place);
      return raiser.element(s.b, x, from);
    });
  }));
  return success();
}

} // namespace

Value raise::sample(Scalars &s, Type elementType, ArrayRef<SampledAxis> axes,
                    Interpolation interpolation, Outside outside,
                    function_ref<Value(Scalars &, ValueRange)> read) {
  Type type = axes.front().x.getType();
  auto pixel = [&](Scalars &s, ArrayRef<Value> places) -> Value {
    SmallVector<Value> indices;
    Value inside;
    for (auto [axis, place] : llvm::zip(axes, places)) {
      indices.push_back(resolve(s, type, place, axis.size, outside));
      if (outside == Outside::zeros)
        inside = s.both(inside, s.inside(place, axis.size));
      else
        inside = s.both(inside, s.some(axis.size));
    }
    return s.when(
        inside, [&](Scalars &s) { return read(s, indices); },
        [&](Scalars &s) { return s.number(elementType, 0); });
  };
  if (interpolation == Interpolation::nearest) {
    SmallVector<Value> places;
    for (const SampledAxis &axis : axes)
      places.push_back(s.toIndex(axis.x));
    return pixel(s, places);
  }
  int64_t taps = interpolation == Interpolation::cubic ? 4 : 2, first = taps == 4 ? -1 : 0;
  SmallVector<Value> starts, fractions;
  for (const SampledAxis &axis : axes) {
    Value whole = s.floor(axis.x);
    starts.push_back(s.add(s.toIndex(whole), double(first)));
    fractions.push_back(s.sub(axis.x, whole));
  }
  return s.sum(
      elementType, SmallVector<Size>(axes.size(), Size(taps)), [&](Scalars &s, ValueRange loop) {
        SmallVector<Value> places;
        Value product;
        for (size_t i = 0; i != axes.size(); ++i) {
          places.push_back(s.add(starts[i], loop[i]));
          Value distance = s.abs(s.sub(fractions[i], s.add(s.real(type, loop[i]), double(first))));
          Value w = weight(s, distance, interpolation);
          product = product ? s.mul(product, w) : w;
        }
        return s.mul(product, pixel(s, places));
      });
}

void raise::registerSampling(Registry &registry) {
  registry.add("GridSample", raiseGridSample, 2, 2, 16);
}
