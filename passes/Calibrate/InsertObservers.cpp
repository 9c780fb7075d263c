// SPDX-License-Identifier: Apache-2.0
//
// Observers behind what linears contract with.
//
// Problem: the Hessian of a weight is that of all it is multiplied with, and most weights share theirs: q, k and v read one
// tensor. Approach: tensors and weights that meet are connected; each component has one set of statistics.
//
// What goes into caches and which experts tokens choose are observed by the same op, for their ranges and counts: the latter as
// ones and zeros, whose sums are counts.

#include "dialects/OTF/Observed.h"
#include "passes/Passes.h"
#include "passes/Rewrite/CopyWindows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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
  SmallVector<Value> addArguments(func::FuncOp function, const Twine &set, Location location, int64_t channels, bool hasProducts) {
    Builder builder(&getContext());
    auto type = [](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
    int64_t products = hasProducts && channels <= maxWidth ? channels * (channels + 1) / 2 : 0;
    std::pair<StringRef, Type> parts[] = {{"rows", type({1}, builder.getI64Type())},
                                          {"moments", type({5, channels}, builder.getF64Type())},
                                          {"histogram", type({4096}, builder.getI64Type())},
                                          {"products", type({products}, builder.getF32Type())}};
    SmallVector<Value> arguments;
    for (auto [part, memory] : parts) {
      unsigned number = function.getNumArguments();
      auto name = builder.getNamedAttr("otf.name", builder.getStringAttr(set + "/" + part));
      if (failed(function.insertArgument(number, memory, builder.getDictionaryAttr(name), location)))
        return {};
      arguments.push_back(function.getArgument(number));
    }
    return arguments;
  }

  /// Observes a value that no linear reads. Its set is its own, and has no products.
  LogicalResult observe(func::FuncOp function, const Twine &name, Location location, Value value) {
    std::string set = name.str();
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.getElementType().isF32() || type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1) || llvm::is_contained(sets, set))
      return success();
    sets.push_back(set);
    SmallVector<Value> memory = addArguments(function, set, location, type.getShape().back(), /*hasProducts=*/false);
    if (memory.empty())
      return failure();
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(value);
    ObserveOp::create(builder, location, value, memory[0], memory[1], memory[2], memory[3]);
    ++numObserved;
    ++numSets;
    return success();
  }

  /// Of tokens x choices, tokens x experts: 1 where a token has chosen the expert, else 0.
  Value chosen(tensor::GenerateOp choice, int64_t experts) {
    Location l = choice.getLoc();
    auto type = cast<RankedTensorType>(choice.getType());
    SmallVector<otf::Size> sizes = sizesOf(type);
    sizes.back() = experts;
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(choice);
    SmallVector<Value> extents;
    if (!sizes.front().isConstant())
      extents.push_back(SizeOp::create(builder, l, sizes.front()));
    auto body = [&](OpBuilder &b, Location, ValueRange at) {
      Value sum = arith::ConstantOp::create(b, l, b.getF32FloatAttr(0)), one = arith::ConstantOp::create(b, l, b.getF32FloatAttr(1));
      Value zero = sum, expert = arith::IndexCastOp::create(b, l, b.getI64Type(), at[1]);
      for (int64_t place = 0; place != type.getShape().back(); ++place) {
        Value its = tensor::ExtractOp::create(b, l, choice, ValueRange{at[0], arith::ConstantIndexOp::create(b, l, place).getResult()});
        Value same = arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, its, expert);
        sum = arith::AddFOp::create(b, l, sum, arith::SelectOp::create(b, l, same, one, zero).getResult());
      }
      tensor::YieldOp::create(b, l, sum);
    };
    return tensor::GenerateOp::create(builder, l, tensorType(builder.getF32Type(), sizes), extents, body);
  }

  LogicalResult observeValues(func::FuncOp main) {
    SmallVector<AppendOp> appends;
    SmallVector<tensor::GenerateOp> choices;
    for (Operation &op : main.getBody().front()) {
      if (auto append = dyn_cast<AppendOp>(op))
        appends.push_back(append);
      if (auto generate = dyn_cast<tensor::GenerateOp>(op); generate && op.hasAttrOfType<IntegerAttr>(kExpertsAttribute))
        choices.push_back(generate);
    }
    for (AppendOp append : appends) {
      auto state = append.getPast().getDefiningOp<StateOp>();
      if (state && failed(observe(main, kCacheSet + state.getCache(), append.getLoc(), append.getUpdate())))
        return failure();
    }
    for (tensor::GenerateOp choice : choices) {
      auto name = dyn_cast<NameLoc>(choice.getLoc());
      if (name && failed(observe(main, kExpertsSet + name.getName().getValue(), choice.getLoc(),
                                 chosen(choice, choice->getAttrOfType<IntegerAttr>(kExpertsAttribute).getInt()))))
        return failure();
    }
    if (!sets.empty())
      getOperation()->setAttr(kObservedValuesAttribute, Builder(&getContext()).getStrArrayAttr(
                                                            SmallVector<StringRef>(sets.begin(), sets.end())));
    return success();
  }

  void runOnOperation() override {
    sets.clear();
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

    llvm::DenseMap<void *, SmallVector<Value>> memories; // by the leader of a component
    llvm::DenseMap<void *, WeightOp> names;
    for (auto &[key, weight] : weights) {
      void *leader = met.getLeaderValue(key);
      WeightOp &first = names.try_emplace(leader, weight).first->second;
      weight->setAttr(kObservedAttribute, first.getSymNameAttr());
    }
    for (Value value : observed) {
      void *leader = met.getLeaderValue(value.getAsOpaquePointer());
      auto [set, isNew] = memories.try_emplace(leader);
      if (isNew) {
        WeightOp first = names.lookup(leader);
        set->second = addArguments(main, first.getSymName(), first.getLoc(), cast<RankedTensorType>(value.getType()).getShape().back(),
                                   /*hasProducts=*/true);
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
    if (failed(observeValues(main)))
      signalPassFailure();
  }

  std::vector<std::string> sets; // of no weight
};

} // namespace
