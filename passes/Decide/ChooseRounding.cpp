// SPDX-License-Identifier: Apache-2.0
//
// Codes that make up for each other.
//
// Problem: the nearest code is the best for a weight alone, and not for what a linear computes from inputs that go
// together. Approach: mark the weights whose codes are to be chosen with feedback; whoever encodes them has the statistics.

#include "dialects/OTF/Derived.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEROUNDING
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct ChooseRoundingPass : otf::impl::ChooseRoundingBase<ChooseRoundingPass> {
  using ChooseRoundingBase::ChooseRoundingBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!(damping > 0.0 && damping <= 1.0)) {
      module.emitError() << getArgument() << ": damping must be above 0 and at most 1, got " << damping;
      return signalPassFailure();
    }
    for (WeightOp weight : module.getOps<WeightOp>()) {
      if (!hasChosenCodes(weight) || !isCodedAsLinear(weight) ||
          weight.getFeedback())
        continue;
      weight.setFeedback(APFloat(double(damping)));
      ++numWeights;
    }
  }
};

} // namespace
