// SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample. Nearest moves elements: one generate. Linear and cubic go axis by axis, each
// a weighted sum of a few neighbours. Coordinates are computed in f64, once for each position along
// an axis, so that a position that lies between two elements in the model's exporter does so here.

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"
#include "passes/Raise/Windows.h"

#include "dialects/ONNX/ElementType.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

enum class Coordinates { halfPixel, symmetric, pytorch, alignCorners, asymmetric, crop };
enum class Rounding { preferFloor, preferCeil, floor, ceil, simple };
enum class Mode { nearest, linear, cubic };

struct Resizing {
  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::halfPixel;
  Rounding rounding = Rounding::preferFloor;
  bool excludeOutside = false, antialias = false;
  double cubic = -0.75, extrapolation = 0;
};

/// One axis that changes. Its scale is a constant, an element of the scales, or the ratio of its
/// sizes.
struct ResizedAxis {
  size_t axis;
  Size from, to;
  std::optional<double> scale;
  Known *scales = nullptr, *roi = nullptr;
  int64_t number = 0, count = 0; // its place among the axes that scales, sizes and roi are about

  Value scaleValue(Raiser &raiser, Scalars &s) const {
    Type f64 = s.b.getF64Type();
    if (scale)
      return s.number(f64, *scale);
    if (scales) // one for all, or one for each
      return s.real(
          f64, raiser.element(s.b, *scales, {s.index(scales->sizes[0] == Size(1) ? 0 : number)}));
    return s.div(s.real(f64, s.index(to)), s.real(f64, s.index(from)));
  }
};

template <typename Kind>
std::optional<Kind> choose(StringRef name, ArrayRef<std::pair<StringRef, Kind>> names) {
  for (auto &[known, kind] : names)
    if (known == name)
      return kind;
  return std::nullopt;
}

FailureOr<Resizing> readAttributes(Raiser &raiser, onnx::NodeOp node) {
  Resizing how;
  StringRef mode = node.stringOr("mode", "nearest");
  auto kind = choose<Mode>(mode, {{"nearest", Mode::nearest},
                                  {"linear", Mode::linear},
                                  {"bilinear", Mode::linear},
                                  {"cubic", Mode::cubic}});
  if (!kind)
    return raiser.fail(node, "mode is " + mode + ", and must be nearest, linear or cubic");
  how.mode = *kind;
  if (node.getVersion() < 11) { // of Upsample and of the first Resize
    how.coordinates = Coordinates::asymmetric;
    how.rounding = node.getOpType() == "Upsample" ? Rounding::floor : Rounding::simple;
    return how;
  }
  StringRef coordinates = node.stringOr("coordinate_transformation_mode", "half_pixel");
  auto transformation =
      choose<Coordinates>(coordinates, {{"half_pixel", Coordinates::halfPixel},
                                        {"half_pixel_symmetric", Coordinates::symmetric},
                                        {"pytorch_half_pixel", Coordinates::pytorch},
                                        {"align_corners", Coordinates::alignCorners},
                                        {"asymmetric", Coordinates::asymmetric},
                                        {"tf_crop_and_resize", Coordinates::crop}});
  if (!transformation)
    return raiser.fail(node, "coordinate_transformation_mode " + coordinates + " is not supported");
  how.coordinates = *transformation;
  StringRef nearest = node.stringOr("nearest_mode", "round_prefer_floor");
  auto rounding = choose<Rounding>(nearest, {{"round_prefer_floor", Rounding::preferFloor},
                                             {"round_prefer_ceil", Rounding::preferCeil},
                                             {"floor", Rounding::floor},
                                             {"ceil", Rounding::ceil}});
  if (!rounding)
    return raiser.fail(node, "nearest_mode " + nearest + " is not supported");
  how.rounding = *rounding;
  how.excludeOutside = node.intOr("exclude_outside", 0) != 0;
  how.antialias = node.intOr("antialias", 0) != 0;
  how.cubic = node.floatOr("cubic_coeff_a", -0.75f);
  how.extrapolation = node.floatOr("extrapolation_value", 0);
  if (how.antialias && how.mode == Mode::nearest)
    return raiser.fail(node, "antialias needs mode linear or cubic");
  return how;
}

