// SPDX-License-Identifier: Apache-2.0
//
// A model of the fixtures at any stage, and modules from text.
#ifndef OTF_TEST_REFERENCE_MODEL_H
#define OTF_TEST_REFERENCE_MODEL_H

#include "lib/Import/ModelFile.h"
#include "lib/Reference/Interpreter.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace otf::reference::test {

struct Recipe {
  std::string linear = "f32", vocabulary = "f32";
  double outliers = 0;
  int64_t group = 32;
};

enum class Stage { imported, annotated, quantized, fused, outlined };

/// A context that knows every dialect of otf-level IR and of kernels, with its complaints as text.
struct Context {
  Context();
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::string complaints;
};

/// Fails the test where something goes wrong; `module` is then null.
struct Model {
  Model(const std::string &fixture, Stage stage, const Recipe &recipe = {});

  /// Inputs as stored: those that the model has as caches become states. Results hold the caches
  /// after the step too, by the names of their outputs.
  Tensors run(Tensors inputs, RunKernel runKernel = {});

  Context context;
  std::unique_ptr<ModelFile> file;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace otf::reference::test

#endif // OTF_TEST_REFERENCE_MODEL_H
