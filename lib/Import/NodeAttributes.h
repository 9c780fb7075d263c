// SPDX-License-Identifier: Apache-2.0
//
// A node's AttributeProto as an MLIR attribute.

#ifndef OTF_LIB_IMPORT_NODEATTRIBUTES_H
#define OTF_LIB_IMPORT_NODEATTRIBUTES_H

#include "lib/Import/FileSet.h"
#include "lib/Import/onnx.pb.h"
#include "mlir/IR/Attributes.h"

namespace otf {

/// Whether an attribute is a graph, which the importer makes a region of.
bool isSubgraph(const ::onnx::AttributeProto &message);

/// An i64, f32, string, dense array of i64 or f32, array of strings, tensor or array of tensors, as rule 5 of
/// onnx.node says. Lists of graphs, sparse tensors and types are refused. The message of an error is "what (why)".
llvm::Expected<mlir::Attribute> importAttribute(const ::onnx::AttributeProto &message, FileSet &files,
                                                mlir::MLIRContext *context);

} // namespace otf

#endif