/// Where position `o` of the result is in the input, in f64.
Value coordinate(Raiser &raiser, Scalars &s, const Resizing &how, const ResizedAxis &axis,
                 Value o) {
  Type f64 = s.b.getF64Type();
  Value place = s.real(f64, o), scale = axis.scaleValue(raiser, s),
        extent = s.real(f64, s.index(axis.from));
  auto number = [&](double value) { return s.number(f64, value); };
  Value width = s.mul(scale, extent), one = s.equal(width, number(1));
  auto half = [&] { return s.add(s.div(s.add(place, 0.5), scale), -0.5); };
  // Divisors of zero are not looked at.
  auto aligned = [&](Value x) { return s.div(s.mul(x, s.add(extent, -1)), s.add(width, -1)); };
  switch (how.coordinates) {
  case Coordinates::halfPixel:
    return half();
  case Coordinates::symmetric: {
    Value adjustment = s.div(s.real(f64, s.index(axis.to)), width);
    return s.add(s.mul(s.mul(extent, 0.5), s.sub(number(1), adjustment)), half());
  }
  case Coordinates::pytorch:
    return s.select(one, number(-0.5), half());
  case Coordinates::alignCorners:
    return s.select(one, number(0), aligned(place));
  case Coordinates::asymmetric:
    return s.div(place, scale);
  case Coordinates::crop: {
    auto border = [&](int64_t which) {
      return s.real(f64, raiser.element(s.b, *axis.roi, {s.index(which)}));
    };
    Value begin = border(axis.number), range = s.sub(border(axis.count + axis.number), begin);
    Value middle = s.mul(s.mul(range, s.add(extent, -1)), 0.5);
    return s.add(s.select(one, middle, aligned(s.mul(place, range))),
                 s.mul(begin, s.add(extent, -1)));
  }
  }
  return {};
}

Known coordinates(Raiser &raiser, Location l, const Resizing &how, const ResizedAxis &axis) {
  return raiser.generated(Element::Double, {axis.to}, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    return coordinate(raiser, s, how, axis, at[0]);
  });
}

/// Whether a coordinate lies where tf_crop_and_resize puts a value of its own.
Value isExtrapolated(Scalars &s, Value x, const ResizedAxis &axis) {
  Type type = x.getType();
  return s.either(s.less(x, s.number(type, 0)),
                  s.less(s.real(type, s.index(axis.from - Size(1))), x));
}

Value roundedPlace(Raiser &raiser, Scalars &s, const Resizing &how, const ResizedAxis &axis,
                   Value x) {
  switch (how.rounding) {
  case Rounding::preferFloor:
    return s.ceil(s.add(x, -0.5));
  case Rounding::preferCeil:
    return s.floor(s.add(x, 0.5));
  case Rounding::floor:
    return s.floor(x);
  case Rounding::ceil:
    return s.ceil(x);
  case Rounding::simple: // up where the axis shrinks, as runtimes did before the attribute
    return s.select(s.less(axis.scaleValue(raiser, s), s.number(x.getType(), 1)), s.ceil(x),
                    s.floor(x));
  }
  return {};
}

/// What `value` becomes where an axis is extrapolated.
Value orExtrapolation(Scalars &s, const Resizing &how, Value outside, Value value) {
  return outside ? s.select(outside, s.number(value.getType(), how.extrapolation), value) : value;
}

Known resizeNearest(Raiser &raiser, Location l, const Resizing &how, Known &x, ArrayRef<Size> sizes,
                    ArrayRef<ResizedAxis> axes) {
  SmallVector<Known, 2> places;
  for (const ResizedAxis &axis : axes)
    places.push_back(coordinates(raiser, l, how, axis));
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    SmallVector<Value> from(at);
    Value outside, some;
    for (auto [axis, place] : llvm::zip(axes, places)) {
      Value c = raiser.element(b, place, {at[axis.axis]});
      if (how.coordinates == Coordinates::crop)
        outside =
            outside ? s.either(outside, isExtrapolated(s, c, axis)) : isExtrapolated(s, c, axis);
      from[axis.axis] = s.clamp(s.toIndex(roundedPlace(raiser, s, how, axis, c)), axis.from);
      some = s.both(some, s.some(axis.from));
    }
    Value element = s.when(
        some, [&](Scalars &s) { return raiser.element(s.b, x, from); },
        [&](Scalars &s) { return s.number(raiser.internalType(x.elementType), 0); });
    return orExtrapolation(s, how, outside, element);
  });
}

/// The weight of a neighbour at a distance.
Value weight(Scalars &s, const Resizing &how, Value d) {
  Type type = d.getType();
  if (how.mode == Mode::linear)
    return s.max(s.sub(s.number(type, 1), d), s.number(type, 0));
  double a = how.cubic;
  Value near = s.add(s.mul(s.mul(s.add(s.mul(d, a + 2), -(a + 3)), d), d), 1);
  Value far = s.add(s.mul(s.add(s.mul(s.add(s.mul(d, a), -5 * a), d), 8 * a), d), -4 * a);
  far = s.select(s.less(d, s.number(type, 2)), far, s.number(type, 0));
  return s.select(s.lessEqual(d, s.number(type, 1)), near, far);
}

