// SPDX-License-Identifier: Apache-2.0
//
// Normalisations by mean and variance or by a norm. Where they go over whole rows they are
// otf.norm, whatever the axes were called; otherwise loops in generates.

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"
#include "passes/Raise/Windows.h"

#include "dialects/ONNX/ElementType.h"

#include <cmath>

using namespace mlir;
using namespace otf;
using namespace otf::raise;
namespace Element = otf::onnx::ElementType;

namespace {

bool areFloats(Raiser &raiser, Known &x) {
  return isa_and_nonnull<FloatType>(raiser.internalType(x.elementType));
}

/// A mean over `reduced` axes, which keep size 1, of x, or of (x − center)².
Known meanOver(Raiser &raiser, Location l, Known &x, ArrayRef<bool> reduced,
               Known *center = nullptr, bool square = false) {
  SmallVector<Size> sizes, extents;
  for (auto [size, drop] : llvm::zip(x.sizes, reduced)) {
    sizes.push_back(drop ? Size(1) : size);
    if (drop)
      extents.push_back(size);
  }
  Type type = raiser.internalType(x.elementType);
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value sum = s.sum(type, extents, [&](Scalars &s, ValueRange loop) {
      SmallVector<Value> from(at);
      size_t next = 0;
      for (auto [i, drop] : llvm::enumerate(reduced))
        if (drop)
          from[i] = loop[next++];
      Value element = raiser.element(s.b, x, from);
      if (center)
        element = s.sub(element, raiser.element(s.b, *center, from));
      return center || square ? s.mul(element, element) : element;
    });
    return s.div(sum, s.real(type, s.index(elementCount(extents))));
  });
}

Known varianceOver(Raiser &raiser, Location l, Known &x, Known &mean, ArrayRef<bool> reduced) {
  return meanOver(raiser, l, x, reduced, &mean);
}

SmallVector<bool> from(size_t axis, size_t rank) {
  SmallVector<bool> reduced(rank, false);
  std::fill(reduced.begin() + axis, reduced.end(), true);
  return reduced;
}

/// x normalised over all axes from `axis` on. `scale` and `bias` have the shape of those axes, or
/// are null.
Known normalizeRows(Raiser &raiser, Location l, NormKind kind, Known &x, size_t axis,
                    double epsilon, Known *scale = nullptr, Known *bias = nullptr) {
  Size row = elementCount(ArrayRef<Size>(x.sizes).drop_front(axis));
  Type type = raiser.internalType(x.elementType);
  if (type.isF32() && row.isConstant() && *row.constant() > 0 && *row.constant() <= kMostColumns) {
    SmallVector<Size> sizes(x.sizes.begin(), x.sizes.begin() + axis);
    sizes.push_back(row);
    Known rows = raiser.reshaped(x, sizes);
    auto vector = [&](Known *what) -> Value {
      if (!what)
        return {};
      Known flat = raiser.reshaped(*what, {row});
      return raiser.tensor(flat);
    };
    Value input = raiser.tensor(rows), gain = vector(scale), shift = vector(bias);
    rows.tensor = NormOp::create(raiser.builder, l, input.getType(),
                                 NormKindAttr::get(raiser.builder.getContext(), kind), input, gain,
                                 shift, raiser.builder.getF32FloatAttr(epsilon));
    return raiser.reshaped(rows, x.sizes);
  }
  SmallVector<bool> reduced = from(axis, x.rank());
  Known mean, spread;
  if (kind == NormKind::layer) {
    mean = meanOver(raiser, l, x, reduced);
    spread = varianceOver(raiser, l, x, mean, reduced);
  } else {
    spread = meanOver(raiser, l, x, reduced, nullptr, /*square=*/true);
  }
  return raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value value = raiser.element(b, x, at);
    if (kind == NormKind::layer)
      value = s.sub(value, raiser.element(b, mean, at));
    value = s.div(value, s.sqrt(s.add(raiser.element(b, spread, at), epsilon)));
    if (scale)
      value = s.mul(value, s.real(type, raiser.element(b, *scale, at)));
    return bias ? s.add(value, s.real(type, raiser.element(b, *bias, at))) : value;
  });
}

/// x · scale + bias, whose elements are chosen by an index.
Known affine(Raiser &raiser, Location l, Known x, Known &scale, Known *bias,
             function_ref<SmallVector<Value>(Scalars &, ValueRange)> which) {
  Type type = raiser.internalType(x.elementType);
  return raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    SmallVector<Value> index = which(s, at);
    Value value = s.mul(raiser.element(b, x, at), s.real(type, raiser.element(b, scale, index)));
    return bias ? s.add(value, s.real(type, raiser.element(b, *bias, index))) : value;
  });
}

