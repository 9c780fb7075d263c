// SPDX-License-Identifier: Apache-2.0
//
// Questions about the bodies of tensor.generate.
#ifndef OTF_PASSES_FUSE_BODIES_H
#define OTF_PASSES_FUSE_BODIES_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace otf {

/// Whether `indices` are the arguments of `body` in order, from the argument number `first` on.
bool isOwnIndex(mlir::ValueRange indices, mlir::Block &body, unsigned first = 0);

/// The permutation p and the source when a body is `source[index p(0), index p(1), …]` and nothing
/// else: result[i_0, i_1, …] = source[i_p(0), i_p(1), …].
struct Permutation {
  mlir::Value source;
  llvm::SmallVector<unsigned> axes;
};
std::optional<Permutation> asPermutation(mlir::tensor::GenerateOp generate);

/// What substituting a body costs.
struct BodyCost {
  unsigned operations = 0; // all but the yield
  bool movesOnly = true;   // reads, index arithmetic and selections; no arithmetic on floats
  bool transcendental = false;
  bool loops = false;
};
BodyCost costOf(mlir::tensor::GenerateOp generate);

} // namespace otf

#endif // OTF_PASSES_FUSE_BODIES_H
