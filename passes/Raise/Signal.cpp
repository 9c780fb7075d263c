// SPDX-License-Identifier: Apache-2.0
//
// DFT and STFT as sums over a table of the circle. The table is computed in f64 once, so that the angle of a late sample is
// as exact as that of the first.

#include "passes/Raise/Numbers.h"

#include <numbers>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// cos and sin (row 0 and 1) of n equal steps around the circle.
Known circle(Raiser &raiser, onnx::NodeOp node, int64_t elementType, const Size &n) {
  Type type = raiser.internalType(elementType);
  return raiser.generated(elementType, {Size(2), n}, [&](OpBuilder &b, ValueRange at) -> Value {
    Expressions s{b, node.getLoc()};
    Type wide = b.getF64Type();
    Value step = s.div(s.fromIndex(wide, at[1]), s.fromIndex(wide, s.index(n)));
    Value angle = s.mul(step, s.constant(wide, 2 * std::numbers::pi));
    Value cosine = math::CosOp::create(b, s.l, angle), sine = math::SinOp::create(b, s.l, angle);
    return s.toReal(type, s.select(s.equal(at[0], s.index(0)), cosine, sine));
  });
}

/// A real or complex sample; no imaginary part is a null value.
using Sample = function_ref<std::pair<Value, Value>(Expressions, Value at)>;

/// Part `part` (0 real, 1 imaginary) of Σ x[i] · exp(direction · 2π j · i · k / n) over i < count.
Value transform(Raiser &raiser, Expressions s, Known &table, const Size &n, Value count, Value k, Value part, int direction, Sample sample) {
  Type type = raiser.internalType(table.elementType);
  Value period = s.index(n);
  SmallVector<Value> sum = s.loop({count}, {s.zero(type)}, [&](Expressions inner, ArrayRef<Value> loop, ValueRange carried) -> SmallVector<Value> {
    Value turn = inner.rem(inner.mul(loop[0], k), period);
    Value cosine = raiser.element(inner.b, table, {inner.index(0), turn});
    Value sine = raiser.element(inner.b, table, {inner.index(1), turn});
    if (direction < 0)
      sine = inner.sub(inner.zero(type), sine);
    auto [re, im] = sample(inner, loop[0]);
    Value isReal = inner.equal(part, inner.index(0));
    if (!im)
      return {inner.add(carried[0], inner.mul(re, inner.select(isReal, cosine, sine)))};
    Value real = inner.sub(inner.mul(re, cosine), inner.mul(im, sine));
    Value imaginary = inner.add(inner.mul(re, sine), inner.mul(im, cosine));
    return {inner.add(carried[0], inner.select(isReal, real, imaginary))};
  });
  return sum[0];
}

/// The one number of an input, or `otherwise`.
FailureOr<Number> numberOr(Raiser &raiser, onnx::NodeOp node, unsigned input, Number otherwise) {
  if (!raiser.hasInput(node, input))
    return otherwise;
  FailureOr<SmallVector<Number>> numbers = numbersOf(raiser, node, input);
  if (failed(numbers))
    return failure();
  if (numbers->size() != 1)
    return raiser.fail(node, "input " + Twine(input) + " must be one number");
  return numbers->front();
}

LogicalResult raiseDft(Raiser &raiser, onnx::NodeOp node) {
  Known &input = raiser.input(node, 0);
  int64_t rank = input.rank();
  bool inverse = node.intOr("inverse", 0) != 0, onesided = node.intOr("onesided", 0) != 0;
  // The axis is an attribute before opset 20.
  FailureOr<Number> given = numberOr(raiser, node, 2, node.getVersion() < 20 ? node.intOr("axis", 1) : -2);
  if (failed(given))
    return failure();
  if (rank < 2 || !isa<FloatType>(raiser.internalType(input.elementType)) ||
      (input.sizes.back() != Size(1) && input.sizes.back() != Size(2)))
    return raiser.fail(node, "expects floats whose last dimension is 1 (real) or 2 (complex)");
  bool complex = input.sizes.back() == Size(2), halved = onesided && inverse;
  if (onesided && !inverse && complex)
    return raiser.fail(node, "a one-sided transform of a complex signal is not defined");
  // Which dimension it is may be data.
  Number axis = ifNegative(*given, *given + Number(rank), *given), extent = 0, isOne = 0;
  for (int64_t d = 0; d != rank - 1; ++d) {
    extent = ifEqual(axis, d, input.sizes[d], extent);
    isOne = isOne + ifEqual(axis, d, 1, 0);
  }
  if (isOne.is(0))
    return raiser.fail(node, "axis " + Twine(*given->constant()) + " is no dimension of the signal");
  FailureOr<Number> asked = numberOr(raiser, node, 1, halved ? Number(2) * (extent - Number(1)) : extent);
  if (failed(asked))
    return failure();
  FailureOr<SmallVector<Size>> settledLength = settled(raiser, node, maximum(*asked, 0), Check{isOne, 1, "its axes"});
  if (failed(settledLength))
    return failure();
  Size n = settledLength->front();
  Number half = quotient(n, 2) + Number(1), length = onesided && !inverse ? half : Number(n);
  SmallVector<Number> extents;
  for (int64_t d = 0; d != rank - 1; ++d)
    extents.push_back(ifEqual(axis, d, length, input.sizes[d]));
  extents.push_back(halved ? 1 : 2);
  FailureOr<SmallVector<Size>> sizes = settled(raiser, node, extents);
  if (failed(sizes))
    return failure();
  Known table = circle(raiser, node, input.elementType, n);
  Type type = raiser.internalType(input.elementType);
  // A shorter signal is followed by zeros, which add nothing; a longer one is cut. Of half a spectrum there are n / 2 + 1.
  Number count = minimum(extent, halved ? half : Number(n));
  raiser.set(node, raiser.generated(input.elementType, *sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Value zero = s.index(0), one = s.index(1), period = s.index(n), k = indices[0];
    SmallVector<Value> isAxis(rank);
    for (int64_t d = 0; d != rank - 1; ++d) {
      if (!axis.constant())
        isAxis[d] = s.equal(axis.emit(s), s.index(d));
      k = isAxis[d] ? s.select(isAxis[d], indices[d], k) : axis.is(d) ? indices[d] : k;
    }
    Value sum = transform(raiser, s, table, n, count.emit(s), k, halved ? zero : indices.back(), inverse ? 1 : -1,
                          [&](Expressions inner, Value at) {
                            SmallVector<Value> place(indices);
                            for (int64_t d = 0; d != rank - 1; ++d)
                              place[d] = isAxis[d] ? inner.select(isAxis[d], at, place[d]) : axis.is(d) ? at : place[d];
                            place.back() = zero;
                            Value re = raiser.element(inner.b, input, place), im;
                            place.back() = one;
                            if (complex)
                              im = raiser.element(inner.b, input, place);
                            if (halved) {
                              // What the other half mirrors counts twice; the ends stand for themselves.
                              Value twice = inner.both(inner.less(zero, at), inner.less(inner.add(at, at), period));
                              Value factor = inner.select(twice, inner.constant(type, 2), inner.constant(type, 1));
                              re = inner.mul(re, factor);
                              im = im ? inner.mul(im, inner.select(twice, inner.constant(type, 2), inner.zero(type))) : im;
                            }
                            return std::pair(re, im);
                          });
    return inverse ? s.div(sum, s.fromIndex(type, period)) : sum;
  }));
  return success();
}

