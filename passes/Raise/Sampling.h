// SPDX-License-Identifier: Apache-2.0
//
// Values between the elements of a tensor, at coordinates that are data.
#ifndef OTF_PASSES_RAISE_SAMPLING_H
#define OTF_PASSES_RAISE_SAMPLING_H

#include "passes/Raise/Scalars.h"

namespace otf::raise {

enum class Interpolation { nearest, linear, cubic };
/// What stands outside a tensor. Reflection is at the outer elements' centres or at their far
/// edges.
enum class Outside { zeros, border, reflectAtCentres, reflectAtEdges };

/// One axis and the coordinate along it: element i is at i.
struct SampledAxis {
  Size size;
  mlir::Value x;
};

/// The value at the coordinates, which are floats of one type: that of the elements unless the
/// interpolation is nearest. `read` gets indices inside the tensor.
mlir::Value sample(Scalars &, mlir::Type elementType, llvm::ArrayRef<SampledAxis>, Interpolation,
                   Outside,
                   llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange indices)> read);

} // namespace otf::raise

#endif // OTF_PASSES_RAISE_SAMPLING_H
