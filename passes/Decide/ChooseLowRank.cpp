// SPDX-License-Identifier: Apache-2.0
//
// Ranks of what is added to coded weights.
//
// Problem: a low rank takes the largest directions off a weight's error, and costs bits that finer
// codes could use. Approach: the same number on every weight for recipes that say so, and, gated,
// only where it takes more off than these bits would: an error falls to 2^(−2c) of its energy for c
// bits a weight more.

#include "dialects/OTF/Derived.h"
#include "passes/Decide/Readers.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSELOWRANK
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct ChooseLowRankPass : otf::impl::ChooseLowRankBase<ChooseLowRankPass> {
  using ChooseLowRankBase::ChooseLowRankBase;
  ChooseLowRankPass() = default;
  ChooseLowRankPass(ChooseLowRankOptions options, CapturedEnergy captured)
      : ChooseLowRankBase(std::move(options)), captured(std::move(captured)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (rank < 1 || rank > 4096) {
      module.emitError() << getArgument() << ": rank must be from 1 to 4096, got " << int64_t(rank);
      return signalPassFailure();
    }
    if (gated && !captured) {
      module.emitError() << getArgument()
                         << ": no model is open to measure what a rank takes off (leave out gated)";
      return signalPassFailure();
    }
    llvm::SetVector<Operation *> linears = weightsOfLinears(module);
    llvm::SmallPtrSet<Operation *, 4> others = weightsReadOtherwise(module);
    for (WeightOp weight : module.getOps<WeightOp>()) {
      if (!hasChosenCodes(weight) || !isCodedAsLinear(weight) ||
          rankOf(weight) != 0 || !linears.contains(weight) || others.contains(weight))
        continue;
      auto type = cast<RankedTensorType>(weight.getType());
      double rows = double(type.getDimSize(0)), columns = double(type.getDimSize(1));
      int64_t used = std::min({int64_t(rank), type.getDimSize(0), type.getDimSize(1)});
      if (gated) {
        llvm::Expected<double> fraction = captured(weight, used);
        if (!fraction) {
          weight.emitOpError() << "cannot be given a rank: "
                               << llvm::toString(fraction.takeError());
          return signalPassFailure();
        }
        double bits = 16 * double(used) * (rows + columns) / (rows * columns);
        if (*fraction <= 1 - std::exp2(-2 * bits)) {
          ++numRefused;
          continue;
        }
      }
      weight->setDiscardableAttr(kRankAttribute,
                                 IntegerAttr::get(IntegerType::get(&getContext(), 64), used));
      ++numWeights;
    }
  }

  CapturedEnergy captured;
};

} // namespace

std::unique_ptr<Pass> otf::createChooseLowRank(ChooseLowRankOptions options,
                                               CapturedEnergy captured) {
  return std::make_unique<ChooseLowRankPass>(std::move(options), std::move(captured));
}
