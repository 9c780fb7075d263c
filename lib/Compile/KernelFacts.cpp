// SPDX-License-Identifier: Apache-2.0
#include "lib/Compile/KernelFacts.h"

using namespace mlir;

namespace otf {

FailureOr<KernelFacts> KernelFacts::of(plan::KernelOp kernel) {
  KernelFacts facts;
  for (TypeRange types : {TypeRange(kernel.getArgumentTypes()), TypeRange(kernel.getResultTypes())})
    facts.hasState |= llvm::any_of(types, llvm::IsaPred<StateType>);
  bool batchKnown = false;
  kernel.getBody().walk([&](Operation *op) {
    if (auto append = dyn_cast<AppendOp>(op)) {
      SmallVector<Size> shape = sizesOf(cast<RankedTensorType>(append.getUpdate().getType()));
      facts.batch = shape[0];
      batchKnown = true;
      if (auto argument = dyn_cast<BlockArgument>(append.getPast()))
        facts.appended[argument.getArgNumber()] = shape[append.getPositionsFirst() ? 1 : 2];
    }
    if (auto embedding = dyn_cast<EmbeddingOp>(op))
      if (auto argument = dyn_cast<BlockArgument>(embedding.getIds()))
        facts.limits[argument.getArgNumber()] = embedding.getTable().getType().getRows();
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      facts.batch = sizesOf(cast<RankedTensorType>(attention.getQuery().getType()))[0];
      batchKnown = true;
    }
  });
  if (facts.hasState && !batchKnown)
    return kernel.emitOpError() << "has a state but neither appends to it nor attends with it";
  for (const std::string &symbol : kernel.getSymbols()) {
    unsigned number;
    if (!StringRef(symbol).starts_with("d") ||
        StringRef(symbol).drop_front().getAsInteger(10, number)) {
      // The reserved symbols are not numbered.
      if (symbol == "past" || symbol == "capacity")
        continue;
      return kernel.emitOpError() << "uses the size '" << symbol << "', which is none of d0, d1, …";
    }
    facts.sizes = std::max(facts.sizes, size_t(number) + 1);
  }
  return facts;
}

} // namespace otf
