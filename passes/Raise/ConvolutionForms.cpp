// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/ConvolutionForms.h"

#include "dialects/OTF/Order.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// Taps that are written out; a body with more is too large for what follows to join it.
constexpr int64_t kMostTaps = 49;

/// A weight [channels, 1, taps...] as a tensor [taps, channels]; null if its bytes are not at hand.
Value byTap(Raiser &raiser, Known &weight, const Channels &c) {
  int64_t taps = c.taps();
  RankedTensorType type = tensorType(raiser.builder.getF32Type(), {Size(taps), Size(c.out)});
  if (weight.reals) {
    Known turned;
    turned.elementType = weight.elementType;
    turned.sizes = {Size(taps), Size(c.out)};
    turned.reals.emplace();
    for (int64_t tap = 0; tap != taps; ++tap)
      for (int64_t channel = 0; channel != c.out; ++channel)
        turned.reals->push_back((*weight.reals)[size_t(channel * taps + tap)]);
    return raiser.tensor(turned);
  }
  if (!weight.constant || weight.given)
    return {};
  Known flat = raiser.reshaped(weight, {Size(c.out), Size(taps)});
  Value matrix = raiser.matrix(flat, /*transposed=*/true);
  auto use = matrix ? matrix.getDefiningOp<UseOp>() : UseOp();
  if (!use)
    return {};
  Value tensor = UseOp::create(raiser.builder, use.getLoc(), type, use.getWeight());
  use.erase();
  return tensor;
}

/// x[n, o..., c] as the model has it, x[n, c, o...].
Known channelsSecond(Raiser &raiser, Known &x) {
  SmallVector<Size> sizes{x.sizes.front(), x.sizes.back()};
  llvm::append_range(sizes, ArrayRef<Size>(x.sizes).drop_front().drop_back());
  return raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> from{at[0]};
    llvm::append_range(from, at.drop_front(2));
    from.push_back(at[1]);
    return raiser.element(b, x, from);
  });
}

/// A tap's place along one axis, moved into the input, and whether it had to be (null if never).
struct Place {
  Value at, inside;
};

} // namespace

std::optional<Known> raise::convolveDepthwise(Raiser &raiser, onnx::NodeOp node, Known &x,
                                              Known &weight, ArrayRef<WindowAxis> window,
                                              const Channels &c) {
  Type type = raiser.internalType(x.elementType);
  if (c.group != c.in || c.out != c.in || c.taps() > kMostTaps || !type.isF32())
    return std::nullopt;
  Value taps = byTap(raiser, weight, c);
  if (!taps)
    return std::nullopt;
  size_t rank = window.size();
  auto sum = [&](Scalars &s, ValueRange at, Value initial) {
    SmallVector<SmallVector<Place>> places(rank); // by axis and tap
    for (auto [axis, list, o] : llvm::zip(window, places, at.slice(1, rank)))
      for (int64_t k = 0; k != axis.kernel; ++k) {
        Value position = axis.position(s, o, s.index(k));
        if (axis.isPadded())
          list.push_back({s.clamp(position, axis.input), s.inside(position, axis.input)});
        else
          list.push_back({position, Value()});
      }
    Value sum = initial;
    SmallVector<int64_t> k(rank, 0);
    for (int64_t tap = 0; tap != c.taps(); ++tap) {
      SmallVector<Value> from{at[0], at.back()};
      Value inside;
      for (size_t i = 0; i != rank; ++i) {
        from.push_back(places[i][size_t(k[i])].at);
        inside = s.both(inside, places[i][size_t(k[i])].inside);
      }
      Value element = raiser.element(s.b, x, from);
      if (inside)
        element = s.select(inside, element, s.number(type, 0));
      Value factor =
          tensor::ExtractOp::create(s.b, node.getLoc(), taps, ValueRange{s.index(tap), at.back()});
      sum = s.add(sum, s.mul(element, factor));
      for (size_t i = rank; i-- != 0;) { // the next tap, the last axis fastest
        if (++k[i] != c.kernel[i])
          break;
        k[i] = 0;
      }
    }
    return sum;
  };
  SmallVector<Size> sizes{x.sizes[0]};
  llvm::append_range(sizes, outputSizes(window));
  sizes.push_back(c.out);
  Known result = raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s(b, node.getLoc());
    Value initial = raiser.hasInput(node, 2) ? raiser.element(b, raiser.input(node, 2), {at.back()})
                                             : s.number(type, 0);
    // Places are moved inside and not guarded, which needs an inside.
    Value some;
    for (const WindowAxis &axis : window)
      if (axis.isPadded() && axis.output != axis.input)
        some = s.both(some, s.some(axis.input));
    return s.when(
        some, [&](Scalars &s) { return sum(s, at, initial); }, [&](Scalars &) { return initial; });
  });
  result.tensor.getDefiningOp()->setAttr(kKeepsOrder, UnitAttr::get(raiser.builder.getContext()));
  return channelsSecond(raiser, result);
}

std::optional<Known> raise::spreadByMatrix(Raiser &raiser, onnx::NodeOp node, Known &x,
                                           Known &weight, ArrayRef<WindowAxis> window,
                                           const Channels &c) {
  if (c.group != 1 || !weight.constant || weight.given ||
      !raiser.internalType(x.elementType).isF32())
    return std::nullopt;
  for (const WindowAxis &axis : window)
    if (axis.kernel != axis.stride || (axis.kernel != 1 && axis.dilation != 1) ||
        axis.before != Size(0) || axis.output != axis.input * Size(axis.stride))
      return std::nullopt;
  Known matrix = raiser.reshaped(weight, {Size(c.in), Size(c.out * c.taps())});
  Value factors = raiser.matrix(matrix, /*transposed=*/true);
  if (!factors)
    return std::nullopt;
  Location l = node.getLoc();
  SmallVector<Size> sizes{x.sizes[0]};
  llvm::append_range(sizes, ArrayRef<Size>(x.sizes).drop_front(2));
  sizes.push_back(c.in);
  Known rows = raiser.generated(x.elementType, sizes, [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> from{at.front(), at.back()};
    llvm::append_range(from, at.drop_front().drop_back());
    return raiser.element(b, x, from);
  });
  Known product;
  product.elementType = x.elementType;
  product.sizes = sizes;
  product.sizes.back() = c.out * c.taps();
  Type type = raiser.builder.getF32Type();
  product.tensor = LinearOp::create(raiser.builder, l, tensorType(type, product.sizes),
                                    raiser.tensor(rows), factors, Value());
  SmallVector<Size> outer{x.sizes[0]};
  llvm::append_range(outer, outputSizes(window));
  outer.push_back(c.out);
  Known result = raiser.generated(x.elementType, outer, [&](OpBuilder &b, ValueRange at) -> Value {
    Scalars s(b, l);
    SmallVector<Value> from{at[0]};
    Value column = at.back();
    for (auto [axis, o] : llvm::zip(window, at.drop_front().drop_back())) {
      from.push_back(s.div(o, double(axis.stride)));
      column = s.mul(column, double(axis.stride));
      if (axis.stride != 1)
        column = s.add(column, s.rem(o, s.index(axis.stride)));
    }
    from.push_back(column);
    Value element = raiser.element(b, product, from);
    return raiser.hasInput(node, 2)
               ? s.add(element, raiser.element(b, raiser.input(node, 2), {at.back()}))
               : element;
  });
  result.tensor.getDefiningOp()->setAttr(kKeepsOrder, UnitAttr::get(raiser.builder.getContext()));
  return channelsSecond(raiser, result);
}
