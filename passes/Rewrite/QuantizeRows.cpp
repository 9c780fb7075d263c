// SPDX-License-Identifier: Apache-2.0
//
// Int8 activations with one scale a row.
//
// Problem: records have a scale for each 32 inputs, and some published systems one for a token.
// Approach: a record on a grid of scale 1 holds what it is given, if that is integers; so rows are
// divided and rounded before, and sums are multiplied after. Nothing below knows of it.

#include "passes/Encodings.h"
#include "passes/Passes.h"
#include "passes/Rewrite/Derive.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_QUANTIZEROWS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct QuantizeRowsPass : otf::impl::QuantizeRowsBase<QuantizeRowsPass> {
  struct Rows {
    Value scales, record;
  };

  static Value number(OpBuilder &b, Location l, float value) {
    return arith::ConstantOp::create(b, l, b.getF32FloatAttr(value));
  }

  /// max |x| / 127 of each row; 1 for a row of zeros.
  static Value scalesOf(OpBuilder &builder, Location l, Value x) {
    SmallVector<otf::Size> sizes = sizesOf(cast<RankedTensorType>(x.getType()));
    int64_t columns = *sizes.back().constant();
    sizes.pop_back();
    return generateTensor(
        builder, l, tensorType(builder.getF32Type(), sizes),
        [&](OpBuilder &b, ValueRange at) -> Value {
          auto index = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, l, value);
          };
          auto loop = scf::ForOp::create(
              b, l, index(0), index(columns), index(1), number(b, l, 0),
              [&](OpBuilder &inner, Location, Value k, ValueRange most) {
                SmallVector<Value> place(at);
                place.push_back(k);
                Value magnitude =
                    math::AbsFOp::create(inner, l, tensor::ExtractOp::create(inner, l, x, place));
                scf::YieldOp::create(
                    inner, l, arith::MaximumFOp::create(inner, l, most[0], magnitude).getResult());
              });
          // The quotient may be 0 where the largest is not.
          Value scale = arith::DivFOp::create(b, l, loop.getResult(0), number(b, l, 127));
          Value empty =
              arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, scale, number(b, l, 0));
          return arith::SelectOp::create(b, l, empty, number(b, l, 1), scale);
        });
  }

  Rows &rowsOf(LinearOp linear) {
    Value x = linear.getInput();
    Rows &rows = made[{linear->getBlock(), x.getAsOpaquePointer()}];
    if (rows.record) {
      ++numShared;
      return rows;
    }
    OpBuilder builder(linear);
    Location l = linear.getLoc();
    auto type = cast<RankedTensorType>(x.getType());
    rows.scales = scalesOf(builder, l, x);
    Value codes = generateTensor(builder, l, type, [&](OpBuilder &b, ValueRange at) -> Value {
      Value scale = tensor::ExtractOp::create(b, l, rows.scales, at.drop_back());
      return math::RoundEvenOp::create(
          b, l, arith::DivFOp::create(b, l, tensor::ExtractOp::create(b, l, x, at), scale));
    });
    auto pair = RankedTensorType::get({2}, builder.getF32Type());
    Value grid =
        arith::ConstantOp::create(builder, l, DenseElementsAttr::get(pair, ArrayRef<float>{1, 0}));
    SmallVector<otf::Size> sizes = sizesOf(type);
    sizes.back() = recordBytes(type.getShape().back(), 0);
    rows.record = PrologueOp::create(builder, l, tensorType(builder.getIntegerType(8), sizes),
                                     NormKind::none, codes, Value(), Value(), Value(), grid,
                                     llvm::APFloat(0.0f), /*rotation=*/RotationAttr());
    ++numRows;
    return rows;
  }

  void quantize(LinearOp linear, WeightOp weight) {
    auto matrix = linear.getWeight().getType();
    linear.getWeight().setType(MatrixType::get(&getContext(), matrix.getRows(), matrix.getColumns(),
                                               *weight.getEncoding(), 0));
    Rows &rows = rowsOf(linear);
    linear.getInputMutable().assign(rows.record);
    Value bias = linear.getBias();
    linear.getBiasMutable().clear();
    OpBuilder builder(linear);
    builder.setInsertionPointAfter(linear);
    Location l = linear.getLoc();
    Value scaled = generateTensor(
        builder, l, cast<RankedTensorType>(linear.getType()),
        [&](OpBuilder &b, ValueRange at) -> Value {
          Value sum = tensor::ExtractOp::create(b, l, linear.getResult(), at);
          sum = arith::MulFOp::create(b, l, sum,
                                      tensor::ExtractOp::create(b, l, rows.scales, at.drop_back()));
          return bias ? arith::AddFOp::create(b, l, sum,
                                              tensor::ExtractOp::create(b, l, bias, at.back()))
                            .getResult()
                      : sum;
        });
    linear.getResult().replaceUsesWithIf(scaled, [&](OpOperand &use) {
      return !scaled.getDefiningOp()->isProperAncestor(use.getOwner());
    });
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    made.clear();
    SmallVector<std::pair<LinearOp, WeightOp>> found;
    bool valid = true;
    getOperation().walk([&](LinearOp linear) {
      WeightOp weight = weightOf(symbols, linear);
      if (!weight || !weight->hasAttr(kRowActivationsAttribute))
        return;
      bool coded = weight.getEncoding() && !isPlain(*weight.getEncoding()) &&
                   !(weight.getOutliers() && !weight.getOutliers()->getColumns().empty());
      auto input = cast<RankedTensorType>(linear.getInput().getType());
      bool reads = input.getElementType().isF32() &&
                   !ShapedType::isDynamic(input.getShape().back()) && !linear.getWindow() &&
                   linear.getEpilogue().empty();
      if (!coded || !reads) {
        linear.emitOpError() << "cannot have one scale a row of its input: that is for linears of "
                                "f32 without window by coded weights without outliers";
        valid = false;
      }
      found.push_back({linear, weight});
    });
    if (!valid)
      return signalPassFailure();
    for (auto [linear, weight] : found)
      quantize(linear, weight);
  }

  std::map<std::tuple<Block *, void *>, Rows> made;
};

} // namespace
