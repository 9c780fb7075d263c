// SPDX-License-Identifier: Apache-2.0
//
// From onnx.node to otf, tensor, arith and math: one pass, `otf-raise`.
#ifndef OTF_PASSES_RAISE_RAISE_H
#define OTF_PASSES_RAISE_RAISE_H

#include <memory>

namespace mlir {
class OpPassManager;
class Pass;
} // namespace mlir

namespace otf {

/// Replaces every onnx operator of a module by what it means. The result is the stage `imported`.
std::unique_ptr<mlir::Pass> createRaisePass();

/// `otf-raise`, then removal of what it left unused.
void buildRaisePipeline(mlir::OpPassManager &manager);

/// Makes `otf-raise` and the pipeline `otf-import` known to tools by name.
void registerRaisePasses();

} // namespace otf

#endif // OTF_PASSES_RAISE_RAISE_H
