// SPDX-License-Identifier: Apache-2.0
//
// Bodies that read a transposed contraction are computed in the contraction's own order.
//
// Problem: a convolution's linear has channels last, and the model reads its result with channels
// second. Bias, activation and residual then read across rows, cannot become the linear's epilogue,
// and the next convolution's windows are gathered from afar. Approach: a body over a transposed
// tensor becomes a body over the tensor, then the same transpose; so the transpose moves down until
// a reader takes it into its own index arithmetic, or another transpose undoes it. Each region
// between operators that fix an order has the order of the contraction before it.
//
// Only results of linears themselves, bodies that say so, and what was computed from them here, start this: an
// attention's heads are transposed behind a reshape, and keep their form.

#include "dialects/OTF/Order.h"
#include "passes/Fuse/Bodies.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_SINKTRANSPOSES
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct SinkTransposesPass : otf::impl::SinkTransposesBase<SinkTransposesPass> {
  DenseSet<Operation *> ordered; // bodies that were made here

  /// `value` as a transposed tensor whose order is worth keeping.
  std::optional<Permutation> transposed(Value value) {
    auto generate = value.getDefiningOp<tensor::GenerateOp>();
    std::optional<Permutation> permutation = generate ? asPermutation(generate) : std::nullopt;
    Operation *source = permutation ? permutation->source.getDefiningOp() : nullptr;
    return source && (isa<LinearOp>(source) || source->hasAttr(kKeepsOrder) || ordered.contains(source)) ? permutation
                                                                         : std::nullopt;
  }

  /// A transpose of a transpose that is none at all.
  bool undo(tensor::GenerateOp generate) {
    std::optional<Permutation> outer = asPermutation(generate);
    std::optional<Permutation> inner = outer ? transposed(outer->source) : std::nullopt;
    if (!inner || inner->source.getType() != generate.getType())
      return false;
    for (unsigned d = 0; d != inner->axes.size(); ++d)
      if (outer->axes[inner->axes[d]] != d)
        return false;
    generate.replaceAllUsesWith(inner->source);
    generate.erase();
    return true;
  }

  void sink(tensor::GenerateOp generate, ArrayRef<unsigned> axes) {
    OpBuilder builder(generate);
    Location loc = generate.getLoc();
    auto type = cast<RankedTensorType>(generate.getType());
    SmallVector<otf::Size> sizes = sizesOf(type), permuted;
    for (unsigned axis : axes)
      permuted.push_back(sizes[axis]);
    auto extents = [&](ArrayRef<otf::Size> of) {
      SmallVector<Value> values;
      for (const otf::Size &size : of)
        if (!size.isConstant())
          values.push_back(SizeOp::create(builder, loc, size));
      return values;
    };
    Block &body = generate.getBody().front();
    auto moved = tensor::GenerateOp::create(
        builder, loc, tensorType(type.getElementType(), permuted), extents(permuted),
        [&](OpBuilder &inner, Location, ValueRange indices) {
          IRMapping map;
          for (auto [index, axis] : llvm::zip(indices, axes))
            map.map(body.getArgument(axis), index);
          for (Operation &op : body)
            inner.clone(op, map);
        });
    ordered.insert(moved);
    auto back = tensor::GenerateOp::create(
        builder, loc, type, extents(sizes), [&](OpBuilder &inner, Location, ValueRange indices) {
          SmallVector<Value> at;
          for (unsigned axis : axes)
            at.push_back(indices[axis]);
          Value element = tensor::ExtractOp::create(inner, loc, moved, at);
          tensor::YieldOp::create(inner, loc, element);
        });
    generate.replaceAllUsesWith(back.getResult());
    generate.erase();
  }

  void runOnOperation() override {
    ordered.clear();
    SmallVector<tensor::GenerateOp> bodies;
    getOperation().walk([&](tensor::GenerateOp generate) {
      if (!generate->getParentOfType<tensor::GenerateOp>())
        bodies.push_back(generate);
    });
    for (tensor::GenerateOp generate : bodies) {
      if (undo(generate) || asPermutation(generate) || generate->hasAttr(kKeepsOrder))
        continue; // the last has its order, whatever that of what it reads is
      std::optional<Permutation> order;
      int64_t rank = cast<RankedTensorType>(generate.getType()).getRank();
      generate.getBody().walk([&](tensor::ExtractOp extract) {
        if (!order && cast<RankedTensorType>(extract.getTensor().getType()).getRank() == rank)
          order = transposed(extract.getTensor());
      });
      if (order)
        sink(generate, order->axes);
    }
    // What sinking left without a reader; readers stand after what they read.
    SmallVector<tensor::GenerateOp> left;
    getOperation().walk([&](tensor::GenerateOp generate) { left.push_back(generate); });
    for (tensor::GenerateOp generate : llvm::reverse(left))
      if (generate.getResult().use_empty() && asPermutation(generate))
        generate.erase();
  }
};

} // namespace
