// SPDX-License-Identifier: Apache-2.0
//
// Observers behind what linears contract with.
//
// Problem: the Hessian of a weight is that of all it is multiplied with, and most weights share theirs: q, k and v read one
// tensor. Approach: tensors and weights that meet are connected; each component has one set of statistics.

#include "passes/Passes.h"
#include "passes/Rewrite/CopyWindows.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_INSERTOBSERVERS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct InsertObserversPass : otf::impl::InsertObserversBase<InsertObserversPass> {
  using InsertObserversBase::InsertObserversBase;

  /// Memory of one set, as arguments of the function.
  SmallVector<Value> addArguments(func::FuncOp function, WeightOp weight, int64_t channels) {
    Builder builder(&getContext());
    auto type = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
    int64_t products = channels <= maxWidth ? channels * (channels + 1) / 2 : 0;
    std::pair<StringRef, Type> parts[] = {{"rows", type({1}, builder.getI64Type())},
                                          {"moments", type({5, channels}, builder.getF64Type())},
                                          {"histogram", type({4096}, builder.getI64Type())},
                                          {"products", type({products}, builder.getF32Type())}};
    SmallVector<Value> arguments;
    for (auto [part, memory] : parts) {
      unsigned number = function.getNumArguments();
      auto name = builder.getNamedAttr("otf.name", builder.getStringAttr(weight.getSymName() + "/" + part));
      if (failed(function.insertArgument(number, memory, builder.getDictionaryAttr(name), weight.getLoc())))
        return {};
      arguments.push_back(function.getArgument(number));
    }
    return arguments;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto main = module.lookupSymbol<func::FuncOp>("main");
    if (!main || !llvm::hasSingleElement(main.getBody())) {
      module.emitError() << getArgument() << ": the module has no @main of one block";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    llvm::EquivalenceClasses<void *> met;
    llvm::SetVector<Value> observed; // in program order
    llvm::MapVector<void *, WeightOp> weights;
    DenseMap<Value, WeightOp> firstReader;
    main.walk([&](LinearOp linear) {
      auto use = linear.getWeight().getDefiningOp<UseOp>();
      auto weight = use ? symbols.lookup<WeightOp>(use.getWeight()) : WeightOp();
      auto type = cast<RankedTensorType>(linear.getInput().getType());
      if (!weight || !type.getElementType().isF32() || ShapedType::isDynamic(type.getShape().back()))
        return;
      if (linear.getWindow()) // its channels are those of a whole window
        copyWindows(linear);
      observed.insert(linear.getInput());
      firstReader.try_emplace(linear.getInput(), weight);
      weights.insert({weight.getOperation(), weight});
      met.unionSets(linear.getInput().getAsOpaquePointer(), weight.getOperation());
    });

    llvm::DenseMap<void *, SmallVector<Value>> sets; // by the leader of a component
    llvm::DenseMap<void *, WeightOp> names;
    for (auto &[key, weight] : weights) {
      void *leader = met.getLeaderValue(key);
      WeightOp &first = names.try_emplace(leader, weight).first->second;
      weight->setAttr("otf.observed", first.getSymNameAttr());
    }
    for (Value value : observed) {
      void *leader = met.getLeaderValue(value.getAsOpaquePointer());
      auto [set, isNew] = sets.try_emplace(leader);
      if (isNew) {
        set->second = addArguments(main, names.lookup(leader), cast<RankedTensorType>(value.getType()).getShape().back());
        if (set->second.empty())
          return signalPassFailure();
        ++numSets;
      }
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(value);
      ArrayRef<Value> memory = set->second;
      ObserveOp::create(builder, firstReader.lookup(value).getLoc(), value, memory[0], memory[1], memory[2], memory[3]);
      ++numObserved;
    }
  }
};

} // namespace
