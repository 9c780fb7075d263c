// SPDX-License-Identifier: Apache-2.0
//
// The pass `otf-raise` and the pipeline around it.

#include "passes/Raise/Raise.h"

#include "passes/Passes.h"
#include "passes/Raise/Raiser.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace otf;

namespace {

struct RaisePass : PassWrapper<RaisePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaisePass)

  StringRef getArgument() const override { return "otf-raise"; }
  StringRef getDescription() const override {
    return "replace ONNX operators by otf operators and scalar programs";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<OTFDialect, arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect,
                    tensor::TensorDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(raise::Raiser(module).run()))
      return signalPassFailure();
    removeUnused(module);
    // A cache that something else than attention reads.
    WalkResult walk = module.walk([&](ReadOp read) {
      read.emitError() << "reads a key or value cache outside attention (this form of attention is not recognised)";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

  /// Removes what recognised patterns left behind. Users stand after what they use, so one walk backwards suffices.
  void removeUnused(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (isOpTriviallyDead(op))
          op->erase();
      });
    llvm::StringSet<> used;
    module.walk([&](UseOp use) { used.insert(use.getWeight()); });
    for (auto weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
      if (!used.contains(weight.getSymName()))
        weight.erase();
    // What took an initializer's name may be gone.
    SymbolTable symbols(module);
    for (auto weight : module.getOps<WeightOp>())
      if (auto name = dyn_cast<NameLoc>(weight.getLoc()); name && !symbols.lookup(name.getName()))
        (void)symbols.rename(weight, name.getName());
  }
};

} // namespace

std::unique_ptr<Pass> otf::createRaisePass() { return std::make_unique<RaisePass>(); }

void otf::buildRaisePipeline(OpPassManager &manager) {
  manager.addPass(createRaisePass());
  manager.addPass(createMergeEqual());
}

void otf::registerRaisePasses() {
  registerPass(createRaisePass);
  PassPipelineRegistration<>("otf-import", "from onnx.node to the stage `imported`", buildRaisePipeline);
}
