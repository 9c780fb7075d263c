// SPDX-License-Identifier: Apache-2.0
//
// Norms are computed by the prologues that read them.
//
// Problem: a norm alone writes a row of floats that the prologue reads again at once.
// Approach: the prologue normalises, and rotates, the row while it has it. Only when nothing else needs the
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
  /// Before norms, since a rotation comes after one.
  void fuse(RotateOp rotate) {
    bool fits = !rotate.getResult().use_empty() && llvm::all_of(rotate.getResult().getUses(), [](OpOperand &use) {
      auto prologue = dyn_cast<PrologueOp>(use.getOwner());
      return prologue && prologue.getInput() == use.get() && prologue.getKind() == NormKind::none && !prologue.getRotation() &&
             !prologue.getGrid() && !prologue.getColumns();
    });
    if (!fits)
      return;
    for (Operation *user : llvm::make_early_inc_range(rotate.getResult().getUsers())) {
      auto prologue = cast<PrologueOp>(user);
      prologue.setRotationAttr(rotate.getRotationAttr());
      prologue.getInputMutable().assign(rotate.getInput());
    }
    rotate.erase();
    ++numRotations;
  }

  void runOnOperation() override {
    getOperation().walk([&](RotateOp rotate) { fuse(rotate); });
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
