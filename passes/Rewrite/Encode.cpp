// SPDX-License-Identifier: Apache-2.0
//
// Matrices and contractions follow the decisions on weights.
//
// Problem: a contraction with integer codes reads integer activations, and quantizing them once a
// reader would cost more than it should. Approach: types of matrices change in place; prologues are
// shared through a table keyed by the input and the weight whose column order it must have, if any.

#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

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

  void makePrologue(LinearOp linear, SymbolTable &symbols) {
    auto matrix = linear.getWeight().getType();
    auto input = cast<RankedTensorType>(linear.getInput().getType());
    if (isPlain(matrix.getEncoding()) || !input.getElementType().isF32())
      return;
    auto use = linear.getWeight().getDefiningOp<UseOp>();
    if (use && symbols.lookup<WeightOp>(use.getWeight()).getFloatActivations())
      return;
    bool ordered = matrix.getOutliers() != 0;
    Attribute order = !ordered ? Attribute() : use ? Attribute(use.getWeightAttr()) : Attribute();
    // A matrix that comes from elsewhere than a weight keeps its prologue to itself.
    bool shareable = !ordered || use;
    PrologueOp &prologue = prologues[{linear->getBlock(), linear.getInput().getAsOpaquePointer(),
                                      order.getAsOpaquePointer()}];
    if (!prologue || !shareable) {
      int64_t bytes = recordBytes(matrix.getColumns() - matrix.getOutliers(), matrix.getOutliers());
      SmallVector<otf::Size> sizes = sizesOf(input);
      sizes.back() = bytes;
      OpBuilder builder(linear);
      auto made =
          PrologueOp::create(builder, linear.getLoc(), tensorType(builder.getIntegerType(8), sizes),
                             NormKind::none, linear.getInput(), Value(), Value(),
                             ordered ? Value(linear.getWeight()) : Value(), llvm::APFloat(0.0f));
      ++numPrologues;
      linear.getInputMutable().assign(made);
      if (shareable)
        prologue = made;
      return;
    }
    linear.getInputMutable().assign(prologue);
    ++numShared;
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    bool valid = true;
    getOperation().walk([&](UseOp use) { valid &= succeeded(retype(use, symbols)); });
    if (!valid)
      return signalPassFailure();
    prologues.clear();
    // In program order, so the first reader's place is before all others.
    getOperation().walk([&](LinearOp linear) { makePrologue(linear, symbols); });
  }

  std::map<std::tuple<Block *, void *, const void *>, PrologueOp> prologues;
};

} // namespace
