// SPDX-License-Identifier: Apache-2.0
//
// What nodes with bodies of nodes share: If, Loop and Scan.
#ifndef OTF_PASSES_RAISE_BODIES_H
#define OTF_PASSES_RAISE_BODIES_H

#include "passes/Raise/Raiser.h"

namespace otf::raise {

using Knowns = std::vector<Known>;

/// What a body gives: an If's outputs; a Loop's condition, what it carries, and slices.
inline mlir::ValueRange yielded(mlir::Block &body) {
  return llvm::cast<onnx::YieldOp>(body.getTerminator()).getValues();
}

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_BODIES_H
