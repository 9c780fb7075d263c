// SPDX-License-Identifier: Apache-2.0
//
// Caches take the element type that otf-choose-caches decided.

#include "dialects/OTF/Caches.h"
#include "passes/Passes.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_ENCODECACHES
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct EncodeCachesPass : otf::impl::EncodeCachesBase<EncodeCachesPass> {
  using EncodeCachesBase::EncodeCachesBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    getOperation().walk([&](StateOp state) {
      auto cache = symbols.lookup<CacheOp>(state.getCache());
      auto held = cache ? cache->getAttrOfType<TypeAttr>(kHeldAttribute) : TypeAttr();
      if (!held)
        return;
      StateType old = state.getType();
      setType(state.getResult(), StateType::get(&getContext(), old.getHeads(), old.getWidth(), held.getValue()));
    });
    for (CacheOp cache : getOperation().getOps<CacheOp>())
      if (auto held = cache->getAttrOfType<TypeAttr>(kHeldAttribute)) {
        auto old = cast<StateType>(cache.getType());
        cache.setTypeAttr(TypeAttr::get(StateType::get(&getContext(), old.getHeads(), old.getWidth(), held.getValue())));
        cache->removeDiscardableAttr(kHeldAttribute);
        ++numCaches;
      }
  }

private:
  /// And of what it is after appending.
  void setType(Value state, StateType type) {
    state.setType(type);
    for (Operation *user : state.getUsers())
      if (auto append = dyn_cast<AppendOp>(user); append && append.getPast() == state)
        setType(append.getResult(), type);
  }
};

} // namespace
