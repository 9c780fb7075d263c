// SPDX-License-Identifier: Apache-2.0
//
// y = W x + P (Q x).
//
// Problem: what coding loses is larger in some directions of the output than in others. Approach:
// the largest are kept, as two thin matrices beside the coded one. They are weights like any other,
// f16, but no file has them: whoever writes the plan makes them from what coding lost. They read
// what the linear reads before that is quantized. The linear comes last, so that it can take the
// sum into its epilogue.
//
// With a base that weights share, W is the base, and P Q is what this weight differs from it.

#include "passes/Passes.h"
#include "passes/Rewrite/Derive.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_ADDLOWRANK
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct AddLowRankPass : otf::impl::AddLowRankBase<AddLowRankPass> {
  struct Factors {
    WeightOp left, right;
  };

  Factors factorsOf(SymbolTable &symbols, WeightOp weight, WeightOp base) {
    auto [it, fresh] = factors.try_emplace(weight);
    if (!fresh)
      return it->second;
    auto type = cast<RankedTensorType>(weight.getType());
    int64_t rank = rankOf(weight);
    Builder builder(&getContext());
    auto derived = [&](StringRef part) {
      SmallVector<NamedAttribute> attributes{
          builder.getNamedAttr("part", builder.getStringAttr(base ? "base_" + part : part)),
          builder.getNamedAttr("of", FlatSymbolRefAttr::get(weight.getSymNameAttr()))};
      if (base)
        attributes.push_back(
            builder.getNamedAttr("base", FlatSymbolRefAttr::get(base.getSymNameAttr())));
      return attributes;
    };
    it->second.left = deriveWeight(symbols, weight, weight.getSymName() + ".left",
                                   {type.getDimSize(0), rank}, derived("left"));
    it->second.right = deriveWeight(symbols, weight, weight.getSymName() + ".right",
                                    {rank, type.getDimSize(1)}, derived("right"));
    return it->second;
  }

  /// The base that a weight shares, made at the first that asks.
  WeightOp baseOf(SymbolTable &symbols, WeightOp weight) {
    auto name = weight->getAttrOfType<StringAttr>(kBaseAttribute);
    if (!name)
      return {};
    WeightOp &base = bases[name];
    if (base)
      return base;
    Builder builder(&getContext());
    SmallVector<Attribute> members;
    for (auto other : getOperation().getOps<WeightOp>())
      if (other->getAttr(kBaseAttribute) == name)
        members.push_back(FlatSymbolRefAttr::get(other.getSymNameAttr()));
    base = deriveWeight(symbols, weight, name.getValue(),
                        cast<RankedTensorType>(weight.getType()).getShape(),
                        {builder.getNamedAttr("part", builder.getStringAttr("base")),
                         builder.getNamedAttr("of", builder.getArrayAttr(members))});
    ++numBases;
    return base;
  }

  void add(SymbolTable &symbols, LinearOp linear, WeightOp weight) {
    WeightOp base = baseOf(symbols, weight);
    auto [left, right] = factorsOf(symbols, weight, base);
    OpBuilder builder(linear);
    Location l = linear.getLoc();
    auto type = cast<RankedTensorType>(linear.getType());
    SmallVector<otf::Size> thin = sizesOf(type);
    thin.back() = rankOf(weight);
    Value q = useWeight(builder, l, right);
    Value inner = LinearOp::create(builder, l, tensorType(builder.getF32Type(), thin),
                                   linear.getInput(), q, Value());
    Value p = useWeight(builder, l, left);
    Value back = LinearOp::create(builder, l, type, inner, p, Value());
    if (base)
      linear.getWeightMutable().assign(useWeight(builder, l, base));
    builder.setInsertionPointAfter(linear);
    Value sum = generateTensor(builder, l, type, [&](OpBuilder &b, ValueRange at) -> Value {
      Value coded = tensor::ExtractOp::create(b, l, linear.getResult(), at);
      return arith::AddFOp::create(b, l, coded, tensor::ExtractOp::create(b, l, back, at));
    });
    linear.getResult().replaceUsesWithIf(sum, [&](OpOperand &use) {
      return !sum.getDefiningOp()->isProperAncestor(use.getOwner());
    });
    ++numLinears;
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    factors.clear();
    bases.clear();
    SmallVector<std::pair<LinearOp, WeightOp>> found;
    bool valid = true;
    getOperation().walk([&](LinearOp linear) {
      WeightOp weight = weightOf(symbols, linear);
      if (!weight || rankOf(weight) == 0)
        return;
      bool reads = getElementTypeOrSelf(linear.getInput().getType()).isF32() &&
                   !linear.getWindow() && linear.getEpilogue().empty();
      if (!reads) {
        linear.emitOpError() << "multiplies by @" << weight.getSymName() << ", whose rank of "
                             << rankOf(weight)
                             << " is for linears of f32 without window and epilogue (run "
                                "otf-add-low-rank before otf-encode)";
        valid = false;
      }
      found.push_back({linear, weight});
    });
    if (!valid)
      return signalPassFailure();
    for (auto [linear, weight] : found)
      add(symbols, linear, weight);
  }

  llvm::MapVector<Operation *, Factors> factors;
  llvm::MapVector<StringAttr, WeightOp> bases;
};

} // namespace
