// SPDX-License-Identifier: Apache-2.0
//
// The pipelines that otf-compile runs.

#include "test/Reference/Model.h"

#include "lib/Compile/WeightRows.h"
#include "lib/Import/Importer.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/Raise/Raise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace otf::reference::test {

Context::Context() {
  context.loadDialect<OTFDialect, plan::PlanDialect, arith::ArithDialect, func::FuncDialect,
                      index::IndexDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    complaints += diagnostic.str() + "\n";
    return success();
  });
}

OwningOpRef<ModuleOp> Context::parse(const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << complaints;
  return module;
}

Model::Model(const std::string &fixture, Stage stage, const Recipe &recipe) {
  auto opened = ModelFile::open(OTF_FIXTURES "/" + fixture + "/model.onnx");
  if (!opened) {
    ADD_FAILURE() << llvm::toString(opened.takeError());
    return;
  }
  file = std::move(*opened);
  module = importModel(*file, context.context);
  if (!module) {
    ADD_FAILURE() << context.complaints;
    return;
  }
  PassManager passes(&context.context);
  buildRaisePipeline(passes);
  if (stage >= Stage::annotated) {
    DecideOptions decide;
    decide.linear = recipe.linear;
    decide.vocabulary = recipe.vocabulary;
    decide.outliers = recipe.outliers;
    decide.group = recipe.group;
    buildDecidePipeline(passes, decide, readWeightsFrom(file->files()));
  }
  if (stage >= Stage::quantized)
    buildRewritePipeline(passes);
  if (stage >= Stage::fused)
    buildFusePipeline(passes);
  if (stage >= Stage::outlined)
    passes.addPass(createOutline());
  if (failed(passes.run(*module))) {
    ADD_FAILURE() << context.complaints;
    module = nullptr;
  }
}

Tensors Model::run(Tensors inputs, RunKernel runKernel) {
  if (!module)
    return {};
  States states;
  for (auto cache : module->getOps<CacheOp>())
    if (auto found = inputs.find(cache.getInput().str()); found != inputs.end()) {
      states[found->first] = std::move(found->second);
      inputs.erase(found);
    }
  auto results = interpret(*module, file->files(), inputs, states, std::move(runKernel));
  if (!results) {
    ADD_FAILURE() << llvm::toString(results.takeError());
    return {};
  }
  for (auto cache : module->getOps<CacheOp>())
    (*results)[cache.getOutput().str()] = states[cache.getInput().str()];
  return std::move(*results);
}

} // namespace otf::reference::test