/// One axis of a linear or cubic resize; x holds floats.
Known resizeAxis(Raiser &raiser, Location l, const Resizing &how, Known &x,
                 const ResizedAxis &axis) {
  SmallVector<Size> sizes(x.sizes);
  sizes[axis.axis] = axis.to;
  Known places = coordinates(raiser, l, how, axis);
  Type type = raiser.internalType(x.elementType), f64 = raiser.builder.getF64Type();
  double radius = how.mode == Mode::cubic ? 2 : 1;
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value place = raiser.element(b, places, {at[axis.axis]});
    Value whole = s.floor(place), fraction = s.sub(place, whole);
    // Antialiasing widens the kernel of an axis that shrinks. Neighbours run from `first` on,
    // symmetric to the place.
    Value scale, first, count;
    if (how.antialias) {
      scale = s.min(axis.scaleValue(raiser, s), s.number(f64, 1));
      first = s.toIndex(s.add(s.floor(s.div(s.number(f64, -radius), scale)), 1));
      if (axis.scale)
        first = s.index(int64_t(std::floor(-radius / std::min(*axis.scale, 1.0))) + 1);
    } else {
      first = s.index(int64_t(1 - radius));
    }
    if (how.antialias && !axis.scale)
      count = s.sub(s.index(2), s.mul(first, 2));
    else
      count = s.index(2 - 2 * *getConstantIntValue(first));
    Value start = s.add(s.toIndex(whole), first);
    SmallVector<Value> initial{s.number(type, 0), s.number(type, 0)};
    auto sums =
        s.loop(ValueRange(count), initial, [&](Scalars &s, ValueRange loop, ValueRange carried) {
          Value position = s.add(start, loop[0]);
          Value distance = s.abs(s.sub(s.real(f64, s.add(first, loop[0])), fraction));
          Value w = s.real(type, weight(s, how, scale ? s.mul(distance, scale) : distance));
          if (how.excludeOutside)
            w = s.select(s.inside(position, axis.from), w, s.number(type, 0));
          SmallVector<Value> from(at);
          from[axis.axis] = s.clamp(position, axis.from);
          Value element = s.when(
              s.some(axis.from), [&](Scalars &s) { return raiser.element(s.b, x, from); },
              [&](Scalars &s) { return s.number(type, 0); });
          return SmallVector<Value>{s.add(carried[0], s.mul(w, element)), s.add(carried[1], w)};
        });
    Value result = sums[0];
    if (how.excludeOutside || how.antialias) // otherwise weights sum to one
      result = s.div(result, sums[1]);
    return orExtrapolation(
        s, how, how.coordinates == Coordinates::crop ? isExtrapolated(s, place, axis) : Value(),
        result);
  });
}

/// An integer as f32, and back: rounded to even, limited to what the type holds.
Known asFloats(Raiser &raiser, Location l, Known &x) {
  return raiser.generated(Element::Float, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Value element = raiser.element(b, x, at);
    if (raiser.isUnsigned(x.elementType))
      return arith::UIToFPOp::create(b, l, b.getF32Type(), element);
    return arith::SIToFPOp::create(b, l, b.getF32Type(), element);
  });
}

Known asIntegers(Raiser &raiser, Location l, Known &x, int64_t elementType) {
  return raiser.generated(elementType, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s(b, l);
    Type type = raiser.internalType(elementType), f32 = b.getF32Type();
    unsigned bits = type.getIntOrFloatBitWidth();
    bool isUnsigned = raiser.isUnsigned(elementType);
    double low = isUnsigned ? 0 : -std::ldexp(1.0, bits - 1),
           high = std::ldexp(1.0, isUnsigned ? bits : bits - 1) - 1;
    Value rounded = math::RoundEvenOp::create(b, l, raiser.element(b, x, at));
    Value limited = arith::MinNumFOp::create(
        b, l, arith::MaxNumFOp::create(b, l, rounded, s.number(f32, low)), s.number(f32, high));
    Value wide = arith::FPToSIOp::create(b, l, b.getI32Type(), limited);
    return arith::TruncIOp::create(b, l, type, wide);
  });
}

