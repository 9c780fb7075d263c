// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/Windows.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

/// Kernels, strides, dilations and pads are below this, so that no product of two of them
/// overflows.
static constexpr int64_t kLargest = int64_t(1) << 30;

Value WindowAxis::position(Expressions &s, Value o, Value k) const {
  Value at = s.mul(o, double(stride));
  if (kernel != 1)
    at = s.add(at, s.mul(k, double(dilation)));
  return before == Size(0) ? at : s.sub(at, s.index(before));
}

bool WindowAxis::isPadded() const {
  // The last tap of the last window.
  Size last = (output - Size(1)) * Size(stride) + Size(extent() - 1) - before;
  return before != Size(0) || !(input - Size(1)).isAtLeast(last);
}

FailureOr<SmallVector<int64_t>> raise::listAttribute(Raiser &raiser, onnx::NodeOp node,
                                                     StringRef name, size_t count, int64_t least,
                                                     int64_t otherwise) {
  Attribute attribute = node.attribute(name);
  if (!attribute)
    return SmallVector<int64_t>(count, otherwise);
  auto array = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!array || size_t(array.size()) != count)
    return raiser.fail(node, name + " must be a list of " + Twine(count) + " integers");
  for (int64_t value : array.asArrayRef())
    if (value < least || value > kLargest)
      return raiser.fail(node, name + " holds " + Twine(value) + ", and must be from " +
                                   Twine(least) + " to 2^30");
  return SmallVector<int64_t>(array.asArrayRef());
}

namespace {

/// ⌊size / divisor⌋ where it is known whatever the symbols are.
std::optional<Size> floorDivide(const Size &size, int64_t divisor) {
  if (std::optional<int64_t> constant = size.constant())
    return Size(*constant >= 0 ? *constant / divisor : -((-*constant + divisor - 1) / divisor));
  // Terms that divide, and the constant's quotient: exact, since the rest is less than one.
  Size rest = 0;
  auto constant = size.terms().find({});
  if (constant != size.terms().end())
    rest = constant->second;
  std::optional<Size> quotient = (size - rest).divide(divisor);
  if (!quotient)
    return std::nullopt;
  return *quotient + *floorDivide(rest, divisor);
}

enum class Padding { given, sameUpper, sameLower };

/// Output size and padding in front where they are known whatever the symbols are.
bool place(WindowAxis &axis, Padding padding, bool ceil) {
  if (padding != Padding::given) {
    std::optional<Size> output = floorDivide(axis.input + Size(axis.stride - 1), axis.stride);
    std::optional<int64_t> needed;
    if (output)
      needed =
          ((*output - Size(1)) * Size(axis.stride) + Size(axis.extent()) - axis.input).constant();
    if (!needed)
      return false;
    int64_t pad = std::max<int64_t>(0, *needed);
    axis.output = *output;
    axis.before = padding == Padding::sameUpper ? pad / 2 : pad - pad / 2;
    axis.after = Size(pad) - axis.before;
    return true;
  }
  Size room = axis.input + axis.before + axis.after - Size(axis.extent());
  std::optional<Size> output = floorDivide(ceil ? room + Size(axis.stride - 1) : room, axis.stride);
  if (!output)
    return false;
  axis.output = *output + Size(1);
  if (!ceil || axis.stride == 1)
    return true;
  // The last window starts inside the input or the padding before it.
  if (!axis.output.isConstant())
    return false;
  if (((axis.output - Size(1)) * Size(axis.stride)).isAtLeast(axis.input + axis.before))
    axis.output = axis.output - Size(1);
  return true;
}

/// The same when the plan runs: pairs of an output size, −1 where the window is too large, and the
/// padding in front.
void placeByData(Raiser &raiser, Location l, MutableArrayRef<WindowAxis *> axes, Padding padding,
                 bool ceil) {
  Type i64 = raiser.builder.getI64Type();
  Value pairs = raiser.generate(
      i64, {Size(int64_t(2 * axes.size()))}, [&](OpBuilder &b, ValueRange at) -> Value {
        Expressions s(b, l);
        Value result = s.index(0);
        for (auto [number, axis] : llvm::enumerate(axes)) {
          Value input = s.index(axis->input), output, before = s.index(axis->before);
          Value zero = s.index(0), stride = s.index(axis->stride);
          if (padding != Padding::given) {
            output = s.div(s.add(input, double(axis->stride - 1)), stride);
            Value reach = s.add(s.mul(s.add(output, -1), stride), double(axis->extent()));
            Value pad = s.max(s.sub(reach, input), zero);
            before = s.div(padding == Padding::sameUpper ? pad : s.add(pad, 1), 2);
          } else {
            Value room = s.index(axis->input + axis->before + axis->after - Size(axis->extent()));
            Value steps =
                s.div(s.max(ceil ? s.add(room, double(axis->stride - 1)) : room, zero), stride);
            output = s.add(steps, 1);
            if (ceil)
              output =
                  s.select(s.lessEqual(s.index(axis->input + axis->before), s.mul(steps, stride)),
                           steps, output);
            output = s.select(s.less(room, zero), s.index(-1), output);
          }
          result = s.select(s.equal(at[0], s.index(2 * number)), output, result);
          result = s.select(s.equal(at[0], s.index(2 * number + 1)), before, result);
        }
        return s.asInteger(i64, result);
      });
  SmallVector<Size> sizes = raiser.bind(pairs, "window");
  for (auto [number, axis] : llvm::enumerate(axes)) {
    axis->output = sizes[2 * number];
    if (padding != Padding::given) {
      axis->before = sizes[2 * number + 1];
      axis->after = (axis->output - Size(1)) * Size(axis->stride) + Size(axis->extent()) -
                    axis->input - axis->before;
    }
  }
}

} // namespace

