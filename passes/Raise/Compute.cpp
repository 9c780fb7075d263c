// SPDX-License-Identifier: Apache-2.0
//
// The way from an operator to an otf.compute.

#include "passes/Raise/Raiser.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

std::vector<Known> Raiser::computed(ArrayRef<Output> results, const Size &extent, ComputeBody body) {
  std::vector<Known> known;
  SmallVector<Type> types;
  for (const Output &result : results) {
    Known &made = known.emplace_back();
    made.elementType = result.elementType;
    made.sizes = checked(result.sizes);
    types.push_back(tensorType(internalType(result.elementType), made.sizes));
  }
  // A builder of its own: what the body reads is made by `builder`, before the operation.
  OpBuilder own(builder);
  auto op = ComputeOp::create(own, *currentLocation, types, checked(extent).front(), body);
  for (auto [made, value] : llvm::zip(known, op.getResults()))
    made.tensor = value;
  return known;
}
