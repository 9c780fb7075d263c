// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as loops in the body of a generate: each output element is a sum over channels and
// taps. A transposed convolution gathers too: from the inputs whose windows reach the output
// position.

#include "passes/Raise/ConvolutionForms.h"
#include "passes/Raise/Program.h"
#include "passes/Raise/Quantized.h"
#include "passes/Raise/Sampling.h"
#include "passes/Raise/Windows.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <numeric>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// A weight is [out, in / group, taps...], or [in, out / group, taps...] if `transposed`.
FailureOr<Channels> channelsOf(Raiser &raiser, onnx::NodeOp node, Known &x, Known &w,
                               bool transposed) {
  if (x.rank() < 3 || w.rank() != x.rank())
    return raiser.fail(node, "expects an input of rank 3 or more and a weight of the same, got " +
                                 Twine(x.rank()) + " and " + Twine(w.rank()));
  if (!isa<FloatType>(raiser.internalType(x.elementType)) || x.elementType != w.elementType)
    return raiser.fail(node, "expects an input and a weight of one float type");
  SmallVector<int64_t> dims;
  for (const Size &size : w.sizes) {
    if (!size.isConstant() || *size.constant() < 1)
      return raiser.fail(node,
                         "the weight's sizes must be constant and positive, got " + size.str());
    dims.push_back(*size.constant());
  }
  Channels c;
  c.group = node.intOr("group", 1);
  std::optional<int64_t> in = x.sizes[1].constant();
  if (!in && c.group >= 1) {
    // Exporters leave channels open that the weight alone allows.
    in = transposed ? dims[0] : dims[1] * c.group;
    SmallVector<Size> sizes(x.sizes);
    sizes[1] = *in;
    if (failed(
            mustMatch(raiser, node, x.sizes, sizes, "its input's channels do not fit its weight")))
      return failure();
    x = raiser.reshapedChecked(x, sizes);
  }
  c.in = in.value_or(0);
  if (c.group < 1 || c.in % c.group || dims[0] % c.group ||
      c.in != (transposed ? dims[0] : dims[1] * c.group))
    return raiser.fail(node, Twine(c.in) + " channels in " + Twine(c.group) +
                                 " groups do not agree with a weight of " + Twine(dims[0]) + " x " +
                                 Twine(dims[1]));
  c.out = transposed ? dims[1] * c.group : dims[0];
  c.inGroup = c.in / c.group;
  c.outGroup = c.out / c.group;
  c.kernel.assign(dims.begin() + 2, dims.end());
  auto given = listAttribute(raiser, node, "kernel_shape", c.kernel.size(), 1, 0);
  if (failed(given))
    return failure();
  if (node.attribute("kernel_shape") && *given != c.kernel)
    return raiser.fail(node, "kernel_shape differs from the weight's shape");
  return c;
}

LogicalResult checkBias(Raiser &raiser, onnx::NodeOp node, unsigned position, const Channels &c) {
  if (!raiser.hasInput(node, position))
    return success();
  Known &bias = raiser.input(node, position);
  if (bias.rank() != 1 || bias.sizes[0] != Size(c.out))
    return raiser.fail(node, "its bias must have " + Twine(c.out) + " elements");
  return success();
}

Value biasOrZero(Raiser &raiser, onnx::NodeOp node, unsigned position, Scalars &s, Type type,
                 Value channel) {
  if (!raiser.hasInput(node, position))
    return s.number(type, 0);
  return raiser.element(s.b, raiser.input(node, position), {channel});
}

SmallVector<Value> joined(std::initializer_list<Value> first, ValueRange rest) {
  SmallVector<Value> all(first);
  all.append(rest.begin(), rest.end());
  return all;
}

/// The window as an attribute of the linear that reads x in place; null where that has no form or is slow: what is copied at once must be a
/// vector, and a row of taps fit many times into a kernel's scratch memory.
WindowAttr inPlace(Raiser &raiser, ArrayRef<WindowAxis> window, const Channels &c) {
  constexpr int64_t kShortestRun = 8, kMostRowColumns = 8192;
  if (window.size() > 3 || c.in * c.taps() > kMostRowColumns)
    return {};
  // Taps along the last axis are one run where they are neighbours.
  int64_t run = window.back().dilation == 1 ? c.in * window.back().kernel : c.in;
  if (run < kShortestRun)
    return {};
  SmallVector<int64_t> kernel, stride, dilation, before;
  bool moves = false;
  for (const WindowAxis &axis : window) {
    std::optional<int64_t> outside = axis.before.constant();
    if (!outside || *outside < 0)
      return {};
    kernel.push_back(axis.kernel);
    stride.push_back(axis.stride);
    dilation.push_back(axis.dilation);
    before.push_back(*outside);
    moves |= axis.kernel != 1 || axis.stride != 1 || axis.output != axis.input || *outside != 0;
  }
  return moves ? WindowAttr::get(raiser.builder.getContext(), kernel, stride, dilation, before) : WindowAttr();
}

