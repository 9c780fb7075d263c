// SPDX-License-Identifier: Apache-2.0
//
// What a model's file holds: contents that are known, and weights that are named and not read.

#include "passes/Raise/Raiser.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/OTF/Taps.h"
#include "passes/Raise/Elements.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

WeightOp Raiser::givenWeight(const GivenCodes &given, RankedTensorType type, bool transposed, int64_t taps) {
  auto how = cast<GivenAttr>(given.how);
  if (transposed) // its rows are the file's columns
    how = GivenAttr::get(builder.getContext(), how.getBits(), how.getIsSigned(), how.getHighFirst(), how.getPitch(),
                         how.getBlock(), how.getRowBlock(), how.getScales(), how.getScaleBlock(), how.getScaleRow(),
                         how.getZeros(), how.getZeroBlock(), how.getZeroRow(), how.getZero(), how.getTable());
  return weight(given.codes, given.name, type, transposed, how, taps);
}

WeightOp Raiser::weight(onnx::FileBlobAttr blob, StringRef name, RankedTensorType type,
                        bool transposed, GivenAttr given, int64_t taps) {
  // Packed elements are known by the type they have in the file; in memory they are bytes.
  Type stored = given ? Type(builder.getI8Type())
                : onnx::elementBits(blob.getElementType()) < 8
                    ? onnx::elementTypeOf(builder.getContext(), blob.getElementType())
                    : storedType(blob.getElementType());
  auto where = otf::BlobAttr::get(builder.getContext(), blob.getFile(), blob.getOffset(),
                                  blob.getLength(), stored, transposed);
  for (WeightOp existing : weights[where])
    if (existing.getType() == type && existing.getGivenAttr() == given && tapsOf(existing) == taps)
      return existing;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(target);
  WeightOp op = WeightOp::create(builder, NameLoc::get(builder.getStringAttr(name)), builder.getStringAttr(name),
                                 TypeAttr::get(type), where, /*scale=*/FlatSymbolRefAttr(),
                                 /*encoding=*/EncodingAttr(), /*outliers=*/OutliersAttr(),
                                 /*vocabulary=*/UnitAttr(), given, /*keeps_given=*/UnitAttr(),
                                 /*float_activations=*/UnitAttr(), /*feedback=*/FloatAttr(),
                                 /*rotation=*/RotationAttr(), /*joint_fit=*/UnitAttr());
  if (taps != 1)
    op->setDiscardableAttr(kTapsAttribute, builder.getI64IntegerAttr(taps));
  symbols.insert(op); // renames on a clash
  weights[where].push_back(op);
  return op;
}

bool Raiser::isMatrix(const Known &what) {
  if (what.given)
    return what.rank() == 2; // all else by who gave it
  auto blob = dyn_cast_or_null<onnx::FileBlobAttr>(what.constant);
  return blob && what.rank() == 2 && isa_and_nonnull<Float32Type>(internalType(what.elementType)) &&
         llvm::all_of(what.sizes, [](const Size &size) {
           return size != Size(0) && Size(kMostColumns).isAtLeast(size);
         });
}

Value Raiser::matrix(Known &what, bool transposed, int64_t taps) {
  if (!isMatrix(what))
    return {};
  SmallVector<Size> sizes(what.sizes);
  if (transposed)
    std::swap(sizes[0], sizes[1]);
  RankedTensorType shape = tensorType(builder.getF32Type(), sizes);
  WeightOp op = what.given ? givenWeight(*what.given, shape, transposed, taps)
                           : weight(cast<onnx::FileBlobAttr>(what.constant), what.name, shape, transposed,
                                    /*given=*/{}, taps);
  auto plain = EncodingAttr::get(builder.getContext(), EncodingKind::f32, 0);
  auto type = MatrixType::get(builder.getContext(), *sizes[0].constant(), *sizes[1].constant(),
                              plain, 0);
  return UseOp::create(builder, *currentLocation, type, op.getSymName());
}

LogicalResult Raiser::setConstant(Value result, Attribute value, StringRef name) {
  Known what;
  what.name = name.str();
  if (auto blob = dyn_cast<onnx::FileBlobAttr>(value)) {
    what.elementType = blob.getElementType();
    for (int64_t dim : blob.getDims())
      what.sizes.push_back(dim);
    what.constant = blob;
    if (!internalType(what.elementType))
      return emitError(result.getLoc()) << "element type " << onnx::elementTypeName(what.elementType)
                                        << " is not supported";
    known(result) = std::move(what);
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return emitError(result.getLoc()) << "a constant must be numbers";
  Type elementType = dense.getElementType();
  for (int64_t dim : dense.getType().getShape())
    what.sizes.push_back(dim);
  what.elementType = onnx::elementNumberOf(elementType);
  if (isCoded(what.elementType)) {
    what.integers.emplace();
    for (APFloat element : dense.getValues<APFloat>())
      what.integers->push_back(Size(int64_t(element.bitcastToAPInt().getZExtValue())));
  } else if (isa<FloatType>(elementType)) {
    what.reals.emplace();
    for (APFloat element : dense.getValues<APFloat>()) {
      bool lost;
      element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      what.reals->push_back(element.convertToDouble());
    }
  } else if (auto integer = dyn_cast<IntegerType>(elementType)) {
    bool isNatural = integer.isUnsigned() || integer.getWidth() == 1;
    what.integers.emplace();
    for (APInt element : dense.getValues<APInt>())
      what.integers->push_back(Size(isNatural ? int64_t(element.getZExtValue()) : element.getSExtValue()));
  } else {
    return emitError(result.getLoc()) << "constants of " << elementType << " are not supported";
  }
  if (!internalType(what.elementType))
    return emitError(result.getLoc()) << "constants of " << elementType << " are not supported";
  known(result) = std::move(what);
  return success();
}

Attribute Raiser::denseConstant(Attribute value) {
  if (auto real = dyn_cast_or_null<FloatAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({}, real.getType()), ArrayRef<Attribute>(real));
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({}, integer.getType()),
                                  ArrayRef<Attribute>(integer));
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({array.size()}, builder.getI64Type()),
                                  array.asArrayRef());
  if (auto array = dyn_cast_or_null<DenseF32ArrayAttr>(value))
    return DenseElementsAttr::get(RankedTensorType::get({array.size()}, builder.getF32Type()),
                                  array.asArrayRef());
  return {};
}
