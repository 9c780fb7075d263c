// SPDX-License-Identifier: Apache-2.0
//
// A TensorProto as an attribute: an elements attribute up to 64 bytes, a blob above.

#ifndef OTF_LIB_IMPORT_TENSORIMPORT_H
#define OTF_LIB_IMPORT_TENSORIMPORT_H

#include "lib/Import/FileSet.h"
#include "lib/Import/onnx.pb.h"
#include "mlir/IR/Attributes.h"

namespace otf {

/// Tensors of at most this many bytes become part of the IR: axes, shapes, scalars.
constexpr uint64_t kInlineBytes = 64;

/// More dimensions than this are a mistake, or an attempt to keep the compiler busy.
constexpr int kMaxRank = 64;

/// Checks everything that the tensor says about itself before a byte of it is used. `message` is of a slim model whose
/// file is number 0 of `files`. The message of an error is "what (why, and what to try)".
llvm::Expected<mlir::Attribute> importTensor(const ::onnx::TensorProto &message, FileSet &files,
                                             mlir::MLIRContext *context);

} // namespace otf

#endif
