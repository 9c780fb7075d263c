// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign and MaxRoiPool: a grid of values from each region of interest.

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

constexpr int64_t kLargestGrid = 1 << 20;

LogicalResult raiseRoiAlign(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &rois = raiser.input(node, 1), &batches = raiser.input(node, 2);
  Type type = raiser.internalType(x.elementType);
  if (x.rank() != 4 || rois.rank() != 2 || rois.sizes[1] != Size(4) || batches.rank() != 1 ||
      batches.sizes[0] != rois.sizes[0] || !isa<FloatType>(type) ||
      rois.elementType != x.elementType)
    return raiser.fail(node, "expects an image [N, C, H, W] of floats, regions [R, 4] of the same "
                             "type and R image numbers");
  int64_t height = node.intOr("output_height", 1), width = node.intOr("output_width", 1);
  int64_t ratio = node.intOr("sampling_ratio", 0);
  if (height < 1 || width < 1 || height > kLargestGrid || width > kLargestGrid || ratio < 0 ||
      ratio > kLargestGrid)
    return raiser.fail(node, "output_height, output_width or sampling_ratio is out of range");
  double scale = node.floatOr("spatial_scale", 1);
  StringRef mode = node.stringOr("mode", "avg");
  if (mode != "avg" && mode != "max")
    return raiser.fail(node, "mode is " + mode + ", and must be avg or max");
  // The attribute came with opset 16; before, regions were not moved by half a pixel.
  StringRef transformation = node.getVersion() < 16
                                 ? "output_half_pixel"
                                 : node.stringOr("coordinate_transformation_mode", "half_pixel");
  bool half = transformation == "half_pixel";
  if (!half && transformation != "output_half_pixel")
    return raiser.fail(node, "coordinate_transformation_mode is " + transformation +
                                 ", and must be half_pixel or output_half_pixel");
  bool largest = mode == "max";
  SmallVector<Size> sizes{rois.sizes[0], x.sizes[1], Size(height), Size(width)};
  raiser.set(
      node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        // By axis: rows, then columns.
        Value start[2], bin[2], count[2];
        for (int axis = 0; axis != 2; ++axis) {
          auto corner = [&](int64_t which) {
            Value value = raiser.element(b, rois, {at[0], s.index(which)});
            return s.add(s.mul(value, scale), half ? -0.5 : 0.0);
          };
          start[axis] = corner(1 - axis);
          Value extent = s.sub(corner(3 - axis), start[axis]);
          if (!half)
            extent = s.max(extent, s.number(type, 1));
          bin[axis] = s.div(extent, double(axis ? width : height));
          count[axis] = ratio ? s.index(ratio) : s.max(s.toIndex(s.ceil(bin[axis])), s.index(0));
        }
        Value image = s.asIndex(raiser.element(b, batches, {at[0]}));
        Value known =
            s.both(s.inside(image, x.sizes[0]), s.both(s.some(x.sizes[2]), s.some(x.sizes[3])));
        Value points = s.mul(count[0], count[1]);
        Value initial = s.number(type, largest ? -std::numeric_limits<double>::infinity() : 0.0);
        auto step = [&](Scalars &s, ValueRange loop, ValueRange carried) {
          Value low[2], high[2], rest[2], valid = known;
          for (int axis = 0; axis != 2; ++axis) {
            const Size &size = x.sizes[2 + axis];
            Value inBin = s.div(s.mul(s.add(s.real(type, loop[axis]), 0.5), bin[axis]),
                                s.real(type, count[axis]));
            Value place =
                s.add(s.add(start[axis], s.mul(s.real(type, at[2 + axis]), bin[axis])), inBin);
            valid = s.both(valid, s.both(s.lessEqual(s.number(type, -1), place),
                                         s.lessEqual(place, s.real(type, s.index(size)))));
            place = s.max(place, s.number(type, 0));
            Value last = s.index(size - Size(1));
            low[axis] = s.min(s.toIndex(place), last);
            high[axis] = s.min(s.add(low[axis], 1), last);
            Value atEnd = s.lessEqual(last, low[axis]);
            rest[axis] = s.select(atEnd, s.number(type, 0), s.sub(place, s.real(type, low[axis])));
          }
          Value value = s.when(
              valid,
              [&](Scalars &s) {
                Value result;
                for (int corner = 0; corner != 4; ++corner) {
                  Value weights[2];
                  for (int axis = 0; axis != 2; ++axis)
                    weights[axis] =
                        (corner >> axis) & 1 ? rest[axis] : s.sub(s.number(type, 1), rest[axis]);
                  Value row = corner & 1 ? high[0] : low[0], column = corner & 2 ? high[1] : low[1];
                  Value term = s.mul(s.mul(weights[0], weights[1]),
                                     raiser.element(s.b, x, {image, at[1], row, column}));
                  result = !result ? term : largest ? s.max(result, term) : s.add(result, term);
                }
                return result;
              },
              [&](Scalars &s) { return s.number(type, 0); });
          return SmallVector<Value>{largest ? s.max(carried[0], value) : s.add(carried[0], value)};
        };
        Value result = s.loop(ValueRange{count[0], count[1]}, ValueRange(initial), step)[0];
        if (!largest)
          return s.div(result, s.real(type, s.max(points, s.index(1))));
        return s.select(s.equal(points, s.index(0)), s.number(type, 0), result);
      }));
  return success();
}

