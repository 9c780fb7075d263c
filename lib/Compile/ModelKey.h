// SPDX-License-Identifier: Apache-2.0
//
// Which model a file of statistics is about.
#ifndef OTF_LIB_COMPILE_MODELKEY_H
#define OTF_LIB_COMPILE_MODELKEY_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace otf {

class FileSet;

/// 32 hexadecimal digits: XXH3 (128 bits) of the imported graph as text (nodes, attributes, names, shapes, and where in which file
/// each tensor lies) and of three pieces of 4 KiB of each tensor: its beginning, middle and end. So moving a model keeps its key,
/// and exporting, training or converting it anew changes it; bytes of a weight between the pieces do not count, since a key should cost no
/// reading of the weights. `imported` holds what importModel gives.
std::string modelKey(mlir::ModuleOp imported, const FileSet &files);

} // namespace otf

#endif // OTF_LIB_COMPILE_MODELKEY_H
