// SPDX-License-Identifier: Apache-2.0
//
// Geometry of windows that slide over spatial axes, as convolutions and pools share it.
#ifndef OTF_PASSES_RAISE_WINDOWS_H
#define OTF_PASSES_RAISE_WINDOWS_H

#include "passes/Raise/Raiser.h"
#include "passes/Raise/Scalars.h"

namespace otf::raise {

/// One axis: tap k of the window at o is at o · stride + k · dilation − before.
struct WindowAxis {
  Size input, output;
  int64_t kernel = 1, stride = 1, dilation = 1;
  Size before, after; // positions outside the input

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  /// The input position of a tap.
  mlir::Value position(Scalars &s, mlir::Value o, mlir::Value k) const;
  /// Whether a tap may lie outside the input.
  bool isPadded() const;
};
using Window = llvm::SmallVector<WindowAxis>;

/// A list attribute with `count` elements of at least `least`, or `otherwise` for each where the
/// node has none.
mlir::FailureOr<llvm::SmallVector<int64_t>> listAttribute(Raiser &, onnx::NodeOp,
                                                          llvm::StringRef name, size_t count,
                                                          int64_t least, int64_t otherwise);

/// The window that `strides`, `dilations`, `pads`, `auto_pad` (and `ceil_mode` where `mayCeil`) of
/// a node describe. `spatial` are the sizes of the input's spatial axes.
mlir::FailureOr<Window> windowOf(Raiser &, onnx::NodeOp, llvm::ArrayRef<Size> spatial,
                                 llvm::ArrayRef<int64_t> kernel, bool mayCeil);

/// The sizes of the taps, of the output positions.
llvm::SmallVector<Size> kernelSizes(llvm::ArrayRef<WindowAxis>);
llvm::SmallVector<Size> outputSizes(llvm::ArrayRef<WindowAxis>);

/// Input positions of taps `k` at outputs `o`, and the condition that they lie inside (null where
/// they always do).
struct Tap {
  llvm::SmallVector<mlir::Value> at;
  mlir::Value inside;
};
Tap tapOf(Scalars &, llvm::ArrayRef<WindowAxis>, mlir::ValueRange o, mlir::ValueRange k);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_WINDOWS_H