/// Regions are [image, x1, y1, x2, y2], rounded to whole positions and divided into bins that
/// overlap where they do not divide evenly.
LogicalResult raiseMaxRoiPool(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &rois = raiser.input(node, 1);
  Type type = raiser.internalType(x.elementType);
  auto shape = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("pooled_shape"));
  if (x.rank() != 4 || rois.rank() != 2 || rois.sizes[1] != Size(5) || !isa<FloatType>(type) ||
      rois.elementType != x.elementType)
    return raiser.fail(
        node, "expects an image [N, C, H, W] of floats and regions [R, 5] of the same type");
  if (!shape || shape.size() != 2 ||
      llvm::any_of(shape.asArrayRef(), [](int64_t n) { return n < 1 || n > kLargestGrid; }))
    return raiser.fail(node, "pooled_shape must be two positive integers");
  double scale = node.floatOr("spatial_scale", 1);
  SmallVector<Size> sizes{rois.sizes[0], x.sizes[1], Size(shape[0]), Size(shape[1])};
  raiser.set(
      node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        Value begin[2], extent[2];
        for (int axis = 0; axis != 2; ++axis) {
          auto corner = [&](int64_t which) {
            Value value = s.mul(raiser.element(b, rois, {at[0], s.index(which)}), scale);
            Value zero = s.number(type, 0); // half away from zero
            return s.toIndex(s.select(s.less(value, zero), s.ceil(s.add(value, -0.5)),
                                      s.floor(s.add(value, 0.5))));
          };
          Value start = corner(2 - axis), end = corner(4 - axis);
          Value bin = s.div(s.real(type, s.max(s.add(s.sub(end, start), 1), s.index(1))),
                            double(shape[axis]));
          Value place = s.real(type, at[2 + axis]);
          Value limit = s.index(x.sizes[2 + axis]);
          auto inImage = [&](Value offset) {
            return s.min(s.max(s.add(offset, start), s.index(0)), limit);
          };
          begin[axis] = inImage(s.toIndex(s.floor(s.mul(place, bin))));
          Value stop = inImage(s.toIndex(s.ceil(s.mul(s.add(place, 1), bin))));
          extent[axis] = s.max(s.sub(stop, begin[axis]), s.index(0));
        }
        Value image = s.toIndex(raiser.element(b, rois, {at[0], s.index(0)}));
        Value some =
            s.both(s.inside(image, x.sizes[0]), s.less(s.index(0), s.mul(extent[0], extent[1])));
        return s.when(
            some,
            [&](Scalars &s) {
              Value initial = s.number(type, -std::numeric_limits<double>::infinity());
              return s.loop(ValueRange{extent[0], extent[1]}, ValueRange(initial),
                            [&](Scalars &s, ValueRange loop, ValueRange carried) {
                              Value row = s.add(begin[0], loop[0]),
                                    column = s.add(begin[1], loop[1]);
                              Value element = raiser.element(s.b, x, {image, at[1], row, column});
                              return SmallVector<Value>{s.max(carried[0], element)};
                            })[0];
            },
            [&](Scalars &s) { return s.number(type, 0); });
      }));
  return success();
}

} // namespace

void raise::registerRegions(Registry &registry) {
  registry.add("RoiAlign", raiseRoiAlign, 3, 3, 10);
  registry.add("MaxRoiPool", raiseMaxRoiPool, 2, 2);
}