LogicalResult raiseStft(Raiser &raiser, onnx::NodeOp node) {
  Known &signal = raiser.input(node, 0);
  bool onesided = node.intOr("onesided", 1) != 0, hasWindow = raiser.hasInput(node, 2);
  Type type = raiser.internalType(signal.elementType);
  if ((signal.rank() != 2 && signal.rank() != 3) || !isa<FloatType>(type) ||
      (signal.rank() == 3 && signal.sizes[2] != Size(1) && signal.sizes[2] != Size(2)))
    return raiser.fail(node, "expects a signal of floats, [batch, length, 1] or [batch, length, 2]");
  bool complex = signal.rank() == 3 && signal.sizes[2] == Size(2);
  if (complex && onesided)
    return raiser.fail(node, "a one-sided transform of a complex signal is not defined");
  if (hasWindow && (raiser.input(node, 2).rank() != 1 || raiser.input(node, 2).elementType != signal.elementType))
    return raiser.fail(node, "its window must have rank 1 and the signal's type");
  Number length = hasWindow ? Number(raiser.input(node, 2).sizes[0]) : Number(signal.sizes[1]);
  FailureOr<Number> step = numberOr(raiser, node, 1, 1), asked = numberOr(raiser, node, 3, length);
  if (failed(step) || failed(asked))
    return failure();
  std::vector<Check> checks;
  if (hasWindow)
    checks.push_back({*asked, length, "frame_length and the length of its window"});
  FailureOr<SmallVector<Size>> frame = settled(raiser, node, hasWindow ? length : maximum(*asked, 0), checks);
  if (failed(frame))
    return failure();
  Size n = frame->front();
  // A signal shorter than a frame has none.
  Number room = Number(signal.sizes[1]) - Number(n);
  Number stride = maximum(*step, 1), frames = ifNegative(room, 0, quotient(maximum(room, 0), stride) + Number(1));
  FailureOr<SmallVector<Size>> counts = settled(raiser, node, {frames, onesided ? quotient(n, 2) + Number(1) : Number(n)});
  if (failed(counts))
    return failure();
  Known table = circle(raiser, node, signal.elementType, n);
  SmallVector<Size> sizes = {signal.sizes[0], (*counts)[0], (*counts)[1], Size(2)};
  raiser.set(node, raiser.generated(signal.elementType, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    Value begin = s.mul(indices[1], stride.emit(s));
    return transform(raiser, s, table, n, s.index(n), indices[2], indices[3], -1, [&](Expressions inner, Value at) {
      SmallVector<Value> place = {indices[0], inner.add(begin, at)};
      if (signal.rank() == 3)
        place.push_back(inner.index(0));
      Value re = raiser.element(inner.b, signal, place), im;
      if (complex) {
        place.back() = inner.index(1);
        im = raiser.element(inner.b, signal, place);
      }
      if (hasWindow) {
        Value weight = raiser.element(inner.b, raiser.input(node, 2), {at});
        re = inner.mul(re, weight);
        im = im ? inner.mul(im, weight) : im;
      }
      return std::pair(re, im);
    });
  }));
  return success();
}

} // namespace

void raise::registerSignal(Registry &registry) {
  registry.add("DFT", raiseDft, 1, 3, 17);
  registry.add("STFT", raiseStft, 2, 4, 17);
}
