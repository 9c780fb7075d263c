// SPDX-License-Identifier: Apache-2.0
#include "passes/Rewrite/CopyWindows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

void otf::copyWindows(LinearOp linear) {
  WindowAttr window = linear.getWindowAttr();
  Value x = linear.getInput();
  auto type = cast<RankedTensorType>(x.getType()), result = cast<RankedTensorType>(linear.getType());
  Location l = linear.getLoc();
  OpBuilder builder(linear);
  size_t axes = window.getKernel().size();
  SmallVector<otf::Size> spatial = sizesOf(type), outer = sizesOf(result);
  outer.pop_back();
  SmallVector<otf::Size> sizes(outer), rows(outer);
  for (int64_t taps : window.getKernel())
    sizes.push_back(taps);
  sizes.push_back(spatial.back());
  rows.push_back(linear.getWeight().getType().getColumns());
  SmallVector<Value> extents;
  for (const otf::Size &size : sizes)
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, l, size));
  auto body = [&](OpBuilder &b, Location, ValueRange at) {
    auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, l, value); };
    SmallVector<Value> from{at.front()};
    Value inside;
    for (size_t i = 0; i != axes; ++i) {
      Value position = arith::MulIOp::create(b, l, at[1 + i], index(window.getStride()[i]));
      Value tap = arith::MulIOp::create(b, l, at[1 + axes + i], index(window.getDilation()[i]));
      position = arith::AddIOp::create(b, l, position, tap);
      position = arith::SubIOp::create(b, l, position, index(window.getBefore()[i]));
      const otf::Size &size = spatial[1 + i];
      Value end = size.isConstant() ? index(*size.constant()) : SizeOp::create(b, l, size).getResult();
      // Unsigned, so that what is negative is too large.
      Value fits = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ult, position, end);
      inside = inside ? arith::AndIOp::create(b, l, inside, fits).getResult() : fits;
      from.push_back(position);
    }
    from.push_back(at.back());
    auto element = scf::IfOp::create(
        b, l, inside,
        [&](OpBuilder &b, Location) {
          scf::YieldOp::create(b, l, tensor::ExtractOp::create(b, l, x, from).getResult());
        },
        [&](OpBuilder &b, Location) {
          scf::YieldOp::create(b, l, arith::ConstantOp::create(b, l, b.getF32FloatAttr(0)).getResult());
        });
    tensor::YieldOp::create(b, l, element.getResult(0));
  };
  auto windows = tensor::GenerateOp::create(builder, l, tensorType(type.getElementType(), sizes), extents, body);
  linear.getInputMutable().assign(
      ReshapeOp::create(builder, l, tensorType(type.getElementType(), rows), windows));
  linear.removeWindowAttr();
}
