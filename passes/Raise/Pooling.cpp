// SPDX-License-Identifier: Apache-2.0
//
// Pools: a fold over the taps of a window, or over all positions.

#include "passes/Raise/Windows.h"

#include "dialects/ONNX/ElementType.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

/// The window of a pool, whose taps are an attribute.
FailureOr<Window> poolWindow(Raiser &raiser, onnx::NodeOp node, Known &x) {
  if (x.rank() < 3)
    return raiser.fail(node, "expects an input of rank 3 or more, got " + Twine(x.rank()));
  auto kernel = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("kernel_shape"));
  if (!kernel)
    return raiser.fail(node, "kernel_shape is missing");
  return windowOf(raiser, node, ArrayRef<Size>(x.sizes).drop_front(2), kernel.asArrayRef(),
                  /*mayCeil=*/true);
}

SmallVector<Size> pooledSizes(Known &x, ArrayRef<WindowAxis> window) {
  SmallVector<Size> sizes{x.sizes[0], x.sizes[1]};
  llvm::append_range(sizes, outputSizes(window));
  return sizes;
}

SmallVector<Value> place(ValueRange at, ValueRange spatial) {
  SmallVector<Value> all{at[0], at[1]};
  llvm::append_range(all, spatial);
  return all;
}

/// What every element is at least.
Value lowest(Scalars &s, Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return s.number(type, -std::numeric_limits<double>::infinity());
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt least = isUnsigned ? APInt::getZero(bits) : APInt::getSignedMinValue(bits);
  return arith::ConstantOp::create(s.b, s.l, s.b.getIntegerAttr(type, least));
}

LogicalResult raiseMaxPool(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Window> window = poolWindow(raiser, node, x);
  if (failed(window))
    return failure();
  Type type = raiser.internalType(x.elementType);
  bool isUnsigned = raiser.isUnsigned(x.elementType);
  SmallVector<Size> sizes = pooledSizes(x, *window), taps = kernelSizes(*window);
  raiser.set(node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, node.getLoc());
    return s.fold(taps, lowest(s, type, isUnsigned), [&](Scalars &s, ValueRange k, Value carried) {
      Tap tap = tapOf(s, *window, at.drop_front(2), k);
      return s.when(
          tap.inside,
          [&](Scalars &s) -> Value {
            Value element = raiser.element(s.b, x, place(at, tap.at));
            return isUnsigned ? arith::MaxUIOp::create(s.b, s.l, carried, element).getResult()
                              : s.max(carried, element);
          },
          [&](Scalars &) { return carried; });
    });
  }));
  if (node.getOutputs().size() < 2 || node.getOutputs()[1].use_empty())
    return success();
  // Positions in the whole input; the first of equal ones. With storage_order 1 the first spatial
  // axis is innermost.
  bool columns = node.intOr("storage_order", 0) != 0;
  ArrayRef<Size> spatial = ArrayRef<Size>(x.sizes).drop_front(2);
  Type wide = raiser.builder.getI64Type();
  raiser.set(
      node,
      raiser.generated(
          Element::Int64, sizes,
          [&](OpBuilder &b, ValueRange at) {
            Scalars s(b, node.getLoc());
            SmallVector<Value> initial{lowest(s, type, isUnsigned), s.index(-1)};
            auto found = s.loop(taps, initial, [&](Scalars &s, ValueRange k, ValueRange carried) {
              Tap tap = tapOf(s, *window, at.drop_front(2), k);
              Value element = s.when(
                  tap.inside, [&](Scalars &s) { return raiser.element(s.b, x, place(at, tap.at)); },
                  [&](Scalars &) { return carried[0]; });
              Value more = isUnsigned ? arith::CmpIOp::create(s.b, s.l, arith::CmpIPredicate::ugt,
                                                              element, carried[0])
                                            .getResult()
                                      : s.less(carried[0], element);
              Value better = s.both(tap.inside, s.either(more, s.equal(carried[1], s.index(-1))));
              Value linear;
              for (size_t i = 0; i != spatial.size(); ++i) {
                size_t axis = columns ? spatial.size() - 1 - i : i;
                linear = linear ? s.add(s.mul(linear, s.index(spatial[axis])), tap.at[axis])
                                : tap.at[axis];
              }
              return SmallVector<Value>{s.select(better, element, carried[0]),
                                        s.select(better, linear, carried[1])};
            });
            Value plane = s.add(s.mul(at[0], s.index(x.sizes[1])), at[1]);
            return s.asInteger(wide, s.add(s.mul(plane, s.index(elementCount(spatial))), found[1]));
          }),
      1);
  return success();
}