/// A convolution by a constant weight is a linear of the windows: its matrix is the weight, one row
/// for each output channel, its columns by tap and then by channel, so that a window is read a
/// run of channels at a time, in place where it has that form (`inPlace`) and as a tensor of all windows elsewhere. So it has all that a linear has: encodings, epilogues, kernels on
/// every device. Channels come last in its result; otf-sink-transposes lets what follows keep that
/// order.
Known convolveByMatrix(Raiser &raiser, onnx::NodeOp node, Known &x, Known &matrix,
                       ArrayRef<WindowAxis> window, const Channels &c) {
  Location l = node.getLoc();
  size_t rank = window.size();
  SmallVector<Size> outer{x.sizes[0]}, sizes;
  llvm::append_range(outer, outputSizes(window));
  sizes = outer;
  bool taps = llvm::any_of(c.kernel, [](int64_t k) { return k != 1; });
  Activations activations = activationsOf(raiser, x, matrix);
  WindowAttr reads = activations.grid ? WindowAttr() : inPlace(raiser, window, c);
  if (reads) { // all that is left is x with channels last
    sizes.resize(1);
    llvm::append_range(sizes, ArrayRef<Size>(x.sizes).drop_front(2));
  } else if (taps) {
    llvm::append_range(sizes, kernelSizes(window));
  }
  sizes.push_back(c.in);
  Known windows = raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s(b, l);
    if (reads)
      return raiser.element(b, *activations.value, joined({at[0], at.back()}, at.slice(1, rank)));
    SmallVector<Value> k(rank, taps ? Value() : s.index(0));
    if (taps)
      llvm::copy(at.slice(rank + 1, rank), k.begin());
    Tap tap = tapOf(s, window, at.slice(1, rank), k);
    return s.when(
        tap.inside,
        [&](Scalars &s) {
          return raiser.element(s.b, *activations.value, joined({at[0], at.back()}, tap.at));
        },
        [&](Scalars &s) { return s.number(s.b.getF32Type(), 0); }); // which every grid has
  });
  if (!reads) {
    SmallVector<Size> rows(outer);
    rows.push_back(matrix.sizes[1]);
    windows = raiser.reshaped(windows, rows);
  }
  Value bias = raiser.hasInput(node, 2) ? raiser.tensor(raiser.input(node, 2)) : Value();
  Value weight = raiser.matrix(matrix, /*transposed=*/false, c.taps());
  Known product;
  product.elementType = x.elementType;
  product.sizes = outer;
  product.sizes.push_back(c.out);
  product.tensor =
      LinearOp::create(raiser.builder, l, tensorType(raiser.builder.getF32Type(), product.sizes),
                       roundedTo(raiser, raiser.tensor(windows), activations.grid), weight, bias, reads);
  SmallVector<Size> result{x.sizes[0], Size(c.out)};
  llvm::append_range(result, outputSizes(window));
  return raiser.generated(x.elementType, result, [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> from{at[0]};
    llvm::append_range(from, at.drop_front(2));
    from.push_back(at[1]);
    return raiser.element(b, product, from);
  });
}

