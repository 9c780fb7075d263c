// SPDX-License-Identifier: Apache-2.0
//
// Linears read (x − c) / s where their weights are coded times s.
//
// Problem: dividing an input for each of its readers would cost more than it should, and a unit
// that is not what it is elsewhere would show in the answers only. Approach: one program for each
// input and unit, which fusion takes into what makes the input, or a norm's own gain and bias; and
// before any, a product is computed as the plan will.

#include "passes/Passes.h"
#include "passes/Rewrite/Derive.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_SMOOTH
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

constexpr double kTolerance = 2e-6; // of norms, as for rotations
constexpr int kTrials = 8;

SmallVector<float> values(Attribute attribute) {
  auto dense = dyn_cast_or_null<DenseFPElementsAttr>(attribute);
  return dense ? llvm::to_vector(dense.getValues<float>()) : SmallVector<float>();
}

/// The largest error of w · x computed as (w s) · ((x − c) / s) + w · c, relative to the norms of
/// both sides in these units; inputs are as far from c as s says.
double smoothingError(ArrayRef<float> unit, ArrayRef<float> center) {
  std::mt19937 random(1); // whose numbers the standard fixes
  auto number = [&] { return float(double(random()) / 2147483648.0 - 1); };
  double worst = 0;
  for (int trial = 0; trial != kTrials; ++trial) {
    double exact = 0, products = 0, weights = 0, inputs = 0;
    float sum = 0;
    for (size_t k = 0; k != unit.size(); ++k) {
      float c = center.empty() ? 0.0f : center[k], w = number() / unit[k],
            x = c + number() * unit[k];
      exact += double(w) * double(x);
      products += double(w) * double(c);
      sum += (w * unit[k]) * ((x - c) / unit[k]);
      // In the coordinates of the plan, where all terms are alike.
      weights += double(w) * w * unit[k] * unit[k];
      inputs += (double(x) * x + double(c) * c) / unit[k] / unit[k];
    }
    double error = std::abs(double(sum + float(products)) - exact) / std::sqrt(weights * inputs);
    worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
  }
  return worst;
}

struct SmoothPass : otf::impl::SmoothBase<SmoothPass> {
  LogicalResult prove(WeightOp weight) {
    auto type = cast<RankedTensorType>(weight.getType());
    SmallVector<float> unit = values(weight->getAttr(kUnitAttribute)),
                       center = values(weight->getAttr(kCenterAttribute)),
                       products = values(weight->getAttr(kCenterProductsAttribute));
    if (type.getRank() != 2 || int64_t(unit.size()) != type.getDimSize(1) ||
        (!center.empty() && center.size() != unit.size()) ||
        (center.empty() ? !products.empty() : int64_t(products.size()) != type.getDimSize(0)))
      return weight.emitOpError() << "has units and a center that do not fit it: " << kUnitAttribute
                                  << " and " << kCenterAttribute << " have an element a column, "
                                  << kCenterProductsAttribute << " one a row";
    double error = smoothingError(unit, center);
    if (error <= kTolerance)
      return success();
    return weight.emitOpError() << "cannot be made relative: products with its units are off by "
                                << error << " of their norms, and " << kTolerance
                                << " is allowed (a channel varies too little against its mean; "
                                   "leave the center or use a smaller power)";
  }

  /// A vector of the plan, one for all that read equal values.
  Value vector(SymbolTable &symbols, OpBuilder &builder, Location l, WeightOp from,
               Attribute content, const Twine &suffix) {
    WeightOp &made = vectors[content];
    if (!made) {
      Builder b(&getContext());
      made = deriveWeight(symbols, from, from.getSymName() + suffix,
                          cast<DenseFPElementsAttr>(content).getType().getShape(),
                          {b.getNamedAttr("part", b.getStringAttr("values")),
                           b.getNamedAttr("of", FlatSymbolRefAttr::get(from.getSymNameAttr()))});
      made->setDiscardableAttr(kValuesAttribute, content);
    }
    return useWeight(builder, l, made);
  }

  /// (gain or bias of a norm − c) / s, as a vector of the plan; what the norm has none of is
  /// `otherwise`.
  Value quotient(SymbolTable &symbols, OpBuilder &builder, Location l, WeightOp from, Value vector,
                 float otherwise, Attribute center, StringRef suffix) {
    Builder b(&getContext());
    SmallVector<NamedAttribute> derived{b.getNamedAttr("part", b.getStringAttr("quotient")),
                                        b.getNamedAttr("unit", from->getAttr(kUnitAttribute)),
                                        b.getNamedAttr("otherwise", b.getF32FloatAttr(otherwise))};
    if (vector)
      derived.push_back(b.getNamedAttr("of", vector.getDefiningOp<UseOp>().getWeightAttr()));
    if (center)
      derived.push_back(b.getNamedAttr("center", center));
    WeightOp &made = quotients[b.getDictionaryAttr(derived)];
    if (!made)
      made = deriveWeight(symbols, from, from.getSymName() + suffix,
                          {cast<RankedTensorType>(from.getType()).getDimSize(1)}, derived);
    return useWeight(builder, l, made);
  }