/// What the axes are made from.
struct Request {
  SmallVector<int64_t> axes;
  Known *roi = nullptr, *scales = nullptr, *sizes = nullptr;
  std::optional<SmallVector<double>> constants; // of the scales
  int common = 0;    // -1: the smallest ratio of sizes is every axis's scale; 1: the largest
  Known commonScale; // where data gives it
};

LogicalResult readRequest(Raiser &raiser, onnx::NodeOp node, int64_t rank, const Resizing &how,
                          Request &request) {
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("axes"))) {
    for (int64_t axis : given.asArrayRef()) {
      int64_t at = axis < 0 ? axis + rank : axis;
      if (at < 0 || at >= rank || llvm::is_contained(request.axes, at))
        return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(rank) +
                                     " or there twice");
      request.axes.push_back(at);
    }
  } else {
    request.axes.resize(rank);
    std::iota(request.axes.begin(), request.axes.end(), 0);
  }
  // An empty tensor stands for a missing one.
  auto given = [&](unsigned position) -> Known * {
    if (!raiser.hasInput(node, position) ||
        elementCount(raiser.input(node, position).sizes) == Size(0))
      return nullptr;
    return &raiser.input(node, position);
  };
  bool old = node.getVersion() < 11;
  request.roi = old ? nullptr : given(1);
  request.scales = given(old ? 1 : 2);
  request.sizes = old ? nullptr : given(3);
  if (auto list =
          dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute("scales"))) // Upsample of opset 7
    request.constants = SmallVector<double>(list.asArrayRef().begin(), list.asArrayRef().end());
  else if (request.scales && request.scales->reals)
    request.constants = *request.scales->reals;
  int64_t count = request.axes.size();
  Known *what = request.sizes ? request.sizes : request.scales;
  SmallVector<Size> length;
  if (what)
    length = what->sizes;
  else if (request.constants)
    length = {Size(int64_t(request.constants->size()))};
  else
    return raiser.fail(node, "it has neither scales nor sizes");
  if (length != SmallVector<Size>{Size(count)})
    return raiser.fail(node, "it has " + elementCount(length).str() + " scales or sizes for " +
                                 Twine(count) + " axes");
  if (how.coordinates == Coordinates::crop &&
      (!request.roi || request.roi->sizes != SmallVector<Size>{Size(2 * count)}))
    return raiser.fail(node, "tf_crop_and_resize needs a roi of " + Twine(2 * count) + " elements");
  if (!request.sizes && request.constants)
    for (double scale : *request.constants)
      if (!(scale > 0) || scale > 1 << 20)
        return raiser.fail(node, "a scale is " + Twine(std::to_string(scale)) +
                                     ", and must be positive and at most 2^20");
  StringRef policy = node.stringOr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return raiser.fail(node, "keep_aspect_ratio_policy " + policy + " is not supported");
  if (request.sizes)
    request.common = policy == "not_larger" ? -1 : policy == "not_smaller" ? 1 : 0;
  return success();
}

/// Sizes and scales where they are known while compiling, or follow from the input's sizes.
bool placeAxes(Request &request, MutableArrayRef<ResizedAxis> axes) {
  for (ResizedAxis &axis : axes) {
    std::optional<int64_t> from = axis.from.constant();
    if (request.sizes) {
      if (!request.sizes->integers)
        return false;
      axis.to = (*request.sizes->integers)[axis.number];
      if (axis.to.isConstant() && from && *from > 0)
        axis.scale = double(*axis.to.constant()) / double(*from);
      continue;
    }
    if (!request.constants)
      return false;
    axis.scale = (*request.constants)[axis.number];
    if (from)
      axis.to = int64_t(std::floor(double(*from) * *axis.scale));
    else if (*axis.scale == std::floor(*axis.scale))
      axis.to = axis.from * Size(int64_t(*axis.scale));
    else
      return false;
  }
  if (request.common == 0)
    return true;
  double common = request.common < 0 ? std::numeric_limits<double>::infinity() : 0;
  for (ResizedAxis &axis : axes) {
    if (!axis.scale)
      return false;
    common = request.common < 0 ? std::min(common, *axis.scale) : std::max(common, *axis.scale);
  }
  for (ResizedAxis &axis : axes) {
    axis.scale = common;
    axis.to = int64_t(common * double(*axis.from.constant()) + 0.5);
  }
  return true;
}

