// SPDX-License-Identifier: Apache-2.0
//
// Names of nodes in locations: operations that became one have the names of all.
#ifndef OTF_LIB_COMPILE_LABELS_H
#define OTF_LIB_COMPILE_LABELS_H

#include "mlir/IR/Location.h"

#include <string>

namespace otf {

/// The name for people of the node that an operation came from; several are joined. May be empty.
std::string labelOf(mlir::Location location);

/// The first of those names: what the rest was fused into. May be empty.
std::string nodeOf(mlir::Location location);

/// The last of them, whose value an operation gives: what was fused into it comes before. May be empty.
std::string valueOf(mlir::Location location);

} // namespace otf

#endif // OTF_LIB_COMPILE_LABELS_H
