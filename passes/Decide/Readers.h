// SPDX-License-Identifier: Apache-2.0
//
// Who reads a weight, for passes that decide about weights of linears.
#ifndef OTF_PASSES_DECIDE_READERS_H
#define OTF_PASSES_DECIDE_READERS_H

#include "dialects/OTF/OTF.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace otf {

/// The weights that linears multiply by, each once, in program order.
inline llvm::SetVector<mlir::Operation *> weightsOfLinears(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  llvm::SetVector<mlir::Operation *> weights;
  module.walk([&](LinearOp linear) {
    if (auto use = linear.getWeight().getDefiningOp<UseOp>())
      weights.insert(symbols.lookup<WeightOp>(use.getWeight()));
  });
  return weights;
}

/// The weights that some reader has which is no linear of rows of f32: an embedding, a convolution.
inline llvm::SmallPtrSet<mlir::Operation *, 4> weightsReadOtherwise(mlir::ModuleOp module) {
  mlir::SymbolTable symbols(module);
  llvm::SmallPtrSet<mlir::Operation *, 4> weights;
  module.walk([&](UseOp use) {
    for (mlir::Operation *user : use->getUsers())
      if (auto linear = llvm::dyn_cast<LinearOp>(user);
          !linear || linear.getWindow() ||
          !mlir::getElementTypeOrSelf(linear.getInput().getType()).isF32())
        weights.insert(symbols.lookup(use.getWeight()));
  });
  return weights;
}

} // namespace otf

#endif // OTF_PASSES_DECIDE_READERS_H