//===------------------------------------------------------------------------------------------===//
// LayerNormalization and RMSNormalization
//===------------------------------------------------------------------------------------------===//

LogicalResult raiseRowNorm(Raiser &raiser, onnx::NodeOp node, NormKind kind) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1);
  Known *bias = raiser.hasInput(node, 2) ? &raiser.input(node, 2) : nullptr;
  int64_t rank = x.rank(), axis = node.intOr("axis", -1);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank)
    return raiser.fail(node,
                       "axis " + Twine(node.intOr("axis", -1)) + " is outside rank " + Twine(rank));
  if (!areFloats(raiser, x) || !areFloats(raiser, scale))
    return raiser.fail(node, "only floats are supported");
  Location l = node.getLoc();
  double epsilon = node.floatOr("epsilon", 1e-5f);
  ArrayRef<Size> row = ArrayRef<Size>(x.sizes).drop_front(axis);
  auto spans = [&](Known *what) {
    return !what || (ArrayRef<Size>(what->sizes) == row && raiser.isFloat(what->elementType));
  };
  for (Known *gain : {&scale, bias})
    if (gain && raiser.broadcast(x.sizes, gain->sizes) != std::optional(x.sizes))
      return raiser.fail(node, "its scale or bias does not broadcast to the input");
  if (spans(&scale) && spans(bias)) {
    raiser.set(node, normalizeRows(raiser, l, kind, x, axis, epsilon, &scale, bias));
  } else {
    Known plain = normalizeRows(raiser, l, kind, x, axis, epsilon);
    raiser.set(node, affine(raiser, l, plain, scale, bias,
                            [](Scalars &, ValueRange at) { return SmallVector<Value>(at); }));
  }
  bool wanted = false;
  for (Value output : node.getOutputs().drop_front())
    wanted |= !output.use_empty();
  if (!wanted)
    return success();
  // Mean and 1 / deviation, as f32.
  SmallVector<bool> reduced = from(axis, rank);
  Known mean = meanOver(raiser, l, x, reduced),
        variance = varianceOver(raiser, l, x, mean, reduced);
  Type f32 = raiser.builder.getF32Type();
  raiser.set(node,
             raiser.generated(Element::Float, mean.sizes,
                              [&](OpBuilder &b, ValueRange at) {
                                return Scalars(b, l).real(f32, raiser.element(b, mean, at));
                              }),
             1);
  if (node.getOutputs().size() > 2)
    raiser.set(node,
               raiser.generated(Element::Float, mean.sizes,
                                [&](OpBuilder &b, ValueRange at) {
                                  Scalars s(b, l);
                                  Value deviation =
                                      s.sqrt(s.add(raiser.element(b, variance, at), epsilon));
                                  return s.real(f32,
                                                s.div(s.number(deviation.getType(), 1), deviation));
                                }),
               2);
  return success();
}

//===------------------------------------------------------------------------------------------===//
// By channel: Batch-, Instance- and GroupNormalization
//===------------------------------------------------------------------------------------------===//

SmallVector<Value> channel(Scalars &, ValueRange at) { return {at[1]}; }

bool isPerChannel(Raiser &raiser, Known &what, const Size &channels) {
  return what.rank() == 1 && what.sizes[0] == channels && areFloats(raiser, what);
}