/// The same when the plan runs. A size is -1 where the data makes no sense.
void placeByData(Raiser &raiser, Location l, Request &request, MutableArrayRef<ResizedAxis> axes) {
  Type f64 = raiser.builder.getF64Type(), i64 = raiser.builder.getI64Type();
  auto ratio = [&](Scalars &s, const ResizedAxis &axis) {
    Value to = s.real(f64, raiser.element(s.b, *request.sizes, {s.index(axis.number)}));
    return s.div(to, s.real(f64, s.index(axis.from)));
  };
  if (request.common)
    request.commonScale =
        raiser.generated(Element::Double, {Size(1)}, [&](OpBuilder &b, ValueRange) {
          Scalars s(b, l);
          Value common;
          for (const ResizedAxis &axis : axes) {
            Value each = ratio(s, axis);
            common = !common              ? each
                     : request.common < 0 ? s.min(common, each)
                                          : s.max(common, each);
          }
          return common;
        });
  for (ResizedAxis &axis : axes) {
    axis.scale.reset();
    if (request.common)
      axis.scales = &request.commonScale;
    else if (!request.sizes && request.constants)
      axis.scale = (*request.constants)[axis.number];
    else if (!request.sizes)
      axis.scales = request.scales;
  }
  Value sizes =
      raiser.generate(i64, {Size(int64_t(axes.size()))}, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, l);
        Value result = s.index(-1);
        for (const ResizedAxis &axis : axes) {
          Value to;
          if (request.sizes && !request.common) {
            to = s.asIndex(raiser.element(b, *request.sizes, {s.index(axis.number)}));
          } else {
            Value size = s.mul(axis.scaleValue(raiser, s), s.real(f64, s.index(axis.from)));
            to = s.toIndex(s.floor(request.common ? s.add(size, 0.5) : size));
          }
          // Nothing grows from an empty axis.
          Value empty = s.both(s.equal(s.index(axis.from), s.index(0)), s.less(s.index(0), to));
          to = s.select(empty, s.index(-1), to);
          result = s.select(s.equal(at[0], s.index(axis.number)), to, result);
        }
        return s.asInteger(i64, result);
      });
  for (auto [axis, size] : llvm::zip(axes, raiser.bind(sizes, "resized")))
    axis.to = size;
}

LogicalResult raiseResize(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Resizing> how = readAttributes(raiser, node);
  if (failed(how))
    return failure();
  Request request;
  if (failed(readRequest(raiser, node, x.rank(), *how, request)))
    return failure();
  Location l = node.getLoc();
  SmallVector<ResizedAxis, 4> all;
  for (auto [number, axis] : llvm::enumerate(request.axes))
    all.push_back({size_t(axis),
                   x.sizes[axis],
                   {},
                   {},
                   nullptr,
                   request.roi,
                   int64_t(number),
                   int64_t(request.axes.size())});
  if (!placeAxes(request, all))
    placeByData(raiser, l, request, all);
  SmallVector<Size> sizes(x.sizes);
  SmallVector<ResizedAxis> axes; // those that change
  for (const ResizedAxis &axis : all) {
    std::optional<int64_t> to = axis.to.constant();
    if (to && *to > 0 && axis.from == Size(0))
      return raiser.fail(node, "an axis of size 0 cannot grow");
    sizes[axis.axis] = axis.to;
    bool whole = how->coordinates != Coordinates::crop;
    if (axis.roi && axis.roi->reals && !whole)
      whole =
          (*axis.roi->reals)[axis.number] == 0 && (*axis.roi->reals)[axis.count + axis.number] == 1;
    if (!(whole && axis.from == axis.to && (!axis.scale || *axis.scale == 1)))
      axes.push_back(axis);
  }
  Type type = raiser.internalType(x.elementType);
  if (axes.empty()) {
    raiser.set(node, Known(x));
  } else if (how->mode == Mode::nearest) {
    raiser.set(node, resizeNearest(raiser, l, *how, x, sizes, axes));
  } else if (isa<FloatType>(type)) {
    Known result = x;
    for (const ResizedAxis &axis : axes)
      result = resizeAxis(raiser, l, *how, result, axis);
    raiser.set(node, std::move(result));
  } else if (type.getIntOrFloatBitWidth() == 8 || type.getIntOrFloatBitWidth() == 16) {
    Known result = asFloats(raiser, l, x);
    for (const ResizedAxis &axis : axes)
      result = resizeAxis(raiser, l, *how, result, axis);
    raiser.set(node, asIntegers(raiser, l, result, x.elementType));
  } else {
    return raiser.fail(node, "mode linear or cubic takes floats and integers of 8 or 16 bits");
  }
  return success();
}

} // namespace

void raise::registerResize(Registry &registry) {
  registry.add("Resize", raiseResize, 1, 4, 10);
  registry.add("Upsample", raiseResize, 1, 2);
}