FailureOr<Window> raise::windowOf(Raiser &raiser, onnx::NodeOp node, ArrayRef<Size> spatial,
                                  ArrayRef<int64_t> kernel, bool mayCeil) {
  size_t rank = spatial.size();
  if (rank == 0 || kernel.size() != rank)
    return raiser.fail(node, "expects a window of as many axes as its input has spatial ones, " +
                                 Twine(rank) + ", got " + Twine(kernel.size()));
  auto strides = listAttribute(raiser, node, "strides", rank, 1, 1);
  auto dilations = listAttribute(raiser, node, "dilations", rank, 1, 1);
  auto pads = listAttribute(raiser, node, "pads", 2 * rank, 0, 0);
  if (failed(strides) || failed(dilations) || failed(pads))
    return failure();
  StringRef autoPad = node.stringOr("auto_pad", "NOTSET");
  Padding padding = autoPad == "SAME_UPPER"   ? Padding::sameUpper
                    : autoPad == "SAME_LOWER" ? Padding::sameLower
                                              : Padding::given;
  if (padding == Padding::given && autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return raiser.fail(node, "auto_pad is " + autoPad +
                                 ", and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  bool ceil = mayCeil && node.intOr("ceil_mode", 0) != 0;
  Window window;
  SmallVector<WindowAxis *> byData;
  for (size_t i = 0; i != rank; ++i) {
    WindowAxis axis;
    axis.input = spatial[i];
    axis.kernel = kernel[i];
    axis.stride = (*strides)[i];
    axis.dilation = (*dilations)[i];
    if (axis.kernel < 1 || axis.kernel > kLargest)
      return raiser.fail(node, "its window has " + Twine(axis.kernel) + " positions along an axis");
    if (padding == Padding::given && autoPad != "VALID") {
      axis.before = (*pads)[i];
      axis.after = (*pads)[rank + i];
    }
    std::optional<int64_t> padded = (spatial[i] + axis.before + axis.after).constant();
    if (padding == Padding::given && padded && *padded < axis.extent())
      return raiser.fail(node, "its window of " + Twine(axis.extent()) +
                                   " positions is larger than the padded input of " +
                                   Twine(*padded));
    window.push_back(axis);
  }
  for (WindowAxis &axis : window)
    if (!place(axis, padding, ceil))
      byData.push_back(&axis);
  if (!byData.empty())
    placeByData(raiser, node.getLoc(), byData, padding, ceil);
  return window;
}

SmallVector<Size> raise::kernelSizes(ArrayRef<WindowAxis> window) {
  SmallVector<Size> sizes;
  for (const WindowAxis &axis : window)
    sizes.push_back(axis.kernel);
  return sizes;
}

SmallVector<Size> raise::outputSizes(ArrayRef<WindowAxis> window) {
  SmallVector<Size> sizes;
  for (const WindowAxis &axis : window)
    sizes.push_back(axis.output);
  return sizes;
}

Tap raise::tapOf(Expressions &s, ArrayRef<WindowAxis> window, ValueRange o, ValueRange k) {
  Tap tap;
  for (auto [i, axis] : llvm::enumerate(window)) {
    tap.at.push_back(axis.position(s, o[i], k[i]));
    if (axis.isPadded())
      tap.inside = s.both(tap.inside, s.inside(tap.at.back(), axis.input));
  }
  return tap;
}
