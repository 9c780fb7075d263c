// SPDX-License-Identifier: Apache-2.0
//
// Registration of the otf dialect, its attributes, and symbolic tensor types.

#include "dialects/OTF/OTF.h"
#include "lib/Encoding/Rotation.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace otf;

#include "dialects/OTF/OTFDialect.cpp.inc"
#include "dialects/OTF/OTFEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/OTF/OTFAttrs.cpp.inc"

void OTFDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/OTF/OTFAttrs.cpp.inc"
      >();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/OTF/OTFOps.cpp.inc"
      >();
}

//===------------------------------------------------------------------------------------------===//
// Attributes
//===------------------------------------------------------------------------------------------===//

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  size_t dynamic = llvm::count_if(shape, ShapedType::isDynamic);
  if (getSizes().size() != dynamic)
    return emitError() << "#otf.dims has " << getSizes().size() << " sizes for " << dynamic
                       << " dynamic dimensions";
  for (StringAttr text : getSizes()) {
    std::optional<Size> size = Size::parse(text.getValue());
    if (!size)
      return emitError() << "#otf.dims: " << text << " is not a sum of products of symbols";
    if (size->str() != text.getValue())
      return emitError() << "#otf.dims: " << text << " is written \"" << size->str() << "\"";
    if (size->isConstant())
      return emitError() << "#otf.dims: " << text << " is a static dimension";
  }
  return success();
}

LogicalResult EncodingAttr::verify(function_ref<InFlightDiagnostic()> emitError, EncodingKind kind,
                                   int64_t group) {
  bool plain = kind == EncodingKind::f32 || kind == EncodingKind::f16;
  if (plain && group != 0)
    return emitError() << "a plain encoding has no group, got " << group;
  if (group < 0 || group % 32 != 0)
    return emitError() << "group must be a multiple of 32, or 0 for a whole row, got " << group;
  return success();
}

LogicalResult OutliersAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> columns) {
  for (size_t i = 0; i != columns.size(); ++i)
    if (columns[i] < 0 || (i != 0 && columns[i] <= columns[i - 1]))
      return emitError() << "outlier columns must ascend from 0, got " << columns[i] << " at place "
                         << i;
  return success();
}

LogicalResult RotationAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t block, int64_t factor,
                                   uint64_t seed) {
  if (const char *problem = problemOf(Rotation{block, factor, seed})) // rule 1
    return emitError() << problem << ", got block " << block << " and factor " << factor;
  return success();
}

LogicalResult otf::BlobAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t file,
                                    int64_t offset, int64_t length, Type type, bool) {
  if (file < 0 || offset < 0 || length < 0)
    return emitError() << "file, offset and length of a blob are not negative, got " << file << ", "
                       << offset << ", " << length;
  if (!type.isIntOrFloat())
    return emitError() << "elements of a blob are integers or floats, got " << type;
  return success();
}

LogicalResult GivenAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t bits, bool, bool, int64_t pitch,
                                int64_t rowBlock, int64_t block, Attribute scales, int64_t scaleRow, int64_t scaleBlock, Attribute zeros,
                                int64_t zeroRow, int64_t zeroBlock, int64_t, DenseF32ArrayAttr table) {
  if (bits != 2 && bits != 4 && bits != 8) // rule 1
    return emitError() << "codes have 2, 4 or 8 bits, got " << bits;
  if (pitch < 1 || rowBlock < 1 || block < 1)
    return emitError() << "pitch and blocks are positive, got " << pitch << ", " << rowBlock << " and " << block;
  for (int64_t stride : {pitch, rowBlock, block, scaleRow, scaleBlock, zeroRow, zeroBlock})
    if (stride < 0 || stride > kMostColumns)
      return emitError() << "strides are from 0 to 2^31, got " << stride;
  auto floats = [](Attribute numbers) {
    auto blob = dyn_cast_or_null<otf::BlobAttr>(numbers);
    return isa_and_nonnull<DenseF32ArrayAttr>(numbers) || (blob && isa<FloatType>(blob.getType()));
  };
  auto packed = dyn_cast_or_null<otf::BlobAttr>(zeros);
  if (!floats(scales) || (zeros && !floats(zeros) && !(packed && packed.getType().isInteger(8)))) // rule 2
    return emitError() << "scales are floats and zero points floats or bytes";
  if (table && (table.size() != int64_t(1) << bits || zeros)) // rule 3
    return emitError() << "a table has an entry for each code, and no zero points";
  return success();
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> kernel,
                                 ArrayRef<int64_t> stride, ArrayRef<int64_t> dilation, ArrayRef<int64_t> before) {
  size_t axes = kernel.size();
  if (axes < 1 || axes > 3 || stride.size() != axes || dilation.size() != axes || before.size() != axes)
    return emitError() << "a window has from 1 to 3 axes, the same in every list, got " << axes << ", "
                       << stride.size() << ", " << dilation.size() << " and " << before.size();
  for (size_t i = 0; i != axes; ++i)
    for (int64_t number : {kernel[i], stride[i], dilation[i], before[i] + 1})
      if (number < 1 || number > kMostColumns)
        return emitError() << "taps, strides and dilations of a window are positive, and what lies before is not "
                              "negative, all at most 2^31, got "
                           << kernel[i] << ", " << stride[i] << ", " << dilation[i] << " and " << before[i];
  return success();
}

