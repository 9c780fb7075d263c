// SPDX-License-Identifier: Apache-2.0
//
// Forms of convolutions that are faster than a sum over channels and taps for each element. Each
// gives nothing where it does not fit.
#ifndef OTF_PASSES_RAISE_CONVOLUTIONFORMS_H
#define OTF_PASSES_RAISE_CONVOLUTIONFORMS_H

#include "passes/Raise/Windows.h"

#include <numeric>

namespace otf::raise {

/// What input, weight and `group` of a convolution agree on.
struct Channels {
  int64_t group, in, out;    // of the whole
  int64_t inGroup, outGroup; // of one group
  llvm::SmallVector<int64_t> kernel;

  int64_t taps() const {
    return std::accumulate(kernel.begin(), kernel.end(), int64_t(1), std::multiplies<>());
  }
};

/// One group a channel, and a constant weight: a body with channels last whose taps stand one after
/// another. Its innermost loop is over channels, and everything about places is the same for all of
/// them.
std::optional<Known> convolveDepthwise(Raiser &, onnx::NodeOp, Known &x, Known &weight,
                                       llvm::ArrayRef<WindowAxis>, const Channels &);

/// A transposed convolution whose windows neither meet nor leave room between them is a linear of
/// each position: it gives a window of all output channels.
std::optional<Known> spreadByMatrix(Raiser &, onnx::NodeOp, Known &x, Known &weight,
                                    llvm::ArrayRef<WindowAxis>, const Channels &);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_CONVOLUTIONFORMS_H
