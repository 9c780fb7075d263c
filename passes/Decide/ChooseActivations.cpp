// SPDX-License-Identifier: Apache-2.0
//
// What coded weights multiply.
//
// Problem: records of int8 with a scale for each 32 inputs are what kernels like best, and
// published systems are other controls. Approach: an attribute, which rewriting reads.

#include "dialects/OTF/Derived.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEACTIVATIONS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct ChooseActivationsPass : otf::impl::ChooseActivationsBase<ChooseActivationsPass> {
  using ChooseActivationsBase::ChooseActivationsBase;

  /// Weights that some reader of another kind has: embeddings read no activations, and windows have
  /// records of positions.
  llvm::SmallPtrSet<Operation *, 4> others(SymbolTable &symbols) {
    llvm::SmallPtrSet<Operation *, 4> weights;
    getOperation().walk([&](UseOp use) {
      for (Operation *user : use->getUsers())
        if (auto linear = dyn_cast<LinearOp>(user); !linear || linear.getWindow())
          weights.insert(symbols.lookup(use.getWeight()));
    });
    return weights;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (kind != "f32" && kind != "row") {
      module.emitError() << getArgument() << ": kind must be f32 or row, got \"" << kind << "\"";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    llvm::SmallPtrSet<Operation *, 4> excluded = others(symbols);
    for (WeightOp weight : module.getOps<WeightOp>()) {
      std::optional<EncodingAttr> encoding = weight.getEncoding();
      if (!hasChosenCodes(weight) || !isCodedAsLinear(weight) ||
          weight.getFloatActivations() || weight->hasAttr(kRowActivationsAttribute) ||
          excluded.contains(weight))
        continue;
      if (weight.getOutliers() && !weight.getOutliers()->getColumns().empty())
        continue;
      bool integers =
          llvm::is_contained({EncodingKind::int8, EncodingKind::int4, EncodingKind::grid8, EncodingKind::grid4}, encoding->getKind());
      if (kind == "f32" && !integers)
        continue;
      if (kind == "f32")
        weight.setFloatActivations(true);
      else
        weight->setDiscardableAttr(kRowActivationsAttribute, UnitAttr::get(&getContext()));
      ++numWeights;
    }
  }
};

} // namespace
