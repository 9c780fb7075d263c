// SPDX-License-Identifier: Apache-2.0
//
// Rotations of linear weights.
//
// Problem: a few large columns set the scales of coarse codes. Approach: a rotation spreads them
// over their segment, and costs an activation a few additions. Which one follows from the width
// alone, so linears of one input agree on it.

#include "dialects/OTF/Codes.h"
#include "lib/Encoding/Rotation.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEROTATIONS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// The rotation of rows of `columns`; of order 1 where there is none.
Rotation rotationFor(int64_t columns, bool kronecker, int64_t most, uint64_t seed) {
  Rotation rotation;
  rotation.seed = seed;
  while (2 * rotation.block <= most && columns % (2 * rotation.block) == 0)
    rotation.block *= 2;
  int64_t rest = columns / rotation.block;
  // A factor that does not fit beside the block is not worth a smaller block.
  for (int64_t factor = std::min(rest, kMostFactor);
       kronecker && factor > 1 && rotation.factor == 1; --factor)
    if (factor % 2 == 1 && rest % factor == 0 && rotation.block * factor <= kMostSegment)
      rotation.factor = factor;
  return rotation;
}

/// A convolution by int8: rotated windows have to be written, which 8 bits are not worth, and
/// places of an image differ in norm so much that no range is right for all of what is rotated.
bool isConvolution8(LinearOp linear, WeightOp weight) {
  bool isImage = linear.getWindow() || cast<RankedTensorType>(linear.getInput().getType()).getRank() > 3;
  return isImage && weight && weight.getEncoding() &&
         (weight.getEncoding()->getKind() == EncodingKind::int8 || weight.getEncoding()->getKind() == EncodingKind::grid8);
}

struct ChooseRotationsPass : otf::impl::ChooseRotationsBase<ChooseRotationsPass> {
  using ChooseRotationsBase::ChooseRotationsBase;

  LogicalResult checkOptions() {
    ModuleOp module = getOperation();
    if (kind != "hadamard" && kind != "kronecker")
      return module.emitError() << getArgument() << ": kind must be hadamard or kronecker, got \""
                                << kind << "\"";
    if (const char *problem = problemOf(Rotation{block, 1, 0}))
      return module.emitError() << getArgument() << ": " << problem << ", got "
                                << int64_t(block);
    return success();
  }

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    llvm::SmallPtrSet<Operation *, 16> linears, others;
    getOperation().walk([&](UseOp use) {
      auto weight = symbols.lookup<WeightOp>(use.getWeight());
      for (OpOperand &operand : use.getResult().getUses()) {
        auto linear = dyn_cast<LinearOp>(operand.getOwner());
        bool fits = linear && isa<MatrixType>(use.getType()) && !isConvolution8(linear, weight) &&
                    getElementTypeOrSelf(linear.getInput().getType()).isF32();
        (fits ? linears : others).insert(weight);
      }
    });
    for (auto weight : getOperation().getOps<WeightOp>()) {
      std::optional<EncodingAttr> encoding = weight.getEncoding();
      if (!linears.contains(weight) || others.contains(weight) || !encoding ||
          encoding->getKind() == EncodingKind::f16 || weight->hasAttr(kNonfiniteAttribute) || weight.getRotation() || weight.getKeepsGiven() ||
          (weight.getOutliers() && !weight.getOutliers()->getColumns().empty()))
        continue;
      int64_t columns = cast<RankedTensorType>(weight.getType()).getDimSize(1);
      Rotation rotation = rotationFor(columns, kind == "kronecker", block, seed);
      if (rotation.segment() == 1) {
        weight.emitWarning() << "is not rotated: " << columns
                             << " columns have no rotation of kind " << kind
                             << (kind == "hadamard" ? " (kronecker takes odd widths too)" : "");
        ++numWithout;
        continue;
      }
      weight.setRotationAttr(
          RotationAttr::get(&getContext(), rotation.block, rotation.factor, rotation.seed));
      ++numWeights;
    }
  }
};

} // namespace