  /// The norm that gives relative rows at once, if a norm with vectors of weights makes the input.
  Value fold(SymbolTable &symbols, OpBuilder &builder, Location l, WeightOp weight, Value input,
             Attribute center) {
    auto norm = input.getDefiningOp<NormOp>();
    auto isWeight = [](Value vector) {
      return !vector || (vector.getDefiningOp<UseOp>() &&
                         cast<RankedTensorType>(vector.getType()).getRank() == 1);
    };
    if (!norm || !isWeight(norm.getScale()) || !isWeight(norm.getBias()))
      return {};
    Value gain = quotient(symbols, builder, l, weight, norm.getScale(), 1, Attribute(), ".gain"),
          bias;
    if (norm.getBias() || center)
      bias = quotient(symbols, builder, l, weight, norm.getBias(), 0, center, ".shift");
    ++numFolded;
    return NormOp::create(builder, norm.getLoc(), norm.getType(), norm.getKindAttr(),
                          norm.getInput(), gain, bias, norm.getEpsilonAttr());
  }

  void smooth(SymbolTable &symbols, LinearOp linear, WeightOp weight) {
    Location l = linear.getLoc();
    Attribute unit = weight->getAttr(kUnitAttribute), center = weight->getAttr(kCenterAttribute);
    Value input = linear.getInput();
    Value &relative = inputs[{linear->getBlock(), input.getAsOpaquePointer(),
                              unit.getAsOpaquePointer(), center.getAsOpaquePointer()}];
    OpBuilder builder(linear);
    if (relative) {
      ++numShared;
    } else if (Value folded = fold(symbols, builder, l, weight, input, center)) {
      relative = folded;
      ++numUnits;
    } else {
      Value units = vector(symbols, builder, l, weight, unit, ".unit");
      Value means = center ? vector(symbols, builder, l, weight, center, ".center") : Value();
      relative = generateTensor(
          builder, l, cast<RankedTensorType>(input.getType()),
          [&](OpBuilder &b, ValueRange at) -> Value {
            Value x = tensor::ExtractOp::create(b, l, input, at);
            if (means)
              x = arith::SubFOp::create(b, l, x, tensor::ExtractOp::create(b, l, means, at.back()));
            return arith::DivFOp::create(b, l, x,
                                         tensor::ExtractOp::create(b, l, units, at.back()));
          });
      ++numUnits;
    }
    linear.getInputMutable().assign(relative);
    if (!center)
      return;
    Value products = vector(symbols, builder, l, weight, weight->getAttr(kCenterProductsAttribute),
                            ".center_products");
    builder.setInsertionPointAfter(linear);
    Value sum =
        generateTensor(builder, l, cast<RankedTensorType>(linear.getType()),
                       [&](OpBuilder &b, ValueRange at) -> Value {
                         Value coded = tensor::ExtractOp::create(b, l, linear.getResult(), at);
                         return arith::AddFOp::create(
                             b, l, coded, tensor::ExtractOp::create(b, l, products, at.back()));
                       });
    linear.getResult().replaceUsesWithIf(sum, [&](OpOperand &use) {
      return !sum.getDefiningOp()->isProperAncestor(use.getOwner());
    });
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    inputs.clear();
    vectors.clear();
    quotients.clear();
    bool valid = true;
    for (auto weight : getOperation().getOps<WeightOp>())
      if (weight->hasAttr(kUnitAttribute))
        valid &= succeeded(prove(weight));
    SmallVector<std::pair<LinearOp, WeightOp>>
        found; // in program order, so the first reader's place is before all others
    getOperation().walk([&](UseOp use) {
      auto weight = symbols.lookup<WeightOp>(use.getWeight());
      if (!weight->hasAttr(kUnitAttribute))
        return;
      for (Operation *user : use->getUsers()) {
        auto linear = dyn_cast<LinearOp>(user);
        if (linear && !linear.getWindow() &&
            getElementTypeOrSelf(linear.getInput().getType()).isF32())
          continue;
        user->emitOpError() << "reads @" << use.getWeight()
                            << ", which has units; only linears of f32 without window can";
        valid = false;
      }
    });
    if (!valid)
      return signalPassFailure();
    getOperation().walk([&](LinearOp linear) {
      if (WeightOp weight = weightOf(symbols, linear); weight && weight->hasAttr(kUnitAttribute))
        found.push_back({linear, weight});
    });
    for (auto [linear, weight] : found)
      smooth(symbols, linear, weight);
    getOperation().walk([](NormOp norm) { // all of whose readers are relative now
      if (norm->use_empty())
        norm.erase();
    });
  }

  std::map<std::tuple<Block *, void *, const void *, const void *>, Value> inputs;
  llvm::DenseMap<Attribute, WeightOp> vectors, quotients;
};

} // namespace
