// SPDX-License-Identifier: Apache-2.0
//
// Equal operations become one.
//
// Problem: MLIR's own pass hashes an operation without its regions, so every tensor.generate of one type falls into one
// bucket and is compared with all before it: a graph of 20,000 nodes took minutes. Approach: the same walk, with a hash
// that goes through regions, where a value of the region counts by its place in it.

#include "passes/Passes.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_MERGEEQUAL
#include "passes/Passes.h.inc"
} // namespace otf

namespace {

class Hasher {
public:
  size_t hash(Operation *op) {
    // What stands above is itself: equal operations before this one are already one.
    size_t code = OperationEquivalence::computeHash(
        op, [&](Value value) { return number(value); }, [&](Value value) { return define(value); },
        OperationEquivalence::IgnoreLocations);
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (BlockArgument argument : block.getArguments())
          code = llvm::hash_combine(code, define(argument), argument.getType());
        for (Operation &inner : block)
          code = llvm::hash_combine(code, hash(&inner));
      }
    return code;
  }

private:
  llvm::hash_code number(Value value) {
    auto it = inside.find(value);
    return it == inside.end() ? llvm::hash_code(size_t(llvm::hash_value(value.getAsOpaquePointer())))
                              : llvm::hash_code(it->second);
  }
  llvm::hash_code define(Value value) { return inside.try_emplace(value, inside.size()).first->second; }

  llvm::DenseMap<Value, size_t> inside;
};

/// The operations that dominate a place, by hash; leaving a block forgets its own.
class Seen {
public:
  Operation *find(Operation *op, size_t hash) {
    auto bucket = byHash.find(hash);
    if (bucket == byHash.end())
      return nullptr;
    for (Operation *earlier : bucket->second)
      if (OperationEquivalence::isEquivalentTo(op, earlier, OperationEquivalence::IgnoreLocations))
        return earlier;
    return nullptr;
  }
  void add(Operation *op, size_t hash) {
    byHash[hash].push_back(op);
    order.push_back(hash);
  }
  size_t mark() const { return order.size(); }
  void forget(size_t mark) {
    for (; order.size() > mark; order.pop_back())
      byHash[order.back()].pop_back();
  }

private:
  llvm::DenseMap<size_t, SmallVector<Operation *, 1>> byHash;
  SmallVector<size_t> order;
};

struct MergeEqualPass : otf::impl::MergeEqualBase<MergeEqualPass> {
  void merge(Operation *op, Seen &seen) {
    if (isOpTriviallyDead(op))
      return op->erase();
    for (Region &region : op->getRegions()) {
      if (op->hasTrait<OpTrait::IsIsolatedFromAbove>()) {
        Seen fresh;
        merge(region, fresh);
      } else {
        merge(region, seen);
      }
    }
    bool isOne = llvm::all_of(op->getRegions(), [](Region &r) { return r.empty() || r.hasOneBlock(); });
    if (op->hasTrait<OpTrait::IsTerminator>() || !isOne || op->getNumResults() == 0 || !isMemoryEffectFree(op))
      return;
    size_t hash = Hasher().hash(op);
    Operation *earlier = seen.find(op, hash);
    if (!earlier)
      return seen.add(op, hash);
    op->replaceAllUsesWith(earlier);
    op->erase();
    ++numMerged;
  }

  void merge(Region &region, Seen &seen) {
    for (Block &block : region) {
      size_t mark = seen.mark();
      for (Operation &op : llvm::make_early_inc_range(block))
        merge(&op, seen);
      seen.forget(mark);
    }
  }

  void runOnOperation() override {
    Seen seen;
    merge(getOperation().getBodyRegion(), seen);
  }
};

} // namespace
