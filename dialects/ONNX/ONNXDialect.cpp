// SPDX-License-Identifier: Apache-2.0
//
// Registration, the blob attribute's rules, element types, and the rules for attributes of @main's signature.

#include "dialects/ONNX/ONNXDialect.h"

#include "dialects/ONNX/ONNXOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/ONNX/ONNXDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ONNX/ONNXAttrs.cpp.inc"

namespace otf::onnx {

void ONNXDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/ONNX/ONNXTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ONNX/ONNXAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXOps.cpp.inc"
      >();
}

LogicalResult FileBlobAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t file, int64_t offset,
                               int64_t length, int64_t elementType, ArrayRef<int64_t> dims) {
  int64_t end;
  if (file < 0 || offset < 0 || length < 0 || elementType < 0 || llvm::any_of(dims, [](int64_t d) { return d < 0; }))
    return emitError() << "blob expects numbers that are not negative"; // rule 1
  if (__builtin_add_overflow(offset, length, &end))
    return emitError() << "blob's offset + length overflows";
  if (!elementBits(elementType))
    return success();
  std::optional<uint64_t> bytes = tensorBytes(elementType, dims);
  if (!bytes)
    return emitError() << "blob's size in bytes overflows";
  if (*bytes != static_cast<uint64_t>(length))
    return emitError() << "blob of type " << elementTypeName(elementType) << " expects " << *bytes // rule 2
                       << " bytes but has a length of " << length;
  return success();
}

Type elementTypeOf(MLIRContext *context, int64_t number) {
  Builder b(context);
  auto integer = [&](unsigned bits) { return b.getIntegerType(bits); };
  auto natural = [&](unsigned bits) { return b.getIntegerType(bits, /*isSigned=*/false); };
  switch (number) {
  case ElementType::Float: return b.getF32Type();
  case ElementType::Float16: return b.getF16Type();
  case ElementType::BFloat16: return b.getBF16Type();
  case ElementType::Double: return b.getF64Type();
  case ElementType::Bool: return integer(1);
  case ElementType::Int2: return integer(2);
  case ElementType::Int4: return integer(4);
  case ElementType::Int8: return integer(8);
  case ElementType::Int16: return integer(16);
  case ElementType::Int32: return integer(32);
  case ElementType::Int64: return integer(64);
  case ElementType::UInt2: return natural(2);
  case ElementType::UInt4: return natural(4);
  case ElementType::UInt8: return natural(8);
  case ElementType::UInt16: return natural(16);
  case ElementType::UInt32: return natural(32);
  case ElementType::UInt64: return natural(64);
  case ElementType::Float8E4M3FN: return b.getType<Float8E4M3FNType>();
  case ElementType::Float8E4M3FNUZ: return b.getType<Float8E4M3FNUZType>();
  case ElementType::Float8E5M2: return b.getType<Float8E5M2Type>();
  case ElementType::Float8E5M2FNUZ: return b.getType<Float8E5M2FNUZType>();
  case ElementType::Float8E8M0: return b.getType<Float8E8M0FNUType>();
  case ElementType::Float4E2M1: return b.getType<Float4E2M1FNType>();
  default: return {};
  }
}

int64_t elementNumberOf(Type type) {
  for (int64_t number = ElementType::Float; number <= ElementType::Int2; ++number)
    if (type && elementTypeOf(type.getContext(), number) == type)
      return number;
  return ElementType::Undefined;
}

static LogicalResult verifySignature(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().strref();
  Attribute value = attribute.getValue();
  if (name == "onnx.name" && !isa<StringAttr>(value))
    return op->emitOpError("expects onnx.name to be a string but found ") << value;
  if (name == "onnx.type") {
    auto number = dyn_cast<IntegerAttr>(value);
    if (!number || !number.getType().isInteger(64))
      return op->emitOpError("expects onnx.type to be an i64 but found ") << value;
  }
  if (name == "onnx.dims") {
    auto isSize = [](Attribute dim) {
      auto number = dyn_cast<IntegerAttr>(dim);
      return isa<StringAttr>(dim) || (number && number.getType().isInteger(64) && number.getInt() >= 0);
    };
    auto dims = dyn_cast<ArrayAttr>(value);
    if (!dims || !llvm::all_of(dims, isSize))
      return op->emitOpError("expects onnx.dims to hold strings and i64 that are not negative but found ") << value;
  }
  return success();
}

LogicalResult ONNXDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifySignature(op, attribute);
}

LogicalResult ONNXDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return verifySignature(op, attribute);
}

} // namespace otf::onnx
