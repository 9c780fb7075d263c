// SPDX-License-Identifier: Apache-2.0
//
// The name, element type and sizes of a graph's input or output as attributes of @main's signature.

#ifndef OTF_LIB_IMPORT_SIGNATURE_H
#define OTF_LIB_IMPORT_SIGNATURE_H

#include "lib/Import/onnx.pb.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"

namespace otf {

/// `onnx.name`, `onnx.type` and `onnx.dims`, as the dialect documents them. A negative size, which some exporters
/// write for one that is unknown, becomes "?". The message of an error is "what (why, and what to try)".
llvm::Expected<mlir::DictionaryAttr> importSignature(const ::onnx::ValueInfoProto &value, bool needsType,
                                                     mlir::MLIRContext *context);

} // namespace otf

#endif