int64_t WindowAttr::getTaps() const {
  int64_t taps = 1;
  for (int64_t k : getKernel())
    if (llvm::MulOverflow(taps, k, taps))
      return std::numeric_limits<int64_t>::max();
  return taps;
}

Attribute otf::BlobAttr::parse(AsmParser &parser, Type) {
  SMLoc location = parser.getCurrentLocation();
  int64_t file, offset, length;
  Type type;
  if (parser.parseLess() || parser.parseKeyword("file") || parser.parseEqual() ||
      parser.parseInteger(file) || parser.parseComma() || parser.parseKeyword("offset") ||
      parser.parseEqual() || parser.parseInteger(offset) || parser.parseComma() ||
      parser.parseKeyword("length") || parser.parseEqual() || parser.parseInteger(length) ||
      parser.parseComma() || parser.parseKeyword("type") || parser.parseEqual() ||
      parser.parseType(type))
    return {};
  bool transposed = succeeded(parser.parseOptionalComma());
  if ((transposed && parser.parseKeyword("transposed")) || parser.parseGreater())
    return {};
  return parser.getChecked<otf::BlobAttr>(location, parser.getContext(), file, offset, length, type,
                                          transposed);
}

void otf::BlobAttr::print(AsmPrinter &printer) const {
  printer << "<file = " << getFile() << ", offset = " << getOffset() << ", length = " << getLength()
          << ", type = " << getType();
  if (getTransposed())
    printer << ", transposed";
  printer << ">";
}

//===------------------------------------------------------------------------------------------===//
// Symbolic tensor types
//===------------------------------------------------------------------------------------------===//

SmallVector<Size> otf::sizesOf(RankedTensorType type) {
  auto dims = dyn_cast_or_null<DimsAttr>(type.getEncoding());
  SmallVector<Size> sizes;
  size_t next = 0;
  for (int64_t extent : type.getShape()) {
    if (!ShapedType::isDynamic(extent))
      sizes.push_back(extent);
    else if (dims)
      sizes.push_back(*Size::parse(dims.getSizes()[next++].getValue()));
    else
      sizes.push_back(Size::symbol("_"));
  }
  return sizes;
}

RankedTensorType otf::tensorType(Type elementType, ArrayRef<Size> sizes) {
  MLIRContext *context = elementType.getContext();
  SmallVector<int64_t> shape;
  SmallVector<StringAttr> names;
  for (const Size &size : sizes) {
    std::optional<int64_t> constant = size.constant();
    shape.push_back(constant.value_or(ShapedType::kDynamic));
    if (!constant)
      names.push_back(StringAttr::get(context, size.str()));
  }
  Attribute encoding = names.empty() ? Attribute() : DimsAttr::get(context, names);
  return RankedTensorType::get(shape, elementType, encoding);
}

Size otf::elementCount(ArrayRef<Size> sizes) {
  Size count = 1;
  for (const Size &size : sizes)
    count = count * size;
  return count;
}

int64_t otf::recordBytes(int64_t columns, int64_t outliers) {
  int64_t padded = llvm::alignTo(columns, 32);
  return llvm::alignTo(padded + 8 * (padded / 32) + 4 * outliers, 64);
}
