// SPDX-License-Identifier: Apache-2.0
//
// From an ONNX file to a module of `onnx` operations; dialects/ONNX describes the result.
//
// Import is structural: it checks the file, orders nodes, inlines the model's own functions, and understands no
// operator. Initializers that nothing uses are neither checked nor imported.

#ifndef OTF_LIB_IMPORT_IMPORTER_H
#define OTF_LIB_IMPORT_IMPORTER_H

#include "lib/Import/ModelFile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace otf {

/// Null after at least one error was emitted to the context, at an unknown location and each a whole sentence:
/// "<file>: <node or tensor>: <what> (<why, and what to try>)". Loads the dialects it needs. The module's blobs count
/// `file.files()`, which must outlive their use.
mlir::OwningOpRef<mlir::ModuleOp> importModel(ModelFile &file, mlir::MLIRContext &context);

} // namespace otf

#endif