LogicalResult raiseAveragePool(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Window> window = poolWindow(raiser, node, x);
  if (failed(window))
    return failure();
  Type type = raiser.internalType(x.elementType);
  if (!isa<FloatType>(type))
    return raiser.fail(node, "only floats are supported");
  bool countPadding = node.intOr("count_include_pad", 0) != 0;
  raiser.set(
      node,
      raiser.generated(x.elementType, pooledSizes(x, *window), [&](OpBuilder &b, ValueRange at) {
        Scalars s(b, node.getLoc());
        ValueRange o = at.drop_front(2);
        Value sum = s.fold(kernelSizes(*window), s.number(type, 0),
                           [&](Scalars &s, ValueRange k, Value carried) {
                             Tap tap = tapOf(s, *window, o, k);
                             return s.when(
                                 tap.inside,
                                 [&](Scalars &s) {
                                   return s.add(carried, raiser.element(s.b, x, place(at, tap.at)));
                                 },
                                 [&](Scalars &) { return carried; });
                           });
        // How many taps count: a product over the axes. Those beyond the padding, which ceil_mode
        // brings, never do.
        Value count;
        double fixed = 1;
        for (auto [i, axis] : llvm::enumerate(*window)) {
          WindowAxis counted = axis;
          if (countPadding) {
            counted.input = axis.input + axis.before + axis.after;
            counted.before = 0;
          }
          if (!counted.isPadded()) {
            fixed *= double(axis.kernel);
            continue;
          }
          Value taps =
              s.fold({Size(axis.kernel)}, s.index(0), [&](Scalars &s, ValueRange k, Value carried) {
                Value position = counted.position(s, o[i], k[0]);
                return s.add(carried,
                             s.select(s.inside(position, counted.input), s.index(1), s.index(0)));
              });
          count = count ? s.mul(count, taps) : taps;
        }
        if (!count)
          return s.div(sum, fixed);
        return s.div(sum, s.mul(s.real(type, s.max(count, s.index(1))), fixed));
      }));
  return success();
}

/// |x|^p, and the p-th root.
Value power(Scalars &s, Value x, double p) {
  x = s.abs(x);
  return p == 1 ? x : p == 2 ? s.mul(x, x) : s.pow(x, s.number(x.getType(), p));
}

Value root(Scalars &s, Value x, double p) {
  return p == 1 ? x : p == 2 ? s.sqrt(x) : s.pow(x, s.number(x.getType(), 1 / p));
}

FailureOr<double> exponentOf(Raiser &raiser, onnx::NodeOp node, Known &x) {
  if (!isa<FloatType>(raiser.internalType(x.elementType)))
    return raiser.fail(node, "only floats are supported");
  int64_t p = node.intOr("p", 2);
  if (p < 1)
    return raiser.fail(node, "p must be positive, got " + Twine(p));
  return double(p);
}

LogicalResult raiseLpPool(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  FailureOr<Window> window = poolWindow(raiser, node, x);
  FailureOr<double> p = exponentOf(raiser, node, x);
  if (failed(window) || failed(p))
    return failure();
  Type type = raiser.internalType(x.elementType);
  raiser.set(
      node,
      raiser.generated(x.elementType, pooledSizes(x, *window), [&](OpBuilder &b, ValueRange at) {
        Scalars s(b, node.getLoc());
        Value sum = s.fold(
            kernelSizes(*window), s.number(type, 0), [&](Scalars &s, ValueRange k, Value carried) {
              Tap tap = tapOf(s, *window, at.drop_front(2), k);
              return s.when(
                  tap.inside,
                  [&](Scalars &s) {
                    return s.add(carried, power(s, raiser.element(s.b, x, place(at, tap.at)), *p));
                  },
                  [&](Scalars &) { return carried; });
            });
        return root(s, sum, *p);
      }));
  return success();
}

enum class Global { average, largest, norm };

LogicalResult raiseGlobal(Raiser &raiser, onnx::NodeOp node, Global kind) {
  Known &x = raiser.input(node, 0);
  Type type = raiser.internalType(x.elementType);
  if (x.rank() < 2 || !isa<FloatType>(type))
    return raiser.fail(node, "expects floats of rank 2 or more");
  FailureOr<double> p = 2.0;
  if (kind == Global::norm && failed(p = exponentOf(raiser, node, x)))
    return failure();
  ArrayRef<Size> spatial = ArrayRef<Size>(x.sizes).drop_front(2);
  SmallVector<Size> sizes(x.rank(), Size(1));
  sizes[0] = x.sizes[0];
  sizes[1] = x.sizes[1];
  raiser.set(node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, node.getLoc());
    Value initial = kind == Global::largest ? lowest(s, type, false) : s.number(type, 0);
    Value result = s.fold(spatial, initial, [&](Scalars &s, ValueRange k, Value carried) {
      Value element = raiser.element(s.b, x, place(at, k));
      return kind == Global::largest ? s.max(carried, element)
             : kind == Global::norm  ? s.add(carried, power(s, element, *p))
                                     : s.add(carried, element);
    });
    if (kind == Global::average)
      return s.div(result, s.real(type, s.index(elementCount(spatial))));
    return kind == Global::norm ? root(s, result, *p) : result;
  }));
  return success();
}

} // namespace

void raise::registerPooling(Registry &registry) {
  registry.add("MaxPool", raiseMaxPool, 1, 1);
  registry.add("AveragePool", raiseAveragePool, 1, 1);
  registry.add("LpPool", raiseLpPool, 1, 1);
  auto global = [&](StringRef name, Global kind) {
    registry.add(
        name, [kind](Raiser &raiser, onnx::NodeOp node) { return raiseGlobal(raiser, node, kind); },
        1, 1);
  };
  global("GlobalAveragePool", Global::average);
  global("GlobalMaxPool", Global::largest);
  global("GlobalLpPool", Global::norm);
}
