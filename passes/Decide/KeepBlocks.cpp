// SPDX-License-Identifier: Apache-2.0
//
// The first and last blocks of a model stay f16.
//
// Problem: a transformer's outermost blocks suffer most from coarse codes, and no name says where
// blocks begin. Approach: blocks are what repeats (Repetition.h).

#include "passes/Decide/Readers.h"
#include "passes/Decide/Repetition.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_KEEPBLOCKS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct KeepBlocksPass : otf::impl::KeepBlocksBase<KeepBlocksPass> {
  using KeepBlocksBase::KeepBlocksBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (first < 0 || last < 0) {
      module.emitError() << getArgument() << ": first and last must not be negative, got "
                         << int64_t(first) << " and " << int64_t(last);
      return signalPassFailure();
    }
    if (first == 0 && last == 0)
      return;
    llvm::SetVector<Operation *> weights = weightsOfLinears(module);
    SmallVector<Type> shapes;
    for (Operation *weight : weights)
      shapes.push_back(cast<WeightOp>(weight).getType());
    Repetition blocks = longestRepetition<Type>(shapes);
    if (blocks.count == 0) {
      module.emitError() << getArgument() << ": finds no blocks, of which the first "
                         << int64_t(first) << " and the last " << int64_t(last)
                         << " could stay f16 (linears of equal shapes that repeat)";
      return signalPassFailure();
    }
    for (size_t block = 0; block != blocks.count; ++block) {
      if (int64_t(block) >= first && int64_t(block) + last < int64_t(blocks.count))
        continue;
      ++numBlocks;
      for (size_t i = 0; i != blocks.period; ++i) {
        auto weight = cast<WeightOp>(weights[blocks.start + block * blocks.period + i]);
        if (weight.getEncoding())
          continue;
        weight.setEncodingAttr(EncodingAttr::get(&getContext(), EncodingKind::f16, 0));
        ++numWeights;
      }
    }
  }
};

} // namespace
