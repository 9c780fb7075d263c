// SPDX-License-Identifier: Apache-2.0
//
// Indices that are data must lie inside the axes they point into; a body that reads at one cannot say that it does not.
#ifndef OTF_PASSES_RAISE_INDEXLIMITS_H
#define OTF_PASSES_RAISE_INDEXLIMITS_H

#include "passes/Raise/Raiser.h"

namespace otf::raise {

/// Sees to it that a run ends with a sentence where an element of `indices`, an ONNX value of integers, is outside
/// [-extent, extent). Of several extents each is for one position in the last dimension. `ignored` is let through.
/// Constants are refused here and inputs of the model before any kernel runs; others are looked at by a program of their own.
mlir::LogicalResult checkIndices(Raiser &, onnx::NodeOp, mlir::Value indices, llvm::ArrayRef<Size> extents,
                                 std::optional<int64_t> ignored = std::nullopt);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_INDEXLIMITS_H
