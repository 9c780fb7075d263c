// SPDX-License-Identifier: Apache-2.0
//
// The first and last blocks of a model stay f16.
//
// Problem: a transformer's outermost blocks suffer most from coarse codes, and no name says where
// blocks begin. Approach: blocks are what repeats. The shapes of the weights that linears read, in
// program order, are a word over an alphabet of shapes; its longest part of the form b b b … is the
// stack of blocks, and b one of them.

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

struct Repetition {
  size_t start = 0, period = 0, count = 0;
};

/// The longest repetition in `word`; of equal ones that with the shortest period.
template <typename T> Repetition longestRepetition(ArrayRef<T> word) {
  Repetition best;
  for (size_t period = 1; 2 * period <= word.size(); ++period) {
    size_t run = 0; // places before `i` that are like those a period later
    for (size_t i = 0; i + period <= word.size(); ++i) {
      bool like = i + period < word.size() && word[i] == word[i + period];
      if (like) {
        ++run;
        continue;
      }
      size_t count = run / period + 1;
      if (count > 1 && count * period > best.count * best.period)
        best = {i - run, period, count};
      run = 0;
    }
  }
  return best;
}

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
    SymbolTable symbols(module);
    llvm::SetVector<Operation *> weights;
    module.walk([&](LinearOp linear) {
      if (auto use = linear.getWeight().getDefiningOp<UseOp>())
        weights.insert(symbols.lookup<WeightOp>(use.getWeight()));
    });
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
