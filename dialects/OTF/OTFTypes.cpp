// SPDX-License-Identifier: Apache-2.0
//
// Text forms and checks of the otf types.

#include "dialects/OTF/OTF.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace otf;

#define GET_TYPEDEF_CLASSES
#include "dialects/OTF/OTFTypes.cpp.inc"

void OTFDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/OTF/OTFTypes.cpp.inc"
      >();
}

LogicalResult MatrixType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                                 int64_t columns, EncodingAttr encoding, int64_t outliers) {
  if (rows < 1 || columns < 1)
    return emitError() << "a matrix has at least one row and one column, got " << rows << "x"
                       << columns;
  if (rows > kMostColumns || columns > kMostColumns)
    return emitError() << "a matrix has at most " << kMostColumns << " rows and columns, got " << rows
                       << "x" << columns;
  if (outliers < 0 || outliers > columns)
    return emitError() << "outliers must be from 0 to " << columns << ", got " << outliers;
  return success();
}

// <1536x576, #otf.encoding<int4, group = 32>, outliers = 6>
Type MatrixType::parse(AsmParser &parser) {
  SmallVector<int64_t, 2> shape;
  EncodingAttr encoding;
  int64_t outliers = 0;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  if (shape.size() != 2) {
    parser.emitError(location, "a matrix has two dimensions");
    return {};
  }
  if (parser.parseComma() || parser.parseAttribute(encoding))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("outliers") || parser.parseEqual() || parser.parseInteger(outliers)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<MatrixType>(location, parser.getContext(), shape[0], shape[1], encoding,
                                       outliers);
}

void MatrixType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getColumns() << ", " << getEncoding();
  if (getOutliers() != 0)
    printer << ", outliers = " << getOutliers();
  printer << ">";
}

// <3x64xf32>
Type StateType::parse(AsmParser &parser) {
  SmallVector<int64_t, 2> shape;
  Type elementType;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  if (shape.size() != 2) {
    parser.emitError(location, "a state has heads and width");
    return {};
  }
  return StateType::get(parser.getContext(), shape[0], shape[1], elementType);
}

void StateType::print(AsmPrinter &printer) const {
  printer << "<" << getHeads() << "x" << getWidth() << "x" << getElementType() << ">";
}
