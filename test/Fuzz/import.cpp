// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a model that is compiled as far as a plan's kernels and launches, without weights being read or code being
// made. Whatever the file says, each stage gives a module that verifies or an error.

#include "Input.h"

#include "lib/Import/Importer.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "passes/Raise/Raise.h"

using namespace otf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<std::unique_ptr<ModelFile>> file = ModelFile::open(fuzz::fileWith(data, size));
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &) {
    ++errors;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(**file, context);
  if (!module)
    return 0;
  mlir::PassManager passes(&context); // verifies after each pass
  buildRaisePipeline(passes);
  DecideOptions plain;
  plain.linear = plain.vocabulary = "f32";
  plain.outliers = 0;
  buildDecidePipeline(passes, plain);
  buildRewritePipeline(passes);
  buildFusePipeline(passes);
  buildLowerPipeline(passes);
  if (mlir::failed(passes.run(*module)) && errors == 0)
    std::abort(); // refused without a word
  return 0;
}
