// SPDX-License-Identifier: Apache-2.0
//
// Matrices and contractions follow the decisions on weights.
//
// Problem: a contraction with integer codes reads integer activations, and quantizing them once a
// reader would cost more than it should. Approach: types of matrices change in place; prologues are
// shared through a table keyed by the input and the weight whose column order it must have, if any.
//
// What the file has quantized on both sides (otf.on_grid by codes that are kept) multiplies exactly those codes: the record is on
// the file's grid, and what zero points of activations add to each sum, zero · Σ W, is a vector that is known here.

#include "dialects/OTF/Codes.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"
#include "passes/Rewrite/CopyWindows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_ENCODE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct EncodePass : otf::impl::EncodeBase<EncodePass> {
  LogicalResult retype(UseOp use, SymbolTable &symbols) {
    auto matrix = dyn_cast<MatrixType>(use.getType());
    auto weight = symbols.lookup<WeightOp>(use.getWeight());
    if (!matrix || !weight.getEncoding())
      return success();
    int64_t outliers = weight.getOutliers() ? weight.getOutliers()->getColumns().size() : 0;
    if (outliers != 0 && isPlain(*weight.getEncoding()))
      return weight.emitOpError()
             << "has outliers, and a plain encoding, which keeps every column anyway";
    auto type = MatrixType::get(&getContext(), matrix.getRows(), matrix.getColumns(),
                                *weight.getEncoding(), outliers);
    if (type != matrix) {
      use.getResult().setType(type);
      ++numMatrices;
    }
    return success();
  }

  /// tensor.generate of `type`.
  static tensor::GenerateOp generate(OpBuilder &builder, Location l, RankedTensorType type,
                                     function_ref<Value(OpBuilder &, ValueRange)> body) {
    SmallVector<Value> extents;
    for (const otf::Size &size : sizesOf(type))
      if (!size.isConstant())
        extents.push_back(SizeOp::create(builder, l, size));
    return tensor::GenerateOp::create(builder, l, type, extents, [&](OpBuilder &b, Location at, ValueRange indices) {
      tensor::YieldOp::create(b, at, body(b, indices));
    });
  }

  static Value extract(OpBuilder &b, Location l, Value tensor, int64_t at) {
    return tensor::ExtractOp::create(b, l, tensor, ValueRange(arith::ConstantIndexOp::create(b, l, at)));
  }

  /// The rounding as scalars, for who reads it as floats.
  void expand(OnGridOp op) {
    OpBuilder builder(op);
    Location l = op.getLoc();
    Value result = generate(builder, l, cast<RankedTensorType>(op.getType()), [&](OpBuilder &b, ValueRange at) -> Value {
      auto number = [&](float value) -> Value { return arith::ConstantOp::create(b, l, b.getF32FloatAttr(value)); };
      Value x = tensor::ExtractOp::create(b, l, op.getInput(), at);
      Value scale = extract(b, l, op.getGrid(), 0), zero = extract(b, l, op.getGrid(), 1);
      Value q = math::RoundEvenOp::create(b, l, arith::DivFOp::create(b, l, x, scale));
      q = arith::AddFOp::create(b, l, q, zero);
      q = arith::MaxNumFOp::create(b, l, q, number(-128));
      q = arith::MinNumFOp::create(b, l, q, number(127));
      return arith::MulFOp::create(b, l, arith::SubFOp::create(b, l, q, zero), scale);
    });
    op.replaceAllUsesWith(result);
    op.erase();
  }

  /// Makes of the linear's sums what they mean: (sum − zero · Σ W) · scale · (row's scale) + bias. Of codes, the difference is exact.
  void scaleSums(LinearOp linear, Value grid, DenseFPElementsAttr sums, DenseFPElementsAttr scales) {
    OpBuilder before(linear), builder(linear);
    builder.setInsertionPointAfter(linear);
    Location l = linear.getLoc();
    Value result = linear.getResult(), bias = linear.getBias();
    linear.getBiasMutable().clear();
    auto vector = [&](DenseFPElementsAttr from, double factor) -> Value {
      SmallVector<float> values;
      for (float value : from.getValues<float>())
        values.push_back(float(double(value) * factor));
      return arith::ConstantOp::create(before, l, DenseElementsAttr::get(from.getType(), ArrayRef<float>(values)));
    };
    // What the file gives is folded here, and what a run finds out is one multiplication more.
    DenseFPElementsAttr known;
    bool isKnown = matchPattern(grid, m_Constant(&known));
    double scale = isKnown ? double(known.getValues<float>()[0]) : 1, zero = isKnown ? double(known.getValues<float>()[1]) : 1;
    Value shift = zero != 0 ? vector(sums, zero) : Value(), factors = scales ? vector(scales, scale) : Value();
    auto scaled = generate(builder, l, cast<RankedTensorType>(linear.getType()), [&](OpBuilder &b, ValueRange at) -> Value {
      auto element = [&](Value of) -> Value { return tensor::ExtractOp::create(b, l, of, at.back()); };
      Value sum = tensor::ExtractOp::create(b, l, result, at);
      if (shift) {
        Value off = element(shift);
        sum = arith::SubFOp::create(b, l, sum, isKnown ? off : arith::MulFOp::create(b, l, off, extract(b, l, grid, 1)).getResult());
      }
      Value factor = factors ? element(factors) : Value();
      if (!factor && isKnown)
        factor = arith::ConstantOp::create(b, l, b.getF32FloatAttr(float(scale)));
      if (!isKnown) {
        Value run = extract(b, l, grid, 0);
        factor = factor ? arith::MulFOp::create(b, l, run, factor).getResult() : run;
      }
      sum = arith::MulFOp::create(b, l, sum, factor);
      return bias ? arith::AddFOp::create(b, l, sum, element(bias)).getResult() : sum;
    });
    result.replaceUsesWithIf(scaled, [&](OpOperand &use) { return !scaled->isProperAncestor(use.getOwner()); });
  }

  /// What otf-choose-grids decided, as a model that is quantized says it. Linears that read one tensor on equal grids share it.
  void readOnGrid(LinearOp linear) {
    auto decided = linear->getAttrOfType<DenseF32ArrayAttr>(kGridAttribute);
    if (!decided || decided.size() != 2)
      return;
    if (linear.getWindow()) // what lies outside is 0 and not on the grid
      copyWindows(linear);
    Value input = linear.getInput();
    OnGridOp &shared = grids[{linear->getBlock(), input.getAsOpaquePointer(), decided.getAsOpaquePointer()}];
    if (!shared) {
      OpBuilder builder(linear);
      auto type = RankedTensorType::get({2}, builder.getF32Type());
      auto grid = arith::ConstantOp::create(builder, linear.getLoc(), DenseElementsAttr::get(type, decided.asArrayRef()));
      shared = OnGridOp::create(builder, linear.getLoc(), input.getType(), input, grid);
    }
    linear.getInputMutable().assign(shared);
    linear->removeAttr(kGridAttribute);
  }

  /// Whether a record of each position serves all windows that it is in. A group of 32 must not span taps, what lies
  /// outside is zero on no grid but ours, and f32 activations have no record.
  static bool hasRecordsOfTaps(LinearOp linear, WeightOp weight) {
    auto matrix = linear.getWeight().getType();
    return matrix.getColumns() / linear.getWindowAttr().getTaps() % 32 == 0 && matrix.getOutliers() == 0 &&
           !linear.getInput().getDefiningOp<OnGridOp>() && !(weight && weight.getFloatActivations());
  }

  void makePrologue(LinearOp linear, SymbolTable &symbols) {
    auto matrix = linear.getWeight().getType();
    if (isPlain(matrix.getEncoding()) ||
        !cast<RankedTensorType>(linear.getInput().getType()).getElementType().isF32())
      return;
    auto use = linear.getWeight().getDefiningOp<UseOp>();
    auto weight = use ? symbols.lookup<WeightOp>(use.getWeight()) : WeightOp();
    if (linear.getWindow() && !hasRecordsOfTaps(linear, weight))
      copyWindows(linear);
    auto input = cast<RankedTensorType>(linear.getInput().getType());
    auto onGrid = linear.getInput().getDefiningOp<OnGridOp>();
    auto sums = weight ? weight->getAttrOfType<DenseFPElementsAttr>(kRowSumsAttribute) : DenseFPElementsAttr();
    Value grid, source = linear.getInput();
    if (onGrid && sums && matrix.getOutliers() == 0) {
      grid = onGrid.getGrid();
      source = onGrid.getInput();
    } else if (weight && weight.getFloatActivations()) {
      return;
    }
    bool ordered = matrix.getOutliers() != 0;
    Attribute order = !ordered ? Attribute() : use ? Attribute(use.getWeightAttr()) : Attribute();
    // A matrix that comes from elsewhere than a weight keeps its prologue to itself.
    bool shareable = !ordered || use;
    PrologueOp &prologue = prologues[{linear->getBlock(), source.getAsOpaquePointer(),
                                      order.getAsOpaquePointer(), grid.getAsOpaquePointer()}];
    if (!prologue || !shareable) {
      int64_t bytes = recordBytes(input.getShape().back() - matrix.getOutliers(), matrix.getOutliers());
      SmallVector<otf::Size> sizes = sizesOf(input);
      sizes.back() = bytes;
      OpBuilder builder(linear);
      auto made =
          PrologueOp::create(builder, linear.getLoc(), tensorType(builder.getIntegerType(8), sizes),
                             NormKind::none, source, Value(), Value(),
                             ordered ? Value(linear.getWeight()) : Value(), grid, llvm::APFloat(0.0f),
                             /*rotation=*/RotationAttr());
      ++numPrologues;
      linear.getInputMutable().assign(made);
      if (shareable)
        prologue = made;
    } else {
      linear.getInputMutable().assign(prologue);
      ++numShared;
    }
    if (grid && weight->hasAttr(kExactSumsAttribute))
      linear->setAttr(kExactSumsAttribute, UnitAttr::get(&getContext()));
    if (grid)
      scaleSums(linear, grid, sums, weight->getAttrOfType<DenseFPElementsAttr>(kRowScalesAttribute));
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    bool valid = true;
    getOperation().walk([&](UseOp use) { valid &= succeeded(retype(use, symbols)); });
    if (!valid)
      return signalPassFailure();
    prologues.clear();
    grids.clear();
    getOperation().walk([&](LinearOp linear) { readOnGrid(linear); });
    // In program order, so the first reader's place is before all others.
    getOperation().walk([&](LinearOp linear) { makePrologue(linear, symbols); });
    getOperation().walk([&](OnGridOp op) {
      if (op.use_empty())
        op.erase();
      else
        expand(op);
    });
  }

  std::map<std::tuple<Block *, void *, const void *, void *>, PrologueOp> prologues;
  std::map<std::tuple<Block *, void *, const void *>, OnGridOp> grids;
};

} // namespace
