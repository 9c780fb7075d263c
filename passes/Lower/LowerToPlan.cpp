// SPDX-License-Identifier: Apache-2.0
//
// The last step to a plan: what is left is checked, what is unused goes.
//
// Problem: the plan writer and two code generators read a module that may also come from text.
// Approach: one pass checks all that they rely on, so each of them can take it for granted.

#include "passes/Passes.h"
#include "passes/Stages.h"

#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_LOWERTOPLAN
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct LowerToPlanPass : otf::impl::LowerToPlanBase<LowerToPlanPass> {
  void runOnOperation() override {
    llvm::StringSet<> launched;
    getOperation().walk([&](Operation *op) {
      if (auto launch = dyn_cast<plan::LaunchOp>(op))
        launched.insert(launch.getKernel());
      else if (auto call = dyn_cast<plan::CallOp>(op))
        launched.insert(call.getKernel());
    });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<plan::KernelOp>()))
      if (!launched.contains(kernel.getSymName())) {
        kernel.erase();
        ++numDropped;
      }
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
          if (isa<plan::ViewOp, plan::WeightOp, plan::AllocOp>(op) && op.use_empty())
            op.erase();
    if (failed(verifyPlanned(getOperation())))
      signalPassFailure();
  }
};

} // namespace
