// SPDX-License-Identifier: Apache-2.0
//
// What the steps of a plan are told about the kernels that they call.
#ifndef OTF_LIB_COMPILE_KERNELFACTS_H
#define OTF_LIB_COMPILE_KERNELFACTS_H

#include "dialects/OTF/OTF.h"
#include "dialects/Plan/Plan.h"

#include "llvm/ADT/DenseMap.h"

namespace otf {

/// What a step has to know of the kernel it calls.
struct KernelFacts {
  size_t sizes = 0; // d0 … d(sizes-1)
  bool hasState = false;
  Size batch; // over d0, …; where hasState
  /// By argument, for a state that the kernel appends to: how many positions.
  llvm::SmallDenseMap<unsigned, Size> appended;
  /// By argument, for ids of an embedding: how many rows its table has.
  llvm::SmallDenseMap<unsigned, int64_t> limits;

  /// Complains at the kernel.
  static mlir::FailureOr<KernelFacts> of(plan::KernelOp kernel);
};

} // namespace otf

#endif // OTF_LIB_COMPILE_KERNELFACTS_H