LogicalResult raiseConv(Raiser &raiser, onnx::NodeOp node) {
  Known x = raiser.input(node, 0); // a copy, whose channels channelsOf may settle
  Known &w = raiser.input(node, 1);
  FailureOr<Channels> c = channelsOf(raiser, node, x, w, /*transposed=*/false);
  if (failed(c) || failed(checkBias(raiser, node, 2, *c)))
    return failure();
  FailureOr<Window> window =
      windowOf(raiser, node, ArrayRef<Size>(x.sizes).drop_front(2), c->kernel, /*mayCeil=*/false);
  if (failed(window))
    return failure();
  if (c->group == 1 && (w.constant || w.given) && raiser.internalType(x.elementType).isF32()) {
    SmallVector<Size> sizes{Size(c->out), elementCount(ArrayRef<Size>(w.sizes).drop_front())};
    Known matrix;
    if (w.given) { // codes are given as the matrix that they are
      matrix = w;
      matrix.sizes = sizes;
    } else {
      matrix = raiser.reshaped(w, sizes);
    }
    if (raiser.isMatrix(matrix)) {
      raiser.set(node, convolveByMatrix(raiser, node, x, matrix, *window, *c));
      return success();
    }
  }
  if (std::optional<Known> result = convolveDepthwise(raiser, node, x, w, *window, *c)) {
    raiser.set(node, std::move(*result));
    return success();
  }
  SmallVector<Size> sizes{x.sizes[0], Size(c->out)}, extents{Size(c->inGroup)};
  llvm::append_range(sizes, outputSizes(*window));
  llvm::append_range(extents, kernelSizes(*window));
  Type type = raiser.internalType(x.elementType);
  raiser.set(
      node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        Value first = c->group == 1 ? s.index(0)
                                    : s.mul(s.div(at[1], double(c->outGroup)), double(c->inGroup));
        Value initial = biasOrZero(raiser, node, 2, s, type, at[1]);
        return s.fold(extents, initial, [&](Scalars &s, ValueRange loop, Value carried) {
          ValueRange taps = loop.drop_front();
          Tap tap = tapOf(s, *window, at.drop_front(2), taps);
          return s.when(
              tap.inside,
              [&](Scalars &s) {
                Value element =
                    raiser.element(s.b, x, joined({at[0], s.add(first, loop[0])}, tap.at));
                return s.add(carried, s.mul(element, raiser.element(
                                                         s.b, w, joined({at[1], loop[0]}, taps))));
              },
              [&](Scalars &) { return carried; });
        });
      }));
  return success();
}

/// Output position o gets x[i] · w[k] where i · stride + k · dilation − before = o.
LogicalResult raiseConvTranspose(Raiser &raiser, onnx::NodeOp node) {
  Known x = raiser.input(node, 0); // a copy, whose channels channelsOf may settle
  Known &w = raiser.input(node, 1);
  FailureOr<Channels> c = channelsOf(raiser, node, x, w, /*transposed=*/true);
  if (failed(c) || failed(checkBias(raiser, node, 2, *c)))
    return failure();
  ArrayRef<Size> spatial = ArrayRef<Size>(x.sizes).drop_front(2);
  size_t rank = spatial.size();
  auto strides = listAttribute(raiser, node, "strides", rank, 1, 1);
  auto dilations = listAttribute(raiser, node, "dilations", rank, 1, 1);
  auto pads = listAttribute(raiser, node, "pads", 2 * rank, 0, 0);
  auto extra = listAttribute(raiser, node, "output_padding", rank, 0, 0);
  bool given = bool(node.attribute("output_shape"));
  // Some exporters write the batch and the channels too.
  auto shapeAttribute = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("output_shape"));
  SmallVector<int64_t> shape;
  if (shapeAttribute)
    shape.assign(shapeAttribute.asArrayRef().begin(), shapeAttribute.asArrayRef().end());
  if (shape.size() == rank + 2)
    shape.erase(shape.begin(), shape.begin() + 2);
  if (failed(strides) || failed(dilations) || failed(pads) || failed(extra))
    return failure();
  if (given && (shape.size() != rank || llvm::any_of(shape, [](int64_t n) { return n < 1; })))
    return raiser.fail(node,
                       "output_shape must be a list of " + Twine(rank) + " positive integers");
  StringRef autoPad = node.stringOr("auto_pad", "NOTSET");
  bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!same && autoPad != "NOTSET" && autoPad != "VALID")
    return raiser.fail(node, "auto_pad is " + autoPad +
                                 ", and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  Window window;
  for (size_t i = 0; i != rank; ++i) {
    WindowAxis axis;
    axis.input = spatial[i];
    axis.kernel = c->kernel[i];
    axis.stride = (*strides)[i];
    axis.dilation = (*dilations)[i];
    Size full = (spatial[i] - Size(1)) * Size(axis.stride) + Size((*extra)[i] + axis.extent());
    if (given || same) {
      axis.output = given ? Size(shape[i]) : spatial[i] * Size(axis.stride);
      std::optional<int64_t> needed = (full - axis.output).constant();
      if (!needed)
        return raiser.fail(node, "its padding depends on the input's size " + spatial[i].str() +
                                     " (export the model with a fixed size there)");
      int64_t total = std::max<int64_t>(0, *needed);
      axis.before = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      axis.before = autoPad == "VALID" ? 0 : (*pads)[i];
      axis.output = full - axis.before - Size(autoPad == "VALID" ? 0 : (*pads)[rank + i]);
    }
    window.push_back(axis);
  }
  if (std::optional<Known> result = spreadByMatrix(raiser, node, x, w, window, *c)) {
    raiser.set(node, std::move(*result));
    return success();
  }
  SmallVector<Size> sizes{x.sizes[0], Size(c->out)}, extents{Size(c->inGroup)};
  llvm::append_range(sizes, outputSizes(window));
  llvm::append_range(extents, kernelSizes(window));
  Type type = raiser.internalType(x.elementType);
  raiser.set(
      node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        Value group = c->group == 1 ? s.index(0) : s.div(at[1], double(c->outGroup));
        Value column = c->group == 1 ? at[1] : s.sub(at[1], s.mul(group, double(c->outGroup)));
        Value first = s.mul(group, double(c->inGroup));
        Value initial = biasOrZero(raiser, node, 2, s, type, at[1]);
        return s.fold(extents, initial, [&](Scalars &s, ValueRange loop, Value carried) {
          ValueRange taps = loop.drop_front();
          Value reached;
          SmallVector<Value> from;
          for (auto [i, axis] : llvm::enumerate(window)) {
            Value distance = s.sub(s.add(at[2 + i], s.index(axis.before)),
                                   s.mul(taps[i], double(axis.dilation)));
            Value position = distance;
            reached = s.both(reached, s.lessEqual(s.index(0), distance));
            if (axis.stride != 1) {
              // Unsigned: what a negative distance gives is not looked at.
              position = s.div(distance, double(axis.stride));
              reached = s.both(reached, s.equal(s.mul(position, double(axis.stride)), distance));
            }
            reached = s.both(reached, s.less(position, s.index(axis.input)));
            from.push_back(position);
          }
          Value channel = s.add(first, loop[0]);
          return s.when(
              reached,
              [&](Scalars &s) {
                Value element = raiser.element(s.b, x, joined({at[0], channel}, from));
                return s.add(carried, s.mul(element, raiser.element(
                                                         s.b, w, joined({channel, column}, taps))));
              },
              [&](Scalars &) { return carried; });
        });
      }));
  return success();
}

