// SPDX-License-Identifier: Apache-2.0
//
// A derived weight's blob is of f32 elements at the beginning of the first file, which nobody
// reads.

#include "passes/Rewrite/Derive.h"

using namespace mlir;

namespace otf {

WeightOp deriveWeight(SymbolTable &symbols, WeightOp from, const Twine &name,
                      ArrayRef<int64_t> shape, ArrayRef<NamedAttribute> derived) {
  OpBuilder builder(from);
  builder.setInsertionPointAfter(from);
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  auto blob = BlobAttr::get(builder.getContext(), 0, 0, type.getNumElements() * 4,
                            builder.getF32Type(), /*transposed=*/false);
  bool isMatrix = shape.size() == 2;
  StringAttr symbol = builder.getStringAttr(name);
  auto weight = WeightOp::create(
      builder, NameLoc::get(symbol), symbol, TypeAttr::get(type), blob,
      /*scale=*/FlatSymbolRefAttr(),
      isMatrix ? EncodingAttr::get(builder.getContext(), EncodingKind::f16, 0) : EncodingAttr(),
      /*outliers=*/OutliersAttr(), from.getVocabulary() ? builder.getUnitAttr() : UnitAttr(),
      /*given=*/GivenAttr(),
      /*keeps_given=*/UnitAttr(), /*float_activations=*/UnitAttr(), /*feedback=*/FloatAttr(),
      /*rotation=*/RotationAttr(), /*joint_fit=*/UnitAttr());
  weight->setDiscardableAttr(kDerivedAttribute, builder.getDictionaryAttr(derived));
  symbols.insert(weight);
  return weight;
}

Value useWeight(OpBuilder &builder, Location loc, WeightOp weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  Type as = type;
  if (type.getRank() == 2)
    as = MatrixType::get(builder.getContext(), type.getDimSize(0), type.getDimSize(1),
                         *weight.getEncoding(), 0);
  return UseOp::create(builder, loc, as, FlatSymbolRefAttr::get(weight.getSymNameAttr()));
}

Value generateTensor(OpBuilder &builder, Location loc, RankedTensorType type,
                     function_ref<Value(OpBuilder &, ValueRange)> body) {
  SmallVector<Value> extents;
  for (const otf::Size &size : sizesOf(type))
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, loc, size));
  return tensor::GenerateOp::create(builder, loc, type, extents,
                                    [&](OpBuilder &b, Location at, ValueRange indices) {
                                      tensor::YieldOp::create(b, at, body(b, indices));
                                    });
}

WeightOp weightOf(SymbolTable &symbols, LinearOp linear) {
  auto use = linear.getWeight().getDefiningOp<UseOp>();
  return use ? symbols.lookup<WeightOp>(use.getWeight()) : WeightOp();
}

} // namespace otf
