// SPDX-License-Identifier: Apache-2.0
//
// Linears read rotated rows where their weights are rotated.
//
// Problem: rotating an input for each of its readers would cost more than it should, and a rotation
// that is wrong would show in the answers only. Approach: one otf.rotate for each input and
// rotation; and before any, the rotation computes a product as the plan will, on numbers made up
// here.

#include "lib/Encoding/Rotation.h"
#include "passes/Passes.h"
#include "passes/Rewrite/CopyWindows.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_ROTATE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

struct RotatePass : otf::impl::RotateBase<RotatePass> {
  LogicalResult prove(WeightOp weight) {
    RotationAttr rotation = *weight.getRotation();
    int64_t columns = cast<RankedTensorType>(weight.getType()).getDimSize(1);
    auto [it, fresh] = errors.try_emplace({rotation, columns}, 0.0);
    if (fresh)
      it->second =
          rotationError({rotation.getBlock(), rotation.getFactor(), rotation.getSeed()}, columns);
    if (it->second <= kRotationTolerance)
      return success();
    return weight.emitOpError() << "cannot be rotated: products of rows rotated by " << rotation
                                << " are off by " << it->second << " of their norms, and "
                                << kRotationTolerance << " is allowed";
  }

  LogicalResult rotate(LinearOp linear, RotationAttr rotation) {
    if (linear.getWindow()) // a row of its weight is a whole window
      copyWindows(linear);
    Value input = linear.getInput();
    if (auto made = input.getDefiningOp<RotateOp>(); made && made.getRotation() == rotation)
      return success();
    if (!getElementTypeOrSelf(input.getType()).isF32())
      return linear.emitOpError() << "reads records of rows that are not rotated, and a weight "
                                     "that is (run otf-rotate first)";
    RotateOp &made =
        rotations[{linear->getBlock(), input.getAsOpaquePointer(), rotation.getAsOpaquePointer()}];
    if (made) {
      ++numShared;
    } else {
      OpBuilder builder(linear);
      made = RotateOp::create(builder, linear.getLoc(), input.getType(), input, rotation);
      ++numRotations;
    }
    linear.getInputMutable().assign(made);
    return success();
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    rotations.clear();
    bool valid = true;
    for (auto weight : getOperation().getOps<WeightOp>())
      valid &= !weight.getRotation() || succeeded(prove(weight));
    getOperation().walk([&](UseOp use) {
      auto weight = symbols.lookup<WeightOp>(use.getWeight());
      for (Operation *user : use->getUsers())
        if (weight.getRotation() && !isa<LinearOp>(user)) {
          user->emitOpError() << "reads @" << use.getWeight()
                              << ", whose rows are rotated; only linears can";
          valid = false;
        }
    });
    if (!valid)
      return signalPassFailure();
    // In program order, so the first reader's place is before all others.
    getOperation().walk([&](LinearOp linear) {
      auto use = linear.getWeight().getDefiningOp<UseOp>();
      auto weight = use ? symbols.lookup<WeightOp>(use.getWeight()) : WeightOp();
      if (weight && weight.getRotation())
        valid &= succeeded(rotate(linear, *weight.getRotation()));
    });
    if (!valid)
      signalPassFailure();
  }

  std::map<std::tuple<Block *, void *, const void *>, RotateOp> rotations;
  llvm::DenseMap<std::pair<Attribute, int64_t>, double> errors;
};

} // namespace
