// SPDX-License-Identifier: Apache-2.0
//
// Transpositions around attention vanish.
//
// Problem: a projection gives positions first, attention is written heads first, and a
// transposition between is a launch and a copy. Approach: three local rules push a transposition of
// an operand behind the operator, in program order, so chains of any length (rope, then append)
// need one walk; what arrives at its inverse cancels.

#include "passes/Fuse/Bodies.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// x when `value` is x with its two middle dimensions swapped.
Value swapped(Value value) {
  auto generate = value.getDefiningOp<tensor::GenerateOp>();
  std::optional<Permutation> found = generate ? asPermutation(generate) : std::nullopt;
  if (!found || ArrayRef(found->axes) != ArrayRef<unsigned>{0, 2, 1, 3})
    return {};
  return found->source;
}

Value swap(OpBuilder &builder, Location loc, Value value, Type type) {
  SmallVector<Value> extents;
  for (const otf::Size &size : sizesOf(cast<RankedTensorType>(type)))
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, loc, size));
  return tensor::GenerateOp::create(
      builder, loc, type, extents, [&](OpBuilder &inner, Location loc, ValueRange i) {
        Value element =
            tensor::ExtractOp::create(inner, loc, value, ValueRange{i[0], i[2], i[1], i[3]});
        tensor::YieldOp::create(inner, loc, element);
      });
}

struct FuseAttentionPass : otf::impl::FuseAttentionBase<FuseAttentionPass> {
  /// Gives `op` the source of its transposed operand, and its readers the transposition of its
  /// result.
  template <typename Op> void absorb(Op op, OpOperand &operand) {
    if (op.getPositionsFirst())
      return;
    Value source = swapped(operand.get());
    if (!source)
      return;
    Location loc = operand.get().getLoc();
    operand.set(source);
    op.setPositionsFirst(true);
    ++numAbsorbed;
    Value result = op.getResult();
    Type headsFirst = result.getType();
    if (!isa<RankedTensorType>(headsFirst))
      return;
    SmallVector<otf::Size> sizes = sizesOf(cast<RankedTensorType>(headsFirst));
    std::swap(sizes[1], sizes[2]);
    result.setType(tensorType(getElementTypeOrSelf(headsFirst), sizes));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value back = swap(builder, loc, result, headsFirst);
    result.replaceUsesWithIf(back, [&](OpOperand &use) {
      return use.getOwner()->getParentOp() != back.getDefiningOp();
    });
  }

  void runOnOperation() override {
    SmallVector<Operation *> transpositions;
    getOperation().walk([&](Operation *op) {
      if (auto rope = dyn_cast<RopeOp>(op))
        absorb(rope, rope.getInputMutable());
      else if (auto append = dyn_cast<AppendOp>(op))
        absorb(append, append.getUpdateMutable());
      else if (auto attention = dyn_cast<AttentionOp>(op))
        absorb(attention, attention.getQueryMutable());
      else if (auto generate = dyn_cast<tensor::GenerateOp>(op))
        if (Value once = swapped(generate.getResult()))
          if (Value twice = swapped(once))
            generate.getResult().replaceAllUsesWith(twice);
    });
    // Transpositions that nothing reads any more, readers before what they read.
    getOperation().walk([&](tensor::GenerateOp generate) { transpositions.push_back(generate); });
    for (Operation *op : llvm::reverse(transpositions))
      if (swapped(op->getResult(0)) && op->use_empty())
        op->erase();
  }
};

} // namespace
