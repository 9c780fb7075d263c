// SPDX-License-Identifier: Apache-2.0
//
// The `onnx` dialect's operations; ONNXOps.td documents them.

#ifndef OTF_DIALECTS_ONNX_ONNXOPS_H
#define OTF_DIALECTS_ONNX_ONNXOPS_H

#include "dialects/ONNX/ONNXDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXOps.h.inc"

#endif
