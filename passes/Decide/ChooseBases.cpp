// SPDX-License-Identifier: Apache-2.0
//
// Bases that weights share.
//
// Problem: layers of one kind may have something in common, which would have to be stored once.
// Approach: kinds are the places in a block; all weights of a kind get one base by name, and what
// each differs from it is left to a low rank. Whether that is much is not asked.

#include "dialects/OTF/Derived.h"
#include "passes/Decide/Readers.h"
#include "passes/Decide/Repetition.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEBASES
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct ChooseBasesPass : otf::impl::ChooseBasesBase<ChooseBasesPass> {
  using ChooseBasesBase::ChooseBasesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (rank < 1 || rank > 4096 || sweeps < 0 || sweeps > 100) {
      module.emitError() << getArgument()
                         << ": rank must be from 1 to 4096 and sweeps from 0 to 100, got "
                         << int64_t(rank) << " and " << int64_t(sweeps);
      return signalPassFailure();
    }
    llvm::SetVector<Operation *> weights = weightsOfLinears(module);
    llvm::SmallPtrSet<Operation *, 4> others = weightsReadOtherwise(module);
    SmallVector<Type> shapes;
    for (Operation *weight : weights)
      shapes.push_back(cast<WeightOp>(weight).getType());
    Repetition blocks = longestRepetition<Type>(shapes);
    if (blocks.count == 0) {
      module.emitError() << getArgument()
                         << ": finds no blocks whose weights could share a base (linears of equal "
                            "shapes that repeat)";
      return signalPassFailure();
    }
    auto number = [&](int64_t value) {
      return IntegerAttr::get(IntegerType::get(&getContext(), 64), value);
    };
    for (size_t i = 0; i != blocks.period; ++i) {
      SmallVector<WeightOp> kind;
      for (size_t block = 0; block != blocks.count; ++block) {
        auto weight = cast<WeightOp>(weights[blocks.start + block * blocks.period + i]);
        bool fits = weight.getEncoding() && weight.getEncoding()->getKind() == EncodingKind::f16 &&
                    isCodedAsLinear(weight) && !others.contains(weight) &&
                    !weight->hasAttr(kBaseAttribute) && rankOf(weight) == 0;
        if (fits)
          kind.push_back(weight);
      }
      if (kind.size() < 2)
        continue;
      ++numBases;
      auto name = StringAttr::get(&getContext(), kind.front().getSymName() + ".base");
      for (WeightOp weight : kind) {
        ArrayRef<int64_t> shape = cast<RankedTensorType>(weight.getType()).getShape();
        weight->setDiscardableAttr(kBaseAttribute, name);
        weight->setDiscardableAttr(kRankAttribute,
                                   number(std::min({int64_t(rank), shape[0], shape[1]})));
        weight->setDiscardableAttr(kSweepsAttribute, number(sweeps));
        ++numWeights;
      }
    }
  }
};

} // namespace