LogicalResult raiseBatchNormalization(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  if (!areFloats(raiser, x) || x.rank() < 1)
    return raiser.fail(node, "expects floats of rank 1 or more");
  Size channels = x.rank() == 1 ? Size(1) : x.sizes[1];
  if (node.intOr("spatial", 1) == 0)
    return raiser.fail(
        node, "spatial = 0, statistics for each position, is not supported (opset 9 removed it)");
  for (unsigned i = 1; i != 5; ++i)
    if (!isPerChannel(raiser, raiser.input(node, i), channels))
      return raiser.fail(node, "input " + Twine(i) + " must have an element for each of " +
                                   channels.str() + " channels");
  Location l = node.getLoc();
  double epsilon = node.floatOr("epsilon", 1e-5f), momentum = node.floatOr("momentum", 0.9f);
  bool otherOutputs =
      llvm::any_of(node.getOutputs().drop_front(), [](Value v) { return !v.use_empty(); });
  bool training = node.intOr("training_mode", 0) != 0;
  if (node.getVersion() < 14 ? otherOutputs : otherOutputs && !training)
    return raiser.fail(
        node, "its statistics are outputs of training only (export the model for inference)");
  Known &scale = raiser.input(node, 1), &bias = raiser.input(node, 2);
  Known mean = raiser.input(node, 3), variance = raiser.input(node, 4);
  Type type = raiser.internalType(x.elementType);
  if (training) {
    SmallVector<bool> reduced(x.rank(), true);
    if (x.rank() > 1)
      reduced[1] = false;
    Known batchMean = meanOver(raiser, l, x, reduced),
          batchVariance = varianceOver(raiser, l, x, batchMean, reduced);
    for (auto [output, old, now] :
         {std::tuple(1u, &mean, &batchMean), std::tuple(2u, &variance, &batchVariance)}) {
      *now = raiser.reshaped(*now, {channels});
      if (output < node.getOutputs().size())
        raiser.set(
            node,
            raiser.generated(old->elementType, {channels},
                             [&, old = old, now = now](OpBuilder &b, ValueRange at) {
                               Scalars s(b, l);
                               Value before = raiser.element(b, *old, at),
                                     here = s.real(before.getType(), raiser.element(b, *now, at));
                               return s.add(s.mul(before, momentum), s.mul(here, 1 - momentum));
                             }),
            output);
    }
    mean = batchMean;
    variance = batchVariance;
  }
  // One multiplication and addition for each element.
  Known gain;
  gain.elementType = x.elementType;
  gain.sizes = {channels};
  bool known = scale.reals && variance.reals && type.isF32();
  if (known) {
    gain.reals.emplace();
    for (auto [factor, square] : llvm::zip(*scale.reals, *variance.reals))
      gain.reals->push_back(float(factor / std::sqrt(square + epsilon)));
  }
  if (!known)
    gain = raiser.generated(x.elementType, {channels}, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value deviation = s.sqrt(s.add(s.real(type, raiser.element(b, variance, at)), epsilon));
    return s.div(s.real(type, raiser.element(b, scale, at)), deviation);
  });
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    SmallVector<Value> c{x.rank() == 1 ? s.index(0) : at[1]};
    Value centered = s.sub(raiser.element(b, x, at), s.real(type, raiser.element(b, mean, c)));
    return s.add(s.mul(centered, raiser.element(b, gain, c)),
                 s.real(type, raiser.element(b, bias, c)));
  }));
  return success();
}

LogicalResult raiseInstanceNormalization(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1), &bias = raiser.input(node, 2);
  if (x.rank() < 3 || !areFloats(raiser, x) || !isPerChannel(raiser, scale, x.sizes[1]) ||
      !isPerChannel(raiser, bias, x.sizes[1]))
    return raiser.fail(
        node, "expects floats [N, C, spatial...], and a scale and a bias for each channel");
  Known plain =
      normalizeRows(raiser, node.getLoc(), NormKind::layer, x, 2, node.floatOr("epsilon", 1e-5f));
  raiser.set(node, affine(raiser, node.getLoc(), plain, scale, &bias, channel));
  return success();
}

LogicalResult raiseGroupNormalization(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0), &scale = raiser.input(node, 1), &bias = raiser.input(node, 2);
  int64_t groups = node.intOr("num_groups", 0);
  std::optional<int64_t> channels = x.rank() < 2 ? std::nullopt : x.sizes[1].constant();
  if (!channels || !areFloats(raiser, x) || groups < 1 || *channels % groups)
    return raiser.fail(
        node,
        "expects floats [N, C, ...] whose constant number of channels divides into num_groups " +
            Twine(groups));
  // Scale and bias are by group in opset 18, and by channel since 21.
  bool byGroup = node.getVersion() < 21;
  Size expected = byGroup ? groups : *channels;
  if (!isPerChannel(raiser, scale, expected) || !isPerChannel(raiser, bias, expected))
    return raiser.fail(node, "its scale and bias must have " + expected.str() + " elements");
  SmallVector<Size> sizes{x.sizes[0], Size(groups), Size(*channels / groups)};
  sizes.append(x.sizes.begin() + 2, x.sizes.end());
  Known split = raiser.reshaped(x, sizes);
  Known plain = normalizeRows(raiser, node.getLoc(), NormKind::layer, split, 2,
                              node.floatOr("epsilon", 1e-5f));
  plain = raiser.reshaped(plain, x.sizes);
  raiser.set(
      node, affine(raiser, node.getLoc(), plain, scale, &bias, [&](Scalars &s, ValueRange at) {
        return SmallVector<Value>{byGroup ? s.div(at[1], double(*channels / groups)) : at[1]};
      }));
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Others
//===------------------------------------------------------------------------------------------===//

