// SPDX-License-Identifier: Apache-2.0
//
// Element types of MLIR as those of a plan's metadata.
#ifndef OTF_LIB_COMPILE_PLANTYPES_H
#define OTF_LIB_COMPILE_PLANTYPES_H

#include "lib/Plan/PlanModel.h"

#include "mlir/IR/Types.h"

#include <optional>

namespace otf {

/// Nothing for what a plan has no type for.
std::optional<plan::model::ElementType> elementType(mlir::Type type);

/// Types of less than a byte have a byte for each element.
int64_t elementBytes(plan::model::ElementType type);

} // namespace otf

#endif // OTF_LIB_COMPILE_PLANTYPES_H