LogicalResult raiseDeformConv(Raiser &raiser, onnx::NodeOp node) {
  Known x = raiser.input(node, 0); // a copy, whose channels channelsOf may settle
  Known &w = raiser.input(node, 1), &offset = raiser.input(node, 2);
  FailureOr<Channels> c = channelsOf(raiser, node, x, w, /*transposed=*/false);
  if (failed(c) || failed(checkBias(raiser, node, 3, *c)))
    return failure();
  FailureOr<Window> window =
      windowOf(raiser, node, ArrayRef<Size>(x.sizes).drop_front(2), c->kernel, /*mayCeil=*/false);
  if (failed(window))
    return failure();
  size_t rank = window->size();
  int64_t groups = node.intOr("offset_group", 1), taps = 1;
  for (int64_t k : c->kernel)
    taps *= k;
  if (groups < 1 || c->in % groups)
    return raiser.fail(node, Twine(c->in) + " channels do not divide into " + Twine(groups) +
                                 " offset groups");
  auto fits = [&](Known &what, int64_t channels) {
    SmallVector<Size> sizes{x.sizes[0], Size(channels)};
    llvm::append_range(sizes, outputSizes(*window));
    return what.sizes == sizes;
  };
  if (!fits(offset, groups * taps * int64_t(rank)) ||
      (raiser.hasInput(node, 4) && !fits(raiser.input(node, 4), groups * taps)))
    return raiser.fail(node, "its offset or mask does not have the output's spatial shape and " +
                                 Twine(groups) + " groups of " + Twine(taps) + " taps");
  SmallVector<Size> sizes{x.sizes[0], Size(c->out)}, extents{Size(c->inGroup)};
  llvm::append_range(sizes, outputSizes(*window));
  llvm::append_range(extents, kernelSizes(*window));
  Type type = raiser.internalType(x.elementType);
  raiser.set(
      node, raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        Value first = c->group == 1 ? s.index(0)
                                    : s.mul(s.div(at[1], double(c->outGroup)), double(c->inGroup));
        Value initial = biasOrZero(raiser, node, 3, s, type, at[1]);
        return s.fold(extents, initial, [&](Scalars &s, ValueRange loop, Value carried) {
          ValueRange k = loop.drop_front();
          Value channel = s.add(first, loop[0]);
          Value number = groups == 1 ? s.index(0) : s.div(channel, double(c->in / groups));
          for (auto [i, axis] : llvm::enumerate(*window))
            number = s.add(s.mul(number, double(axis.kernel)), k[i]);
          SmallVector<SampledAxis> axes;
          for (auto [i, axis] : llvm::enumerate(*window)) {
            Value which = s.add(s.mul(number, double(rank)), double(i));
            Value moved = raiser.element(s.b, offset, joined({at[0], which}, at.drop_front(2)));
            axes.push_back(
                {axis.input, s.add(s.real(type, axis.position(s, at[2 + i], k[i])), moved)});
          }
          Value value = sample(s, type, axes, Interpolation::linear, Outside::zeros,
                               [&](Scalars &s, ValueRange place) {
                                 return raiser.element(s.b, x, joined({at[0], channel}, place));
                               });
          if (raiser.hasInput(node, 4))
            value = s.mul(value, raiser.element(s.b, raiser.input(node, 4),
                                                joined({at[0], number}, at.drop_front(2))));
          return s.add(carried, s.mul(value, raiser.element(s.b, w, joined({at[1], loop[0]}, k))));
        });
      }));
  return success();
}

