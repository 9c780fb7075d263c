// SPDX-License-Identifier: Apache-2.0
//
// Printing, rules and accessors of the `onnx` operations. Rule numbers are those of ONNXOps.td.

#include "dialects/ONNX/ONNXOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace otf::onnx;

/// All results are !onnx.value, so their number is that of the names before the `=`.
static ParseResult parseDeclaredResults(OpAsmParser &parser, SmallVectorImpl<Type> &types) {
  types.assign(parser.getNumResults(), ValueType::get(parser.getContext()));
  return success();
}

static void printDeclaredResults(OpAsmPrinter &, Operation *, TypeRange) {}

static ParseResult parseAttributes(OpAsmParser &parser, DictionaryAttr &attrs) {
  NamedAttrList list;
  if (parser.parseOptionalAttrDict(list))
    return failure();
  attrs = list.getDictionary(parser.getContext());
  return success();
}

static void printAttributes(OpAsmPrinter &printer, Operation *, DictionaryAttr attrs) {
  printer.printOptionalAttrDict(attrs.getValue());
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXOps.cpp.inc"

static bool isTensor(Attribute value) { return isa<FileBlobAttr, ElementsAttr>(value) && !isa<DenseArrayAttr>(value); }

static bool isNodeAttribute(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isSignlessInteger(64);
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getType().isF32();
  if (auto array = dyn_cast<ArrayAttr>(value))
    return llvm::all_of(array, llvm::IsaPred<StringAttr>) || llvm::all_of(array, isTensor);
  return isa<StringAttr, DenseI64ArrayAttr, DenseF32ArrayAttr>(value) || isTensor(value);
}

LogicalResult NodeOp::verify() {
  if (getOpType().empty())
    return emitOpError("expects the name of an operator but found \"\""); // rule 1
  if (static_cast<int64_t>(getVersion()) < 1)
    return emitOpError("expects a version of at least 1 but found ") << static_cast<int64_t>(getVersion()); // rule 2
  if (getOutputs().empty())
    return emitOpError("expects at least one result but has none"); // rule 3
  size_t names = getBodyNames() ? getBodyNames()->size() : 0;
  if (names != getBodies().size())
    return emitOpError("expects a name for each of ") << getBodies().size() << " bodies but found " << names; // rule 4
  for (Region &body : getBodies())
    if (body.front().empty() || !isa<YieldOp>(body.front().back()))
      return emitOpError("expects bodies to end in onnx.yield"); // rule 4
  for (NamedAttribute attribute : getAttrs())
    if (!isNodeAttribute(attribute.getValue())) // rule 5
      return emitOpError("expects attribute ") << attribute.getName() << " to be a number, string, tensor or array of "
                                               << "these but found " << attribute.getValue();
  return success();
}

int64_t NodeOp::intOr(StringRef name, int64_t otherwise) {
  auto value = dyn_cast_or_null<IntegerAttr>(attribute(name));
  return value ? value.getInt() : otherwise;
}

float NodeOp::floatOr(StringRef name, float otherwise) {
  auto value = dyn_cast_or_null<FloatAttr>(attribute(name));
  return value ? value.getValue().convertToFloat() : otherwise;
}

StringRef NodeOp::stringOr(StringRef name, StringRef otherwise) {
  auto value = dyn_cast_or_null<StringAttr>(attribute(name));
  return value ? value.getValue() : otherwise;
}

Block *NodeOp::body(StringRef name) {
  if (getBodyNames())
    for (auto [found, region] : llvm::zip_equal(getBodyNames()->getAsRange<StringAttr>(), getBodies()))
      if (found.getValue() == name)
        return &region.front();
  return nullptr;
}

Value NodeOp::inputOrNull(unsigned position) {
  if (position >= getInputs().size() || getInputs()[position].getDefiningOp<NoneOp>())
    return {};
  return getInputs()[position];
}

LogicalResult InitializerOp::verify() {
  if (!isTensor(getValue()))
    return emitOpError("expects an #onnx.blob or an elements attribute but found ") << getValue(); // rule 1
  return success();
}

int64_t InitializerOp::elementType() {
  if (FileBlobAttr bytes = blob())
    return bytes.getElementType();
  return elementNumberOf(cast<ElementsAttr>(getValue()).getElementType());
}

ArrayRef<int64_t> InitializerOp::dims() {
  if (FileBlobAttr bytes = blob())
    return bytes.getDims();
  return cast<ElementsAttr>(getValue()).getShapedType().getShape();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<InitializerOp>(*this, getInitializerAttr()))
    return emitOpError("expects the name of an onnx.initializer but found ") << getInitializerAttr(); // rule 1
  return success();
}

void NoneOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "none"); }
