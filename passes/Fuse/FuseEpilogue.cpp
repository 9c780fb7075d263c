// SPDX-License-Identifier: Apache-2.0
//
// What follows a contraction is computed on its sums.
//
// Problem: bias, activation, gate and residual each would write and read a tensor as large as the
// result. Approach: a body that reads the result at its own index is cut off at that read and
// becomes the linear's region. The linear moves down to the body, where everything that the body
// reads exists; it is pure, so it may.

#include "passes/Fuse/Bodies.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_FUSEEPILOGUE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// Whether every use of the linear's result is a read in `generate` at its own index.
bool readsOnlyHere(LinearOp linear, tensor::GenerateOp generate) {
  Block &body = generate.getBody().front();
  if (linear->getBlock() != generate->getBlock() ||
      sizesOf(cast<RankedTensorType>(linear.getType())) !=
          sizesOf(cast<RankedTensorType>(generate.getType())))
    return false;
  return llvm::all_of(linear.getResult().getUsers(), [&](Operation *user) {
    auto extract = dyn_cast<tensor::ExtractOp>(user);
    return extract && generate->isProperAncestor(extract) && isOwnIndex(extract.getIndices(), body);
  });
}

/// The latest linear that can take the whole body as its epilogue.
LinearOp findLinear(tensor::GenerateOp generate) {
  if (costOf(generate).loops)
    return {};
  LinearOp latest;
  generate.getBody().walk([&](tensor::ExtractOp extract) {
    auto linear = extract.getTensor().getDefiningOp<LinearOp>();
    // A branch or a loop around the reader runs its body never, or more than once.
    if (linear && linear != latest && linear->getBlock() == generate->getBlock() && readsOnlyHere(linear, generate) &&
        (!latest || latest->isBeforeInBlock(linear)))
      latest = linear;
  });
  return latest;
}

/// b when the body is the linear's result plus b at the last index, a vector that the linear can
/// add itself.
Value asBias(tensor::GenerateOp generate, LinearOp linear) {
  Block &body = generate.getBody().front();
  auto sum = cast<tensor::YieldOp>(body.getTerminator()).getValue().getDefiningOp<arith::AddFOp>();
  if (!sum || linear.getBias() || !linear.getEpilogue().empty() || !sum.getType().isF32() ||
      !llvm::hasNItems(body, 4))
    return {};
  auto left = sum.getLhs().getDefiningOp<tensor::ExtractOp>(),
       right = sum.getRhs().getDefiningOp<tensor::ExtractOp>();
  if (!left || !right)
    return {};
  if (left.getTensor() != linear.getResult())
    std::swap(left, right);
  if (left.getTensor() != linear.getResult() || right.getTensor().getParentBlock() == &body ||
      cast<ShapedType>(right.getTensor().getType()).getRank() != 1 ||
      right.getIndices()[0] != body.getArguments().back())
    return {};
  auto type = cast<ShapedType>(right.getTensor().getType());
  return type.hasStaticShape() && type.getDimSize(0) == linear.getWeight().getType().getRows()
             ? right.getTensor()
             : Value();
}

void fuse(tensor::GenerateOp generate, LinearOp linear, Value bias) {
  OpBuilder builder(generate);
  Location loc = FusedLoc::get(generate.getContext(), {linear.getLoc(), generate.getLoc()});
  auto fused = LinearOp::create(builder, loc, generate.getType(), linear.getInput(),
                                linear.getWeight(), bias ? bias : Value(linear.getBias()),
                                linear.getWindowAttr());
  fused->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
  if (!bias) {
    // The epilogue so far gives the sum that the body reads.
    Block &body = generate.getBody().front();
    Block &block = fused.getEpilogue().emplaceBlock();
    Value sum = block.addArgument(builder.getF32Type(), linear.getLoc());
    for (BlockArgument index : body.getArguments())
      block.addArgument(index.getType(), index.getLoc());
    builder.setInsertionPointToStart(&block);
    if (!linear.getEpilogue().empty()) {
      Block &before = linear.getEpilogue().front();
      IRMapping map;
      map.map(before.getArguments(), block.getArguments());
      for (Operation &op : before.without_terminator())
        builder.clone(op, map);
      sum = map.lookupOrDefault(cast<YieldOp>(before.getTerminator()).getValue());
    }
    IRMapping map;
    map.map(body.getArguments(), block.getArguments().drop_front());
    for (Operation &op : body.without_terminator())
      builder.clone(op, map);
    Value result = map.lookupOrDefault(cast<tensor::YieldOp>(body.getTerminator()).getValue());
    YieldOp::create(builder, generate.getLoc(), result);
    block.walk([&](tensor::ExtractOp extract) {
      if (extract.getTensor() != linear.getResult())
        return;
      extract.replaceAllUsesWith(sum);
      extract.erase();
    });
  }
  generate.replaceAllUsesWith(fused.getResult());
  generate.erase();
  linear.erase();
}

/// reshape(linear(x)) becomes linear(reshape(x)) where only leading dimensions are regrouped.
void reshapeInput(ReshapeOp reshape) {
  auto linear = reshape.getSource().getDefiningOp<LinearOp>();
  auto type = cast<RankedTensorType>(reshape.getResult().getType());
  if (!linear || linear.getWindow() || !linear.getResult().hasOneUse() || !linear.getEpilogue().empty() ||
      type.getRank() == 0 || type.getShape().back() != linear.getWeight().getType().getRows())
    return;
  // Elsewhere it would only make the record's view another, and a linear that is returned is in its
  // output's shape already.
  if (llvm::none_of(reshape->getUsers(), llvm::IsaPred<tensor::ExtractOp>))
    return;
  auto input = cast<RankedTensorType>(linear.getInput().getType());
  SmallVector<otf::Size> sizes = sizesOf(type);
  sizes.back() = input.getShape().back();
  OpBuilder builder(linear);
  auto moved = ReshapeOp::create(builder, reshape.getLoc(),
                                 tensorType(input.getElementType(), sizes), linear.getInput());
  linear.getInputMutable().assign(moved);
  linear.getResult().setType(type);
  reshape.replaceAllUsesWith(linear.getResult());
  reshape.erase();
}

struct FuseEpiloguePass : otf::impl::FuseEpilogueBase<FuseEpiloguePass> {
  void runOnOperation() override {
    getOperation().walk([](ReshapeOp reshape) { reshapeInput(reshape); });
    SmallVector<tensor::GenerateOp> bodies;
    getOperation().walk([&](tensor::GenerateOp generate) {
      if (!generate->getParentOfType<tensor::GenerateOp>() &&
          !generate->getParentOfType<LinearOp>())
        bodies.push_back(generate);
    });
    for (tensor::GenerateOp generate : bodies) {
      LinearOp linear = findLinear(generate);
      if (!linear)
        continue;
      Value bias = asBias(generate, linear);
      fuse(generate, linear, bias);
      ++(bias ? numBiases : numEpilogues);
    }
  }
};

} // namespace