/// A depthwise convolution along the last axis whose window ends at each position. What lies before
/// the input is the past state: the last kernel − 1 positions of the step before.
LogicalResult raiseCausalConv(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &w = raiser.input(node, 1);
  if (x.rank() != 3 || w.rank() != 3 || w.sizes[0] != x.sizes[1] || w.sizes[1] != Size(1) ||
      !w.sizes[2].isConstant() || w.sizes[2] == Size(0) ||
      !isa<FloatType>(raiser.internalType(x.elementType)))
    return raiser.fail(
        node,
        "expects an input [batch, channels, length] of floats and a weight [channels, 1, taps]");
  StringRef activation = node.stringOr("activation", "none");
  bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none")
    return raiser.fail(node, "activation is " + activation + ", and must be none, silu or swish");
  Size kept = w.sizes[2] - Size(1);
  bool hasPast = raiser.hasInput(node, 3);
  if (hasPast && raiser.input(node, 3).sizes != SmallVector<Size>{x.sizes[0], x.sizes[1], kept})
    return raiser.fail(node,
                       "its past state must hold " + kept.str() + " positions for each channel");
  if (raiser.hasInput(node, 2) && raiser.input(node, 2).sizes != SmallVector<Size>{x.sizes[1]})
    return raiser.fail(node, "its bias must have an element for each channel");
  Type type = raiser.internalType(x.elementType);
  // Position p of the past state followed by the input.
  auto padded = [&](Scalars &s, Value batch, Value channel, Value p) {
    Value from = s.sub(p, s.index(kept));
    return s.when(
        kept == Size(0) ? Value() : s.lessEqual(s.index(0), from),
        [&](Scalars &s) { return raiser.element(s.b, x, {batch, channel, from}); },
        [&](Scalars &s) {
          return hasPast ? raiser.element(s.b, raiser.input(node, 3), {batch, channel, p})
                         : s.number(type, 0);
        });
  };
  raiser.set(
      node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) -> Value {
        Scalars s(b, node.getLoc());
        Value initial = biasOrZero(raiser, node, 2, s, type, at[1]);
        Value sum = s.fold({w.sizes[2]}, initial, [&](Scalars &s, ValueRange k, Value carried) {
          Value element = padded(s, at[0], at[1], s.add(at[2], k[0]));
          return s.add(carried, s.mul(element, raiser.element(s.b, w, {at[1], s.index(0), k[0]})));
        });
        if (!silu)
          return sum;
        Value negated = arith::NegFOp::create(s.b, s.l, sum);
        return s.div(sum, s.add(s.exp(negated), 1));
      }));
  if (node.getOutputs().size() < 2)
    return success();
  SmallVector<Size> sizes{x.sizes[0], x.sizes[1], kept};
  raiser.set(node,
             raiser.generated(x.elementType, sizes,
                              [&](OpBuilder &b, ValueRange at) {
                                Scalars s(b, node.getLoc());
                                return padded(s, at[0], at[1], s.add(at[2], s.index(x.sizes[2])));
                              }),
             1);
  return success();
}

} // namespace

void raise::registerConvolutions(Registry &registry) {
  registry.add("Conv", raiseConv, 2, 3);
  registry.add("ConvTranspose", raiseConvTranspose, 2, 3);
  registry.add("DeformConv", raiseDeformConv, 3, 5, 19);
  registry.add("CausalConvWithState", raiseCausalConv, 2, 4, 27);
}
