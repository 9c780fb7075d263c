// SPDX-License-Identifier: Apache-2.0
//
// The `onnx` dialect's type, its blob attribute, and what is known of ONNX's element types.

#ifndef OTF_DIALECTS_ONNX_ONNXDIALECT_H
#define OTF_DIALECTS_ONNX_ONNXDIALECT_H

#include "dialects/ONNX/ElementType.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/ONNX/ONNXDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ONNX/ONNXAttrs.h.inc"

namespace otf::onnx {

/// The MLIR type of an ONNX element type: signless integers for signed ones, `uiN` for unsigned ones, i1 for bool.
/// Null for those without one (strings, complex numbers, numbers this compiler does not know).
mlir::Type elementTypeOf(mlir::MLIRContext *context, int64_t number);

/// The other way round; 0 where ONNX has no such type.
int64_t elementNumberOf(mlir::Type type);

} // namespace otf::onnx

#endif
