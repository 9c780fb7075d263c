// SPDX-License-Identifier: Apache-2.0
#include "passes/Raise/Windows.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

/// Kernels, strides, dilations and pads are below this, so that no product of two of them
/// overflows.
static constexpr int64_t kLargest = int64_t(1) << 30;

Value WindowAxis::position(Scalars &s, Value o, Value k) const {
  Value at = s.mul(o, double(stride));
  if (kernel != 1)
    at = s.add(at, s.mul(k, double(dilation)));
  return s.add(at, double(-before));
}

bool WindowAxis::isPadded() const {
  // The last tap of the last window.
  Size last = (output - Size(1)) * Size(stride) + Size(extent() - 1 - before);
  return before > 0 || !(input - Size(1)).isAtLeast(last);
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

std::optional<Size> raise::floorDivide(const Size &size, int64_t divisor) {
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
  bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!same && autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return raiser.fail(node, "auto_pad is " + autoPad +
                                 ", and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  bool ceil = mayCeil && node.intOr("ceil_mode", 0) != 0;
  Window window;
  for (size_t i = 0; i != rank; ++i) {
    WindowAxis axis;
    axis.input = spatial[i];
    axis.kernel = kernel[i];
    axis.stride = (*strides)[i];
    axis.dilation = (*dilations)[i];
    if (axis.kernel < 1 || axis.kernel > kLargest)
      return raiser.fail(node, "its window has " + Twine(axis.kernel) + " positions along an axis");
    auto unknown = [&] {
      return raiser.fail(node,
                         "whether a size of " + spatial[i].str() + " divides by its stride " +
                             Twine(axis.stride) +
                             " depends on the input (export the model with a fixed size there)");
    };
    if (same) {
      std::optional<Size> output = floorDivide(spatial[i] + Size(axis.stride - 1), axis.stride);
      std::optional<int64_t> needed;
      if (output)
        needed =
            ((*output - Size(1)) * Size(axis.stride) + Size(axis.extent()) - spatial[i]).constant();
      if (!needed)
        return unknown();
      int64_t pad = std::max<int64_t>(0, *needed);
      axis.output = *output;
      axis.before = autoPad == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
      axis.after = pad - axis.before;
      window.push_back(axis);
      continue;
    }
    if (autoPad != "VALID") {
      axis.before = (*pads)[i];
      axis.after = (*pads)[rank + i];
    }
    Size room = spatial[i] + Size(axis.before + axis.after - axis.extent());
    if (room.isConstant() && *room.constant() < 0)
      return raiser.fail(node, "its window of " + Twine(axis.extent()) +
                                   " positions is larger than the padded input of " +
                                   (spatial[i] + Size(axis.before + axis.after)).str());
    std::optional<Size> output =
        floorDivide(ceil ? room + Size(axis.stride - 1) : room, axis.stride);
    if (!output)
      return unknown();
    axis.output = *output + Size(1);
    // The last window starts inside the input or the padding before it.
    if (ceil && axis.output.isConstant() && spatial[i].isConstant()) {
      if ((*axis.output.constant() - 1) * axis.stride >= *spatial[i].constant() + axis.before)
        axis.output = axis.output - Size(1);
    } else if (ceil && axis.stride != 1) {
      return unknown();
    }
    window.push_back(axis);
  }
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

Tap raise::tapOf(Scalars &s, ArrayRef<WindowAxis> window, ValueRange o, ValueRange k) {
  Tap tap;
  for (auto [i, axis] : llvm::enumerate(window)) {
    tap.at.push_back(axis.position(s, o[i], k[i]));
    if (axis.isPadded())
      tap.inside = s.both(tap.inside, s.inside(tap.at.back(), axis.input));
  }
  return tap;
}
