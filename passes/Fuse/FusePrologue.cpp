// SPDX-License-Identifier: Apache-2.0
//
// Norms are computed by the prologues that read them.
//
// Problem: a norm alone writes a row of floats that the prologue reads again at once.
// Approach: the prologue normalises the row while it has it. Only when nothing else needs the
// normalised row: recomputing it is cheap, but the launch and the memory would stay.

#include "passes/Passes.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_FUSEPROLOGUE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct FuseProloguePass : otf::impl::FusePrologueBase<FuseProloguePass> {
  void runOnOperation() override {
    getOperation().walk([&](NormOp norm) {
      bool fits = !norm.getResult().use_empty() &&
                  llvm::all_of(norm.getResult().getUses(), [&](OpOperand &use) {
                    auto prologue = dyn_cast<PrologueOp>(use.getOwner());
                    return prologue && prologue.getKind() == NormKind::none &&
                           prologue.getInput() == use.get();
                  });
      if (!fits)
        return;
      for (Operation *user : llvm::make_early_inc_range(norm.getResult().getUsers())) {
        auto prologue = cast<PrologueOp>(user);
        prologue.setKind(norm.getKind());
        prologue.setEpsilonAttr(norm.getEpsilonAttr());
        prologue.getInputMutable().assign(norm.getInput());
        Value scale = norm.getScale(), bias = norm.getBias();
        prologue.getScaleMutable().assign(scale ? ValueRange(scale) : ValueRange());
        prologue.getBiasMutable().assign(bias ? ValueRange(bias) : ValueRange());
        prologue->setLoc(FusedLoc::get(&getContext(), {norm.getLoc(), prologue.getLoc()}));
      }
      norm.erase();
      ++numFused;
    });
  }
};

} // namespace
