// SPDX-License-Identifier: Apache-2.0
//
// Questions about the bodies of tensor.generate, answered by looking at each operation once.

#include "passes/Fuse/Bodies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

bool otf::isOwnIndex(ValueRange indices, Block &body, unsigned first) {
  if (indices.size() + first != body.getNumArguments())
    return false;
  for (auto [number, index] : llvm::enumerate(indices))
    if (index != body.getArgument(first + number))
      return false;
  return true;
}

std::optional<otf::Permutation> otf::asPermutation(tensor::GenerateOp generate) {
  Block &body = generate.getBody().front();
  if (!llvm::hasNItems(body, 2))
    return std::nullopt;
  auto extract = dyn_cast<tensor::ExtractOp>(body.front());
  auto yield = cast<tensor::YieldOp>(body.getTerminator());
  if (!extract || yield.getValue() != extract || extract.getTensor().getParentBlock() == &body)
    return std::nullopt;
  Permutation found{extract.getTensor(), {}};
  llvm::SmallDenseSet<unsigned> seen;
  for (Value index : extract.getIndices()) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || argument.getOwner() != &body || !seen.insert(argument.getArgNumber()).second)
      return std::nullopt;
    found.axes.push_back(argument.getArgNumber());
  }
  if (found.axes.size() != body.getNumArguments())
    return std::nullopt;
  return found;
}

otf::BodyCost otf::costOf(tensor::GenerateOp generate) {
  BodyCost cost;
  generate.getBody().walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>() || op->hasTrait<OpTrait::ConstantLike>())
      return;
    ++cost.operations;
    cost.loops |= isa<LoopLikeOpInterface>(op);
    // Of math, only what is one instruction on every target is cheap.
    cost.transcendental |=
        isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
        !isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::SqrtOp, math::FloorOp, math::CeilOp,
             math::RoundEvenOp, math::TruncOp, math::CopySignOp>(op);
    bool onFloats = llvm::any_of(op->getResultTypes(), llvm::IsaPred<FloatType>) ||
                    llvm::any_of(op->getOperandTypes(), llvm::IsaPred<FloatType>);
    if (onFloats && !isa<tensor::ExtractOp, arith::SelectOp>(op) && op->getNumRegions() == 0)
      cost.movesOnly = false;
    cost.movesOnly &=
        !isa<LoopLikeOpInterface>(op) && !isa_and_nonnull<math::MathDialect>(op->getDialect());
  });
  return cost;
}
