// SPDX-License-Identifier: Apache-2.0
//
// The otf dialect: attributes, types and operators, and what passes ask of symbolic tensor types.
#ifndef OTF_DIALECTS_OTF_OTF_H
#define OTF_DIALECTS_OTF_OTF_H

#include "dialects/OTF/Size.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/OTF/OTFEnums.h.inc"

#include "dialects/OTF/OTFDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/OTF/OTFAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/OTF/OTFTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/OTF/OTFOps.h.inc"

namespace otf {

/// The sizes of all dimensions of `type`. A dynamic dimension without #otf.dims is the symbol "_".
llvm::SmallVector<Size> sizesOf(mlir::RankedTensorType type);

/// A tensor type with these sizes; the constant ones become static.
mlir::RankedTensorType tensorType(mlir::Type elementType, llvm::ArrayRef<Size> sizes);

/// The product of all sizes.
Size elementCount(llvm::ArrayRef<Size> sizes);

/// No matrix has more rows or columns.
inline constexpr int64_t kMostColumns = int64_t(1) << 31;

/// Bytes of one record of `otf.prologue` for `columns` coded columns and `outliers` f16 ones.
int64_t recordBytes(int64_t columns, int64_t outliers);

} // namespace otf

#endif // OTF_DIALECTS_OTF_OTF_H