LogicalResult raiseMeanVariance(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  SmallVector<int64_t> axes{0, 2, 3};
  if (auto given = dyn_cast_or_null<DenseI64ArrayAttr>(node.attribute("axes")))
    axes.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  if (!areFloats(raiser, x))
    return raiser.fail(node, "only floats are supported");
  SmallVector<bool> reduced(x.rank(), false);
  for (int64_t axis : axes) {
    int64_t at = axis < 0 ? axis + int64_t(x.rank()) : axis;
    if (at < 0 || at >= int64_t(x.rank()))
      return raiser.fail(node, "axis " + Twine(axis) + " is outside rank " + Twine(x.rank()));
    reduced[at] = true;
  }
  Location l = node.getLoc();
  Known mean = meanOver(raiser, l, x, reduced),
        variance = varianceOver(raiser, l, x, mean, reduced);
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value centered = s.sub(raiser.element(b, x, at), raiser.element(b, mean, at));
    return s.div(centered, s.add(s.sqrt(raiser.element(b, variance, at)),
                                 1e-9)); // the standard's own epsilon
  }));
  return success();
}

LogicalResult raiseLpNormalization(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  int64_t rank = x.rank(), axis = node.intOr("axis", -1), p = node.intOr("p", 2);
  axis = axis < 0 ? axis + rank : axis;
  if (axis < 0 || axis >= rank || !areFloats(raiser, x) || (p != 1 && p != 2))
    return raiser.fail(node,
                       "expects floats, an axis inside rank " + Twine(rank) + " and p of 1 or 2");
  Location l = node.getLoc();
  Type type = raiser.internalType(x.elementType);
  SmallVector<Size> sizes(x.sizes);
  sizes[axis] = 1;
  Known norm = raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value sum = s.sum(type, {x.sizes[axis]}, [&](Scalars &s, ValueRange loop) {
      SmallVector<Value> where(at);
      where[axis] = loop[0];
      Value element = raiser.element(s.b, x, where);
      return p == 1 ? s.abs(element) : s.mul(element, element);
    });
    return p == 1 ? sum : s.sqrt(sum);
  });
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, l);
    Value n = raiser.element(b, norm, at), zero = s.number(type, 0);
    return s.select(s.equal(n, zero), zero, s.div(raiser.element(b, x, at), n));
  }));
  return success();
}

/// x / (bias + alpha / size · Σ x²)^beta over neighbouring channels.
LogicalResult raiseLrn(Raiser &raiser, onnx::NodeOp node) {
  Known &x = raiser.input(node, 0);
  int64_t size = node.intOr("size", 0);
  if (x.rank() < 2 || !areFloats(raiser, x) || size < 1 || size > (1 << 30))
    return raiser.fail(node, "expects floats [N, C, ...] and a positive size");
  double alpha = node.floatOr("alpha", 1e-4f), beta = node.floatOr("beta", 0.75f),
         bias = node.floatOr("bias", 1);
  Type type = raiser.internalType(x.elementType);
  raiser.set(node, raiser.generated(x.elementType, x.sizes, [&](OpBuilder &b, ValueRange at) {
    Scalars s(b, node.getLoc());
    Value sum =
        s.fold({Size(size)}, s.number(type, 0), [&](Scalars &s, ValueRange k, Value carried) {
          Value c = s.add(s.add(at[1], k[0]), double(-((size - 1) / 2)));
          return s.when(
              s.inside(c, x.sizes[1]),
              [&](Scalars &s) {
                SmallVector<Value> where(at);
                where[1] = c;
                Value element = raiser.element(s.b, x, where);
                return s.add(carried, s.mul(element, element));
              },
              [&](Scalars &) { return carried; });
        });
    Value base = s.add(s.mul(sum, alpha / double(size)), bias);
    return s.div(raiser.element(b, x, at), s.pow(base, s.number(type, beta)));
  }));
  return success();
}

} // namespace

void raise::registerNormalizations(Registry &registry) {
  auto rows = [&](StringRef name, NormKind kind, unsigned most, int64_t since) {
    registry.add(
        name,
        [kind](Raiser &raiser, onnx::NodeOp node) { return raiseRowNorm(raiser, node, kind); }, 2,
        most, since);
  };
  rows("LayerNormalization", NormKind::layer, 3, 17);
  rows("RMSNormalization", NormKind::rms, 2, 23);
  registry.add("BatchNormalization", raiseBatchNormalization, 5, 5);
  registry.add("InstanceNormalization", raiseInstanceNormalization, 3, 3);
  registry.add("GroupNormalization", raiseGroupNormalization, 3, 3, 18);
  registry.add("MeanVarianceNormalization", raiseMeanVariance, 1, 1, 9);
  registry.add("LpNormalization", raiseLpNormalization, 1, 1);
  registry.add("LRN", raiseLrn, 1, 1);
}
