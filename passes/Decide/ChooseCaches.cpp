// SPDX-License-Identifier: Apache-2.0
//
// What sessions hold keys and values in.
//
// Problem: at some thousand positions a token reads more of the cache than of the weights. Approach:
// rows of half floats or of int8 with a scale, which append makes and attention reads. Any other
// reader would read other bytes than it knows, so a model that has one is refused.

#include "dialects/OTF/Caches.h"
#include "passes/Passes.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSECACHES
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct ChooseCachesPass : otf::impl::ChooseCachesBase<ChooseCachesPass> {
  using ChooseCachesBase::ChooseCachesBase;

  /// Whether append and attention alone read what the state holds, now and after the step.
  LogicalResult check(StateOp state) {
    SmallVector<Value> values{state.getResult()};
    while (!values.empty()) {
      Value value = values.pop_back_val();
      for (Operation *user : value.getUsers()) {
        if (auto append = dyn_cast<AppendOp>(user)) {
          values.push_back(append.getResult());
          continue;
        }
        auto attention = dyn_cast<AttentionOp>(user);
        if (attention && isa<StateType>(attention.getKey().getType()) && isa<StateType>(attention.getValue().getType()))
          continue;
        return user->emitError() << "reads cache @" << state.getCache() << (attention ? " beside keys or values that are in none" : " outside attention")
                                 << ", so the cache cannot be held as " << type << " (leave \"cache\" out of the recipe)";
      }
    }
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Type held;
    if (type == "f16")
      held = Float16Type::get(&getContext());
    else if (type == "int8")
      held = IntegerType::get(&getContext(), 8);
    if (!held) {
      module.emitError() << getArgument() << ": type must be f16 or int8, got \"" << type << "\"";
      return signalPassFailure();
    }
    if (module.getOps<CacheOp>().empty()) {
      module.emitError() << "the model has no cache of keys and values to hold as " << type << " (leave \"cache\" out of the recipe)";
      return signalPassFailure();
    }
    bool fine = true;
    module.walk([&](StateOp state) { fine = fine && succeeded(check(state)); });
    if (!fine)
      return signalPassFailure();
    for (CacheOp cache : module.getOps<CacheOp>()) {
      if (!cache.getType().getElementType().isF32())
        continue;
      cache->setDiscardableAttr(kHeldAttribute, TypeAttr::get(held));
      ++numCaches;
    }
  }
};

} // namespace
