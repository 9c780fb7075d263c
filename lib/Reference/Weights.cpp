// SPDX-License-Identifier: Apache-2.0
//
// Floats go through WeightSource, which turns transposed files; f64 and integers are copied here,
// since they do not fit a float.

#include "lib/Reference/Weights.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/GivenWeight.h"
#include "lib/Import/WeightSource.h"
#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "dialects/OTF/Taps.h"
#include "lib/Encoding/Rotation.h"
#include "lib/Reference/Failure.h"
#include "lib/Reference/MatrixCodec.h"

using namespace mlir;

namespace otf::reference {

namespace {

/// The bytes of a weight seen as rows × columns.
class Source {
public:
  Source(const FileSet &files, WeightOp weight, int64_t rows, int64_t columns)
      : source(files), transposed(weight.getBlob().getTransposed()), taps(tapsOf(weight)) {
    BlobAttr from = weight.getBlob();
    blob = {from.getFile(), from.getOffset(), from.getLength(),
            onnx::elementNumberOf(from.getType()), {rows, columns}};
    if (transposed)
      std::swap(blob.dims[0], blob.dims[1]);
  }

  llvm::Error floats(int64_t first, int64_t count, float *out) const {
    if (llvm::Error error = source.readRows(blob, first, count, transposed, out))
      return error;
    turnTaps(out, count, blob.dims[transposed ? 0 : 1], taps);
    return llvm::Error::success();
  }
  llvm::Expected<std::vector<double>> reals() const {
    if (blob.elementType == onnx::ElementType::Double && !transposed && taps == 1)
      return copy<double, double>();
    int64_t rows = blob.dims[transposed ? 1 : 0], columns = blob.dims[transposed ? 0 : 1];
    std::vector<float> values(size_t(rows * columns));
    if (llvm::Error error = floats(0, rows, values.data()))
      return std::move(error);
    return std::vector<double>(values.begin(), values.end());
  }
  template <typename T, typename As> llvm::Expected<std::vector<As>> copy() const {
    llvm::Expected<const std::byte *> bytes = source.data(blob);
    if (!bytes)
      return bytes.takeError();
    std::vector<As> values(size_t(blob.length) / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, *bytes + i * sizeof(T), sizeof(T));
      values[i] = As(value);
    }
    return values;
  }

  /// Of 8 bits an element, or fewer.
  llvm::Expected<std::vector<int64_t>> bytes() const {
    if (onnx::elementBits(blob.elementType) == 8)
      return copy<int8_t, int64_t>();
    std::vector<int8_t> values(size_t(*onnx::elementCount(blob.dims)));
    if (llvm::Error error = source.unpack(blob, 0, int64_t(values.size()), values.data()))
      return std::move(error);
    return std::vector<int64_t>(values.begin(), values.end());
  }

private:
  WeightSource source;
  Blob blob;
  bool transposed;
  int64_t taps;
};

/// The weight that `weight` is scaled by, one factor a column; empty for none.
llvm::Expected<std::vector<double>> readScale(WeightOp weight, int64_t columns,
                                              const FileSet &files) {
  if (!weight.getScaleAttr())
    return std::vector<double>();
  auto gain = SymbolTable::lookupNearestSymbolFrom<WeightOp>(weight, weight.getScaleAttr());
  if (!gain)
    return llvm::createStringError("its scale is no otf.weight");
  return Source(files, gain, 1, columns).reals();
}

llvm::Expected<Content> readMatrix(WeightOp weight, MatrixType type, const FileSet &files) {
  Matrix matrix;
  matrix.rows = type.getRows();
  matrix.columns = type.getColumns();
  if (type.getOutliers() != 0) {
    if (weight.getOutliers())
      matrix.outliers.assign(weight.getOutliers()->getColumns().begin(),
                             weight.getOutliers()->getColumns().end());
    if (int64_t(matrix.outliers.size()) != type.getOutliers())
      return llvm::createStringError("it has " + Twine(matrix.outliers.size()) +
                                     " outlier columns, not " + Twine(type.getOutliers()));
  }
  llvm::Expected<std::vector<double>> scale = readScale(weight, matrix.columns, files);
  if (!scale)
    return scale.takeError();
  if (!derivedPart(weight).empty() || weight->hasAttr(kUnitAttribute))
    return llvm::createStringError("it is derived from others or has units, which only a plan holds");
  Source source(files, weight, matrix.rows, matrix.columns);
  if (!weight.getGiven() && weight->hasAttr(kRowScalesAttribute))
    return llvm::createStringError("its rows are codes with a scale each, which only a plan holds");
  std::optional<GivenWeight> given;
  if (weight.getGiven()) {
    if (weight.getKeepsGiven())
      return llvm::createStringError("it keeps codes of the file, which only a plan holds");
    llvm::Expected<GivenWeight> opened = GivenWeight::open(files, weight, matrix.rows, matrix.columns);
    if (!opened)
      return opened.takeError();
    given = std::move(*opened);
  }
  Rotation rotation;
  std::vector<double> factor;
  if (RotationAttr by = weight.getRotationAttr()) {
    rotation = {by.getBlock(), by.getFactor(), by.getSeed()};
    factor = rotationFactor(rotation);
  }
  auto read = [&](int64_t first, int64_t count, float *rows) -> std::string {
    if (given) {
      given->read(first, count, rows);
      turnTaps(rows, count, matrix.columns, tapsOf(weight));
    } else if (llvm::Error error = source.floats(first, count, rows))
      return llvm::toString(std::move(error));
    for (int64_t i = 0; !scale->empty() && i < count * matrix.columns; ++i)
      rows[i] *= float((*scale)[size_t(i % matrix.columns)]);
    for (int64_t row = 0; !factor.empty() && row < count; ++row) {
      float *at = rows + row * matrix.columns;
      std::vector<double> wide(at, at + matrix.columns);
      rotateExact(rotation, factor.data(), matrix.columns, wide.data());
      std::copy(wide.begin(), wide.end(), at);
    }
    return {};
  };
  EncodingAttr encoding = type.getEncoding();
  std::string problem = recode(matrix, int(encoding.getKind()), encoding.getGroup(), read, weight.getJointFit());
  if (!problem.empty())
    return llvm::createStringError(problem);
  if (encoding.getKind() == EncodingKind::f32 && !scale->empty() && !given && factor.empty()) {
    llvm::Expected<std::vector<double>> exact = source.reals();
    if (!exact)
      return exact.takeError();
    for (size_t i = 0; i < exact->size(); ++i)
      matrix.weights[i] = (*exact)[i] * (*scale)[i % size_t(matrix.columns)];
  }
  return matrix;
}

llvm::Expected<Content> readTensor(WeightOp weight, RankedTensorType type,
                                   const FileSet &files) {
  Shape shape(type.getShape().begin(), type.getShape().end());
  int64_t columns = shape.empty() ? 1 : shape.back();
  int64_t rows = columns == 0 ? 0 : elementCount(shape) / columns;
  bool turned = weight.getBlob().getTransposed();
  if ((turned || weight.getScaleAttr()) && shape.size() != 2)
    return llvm::createStringError("only a matrix can be scaled or transposed");
  if (!derivedPart(weight).empty())
    return llvm::createStringError("it is derived from others, which only a plan holds");
  Source source(files, weight, rows, columns);
  if (isa<FloatType>(type.getElementType())) {
    llvm::Expected<std::vector<double>> reals = source.reals();
    if (!reals)
      return reals.takeError();
    llvm::Expected<std::vector<double>> scale = readScale(weight, columns, files);
    if (!scale)
      return scale.takeError();
    for (size_t i = 0; !scale->empty() && i < reals->size(); ++i)
      (*reals)[i] *= (*scale)[i % size_t(columns)];
    return Tensor::ofReals(shape, std::move(*reals));
  }
  if (turned)
    return llvm::createStringError("integers cannot be transposed");
  auto wrap = [&](llvm::Expected<std::vector<int64_t>> values) -> llvm::Expected<Content> {
    if (!values)
      return values.takeError();
    return Tensor::ofIntegers(shape, std::move(*values));
  };
  switch (type.getElementType().isIntOrFloat() ? type.getElementTypeBitWidth() : 0) {
  case 1: {
    llvm::Expected<std::vector<int64_t>> bytes = source.copy<uint8_t, int64_t>();
    for (size_t i = 0; bytes && i < bytes->size(); ++i)
      (*bytes)[i] = (*bytes)[i] != 0;
    return wrap(std::move(bytes));
  }
  case 8:
    return wrap(source.bytes());
  case 16:
    return wrap(source.copy<int16_t, int64_t>());
  case 32:
    return wrap(source.copy<int32_t, int64_t>());
  case 64:
    return wrap(source.copy<int64_t, int64_t>());
  }
  return llvm::createStringError("its element type is not supported");
}

} // namespace

llvm::Expected<Content> readWeight(UseOp use, const FileSet &files) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(use, use.getWeightAttr());
  if (!weight)
    return failure(use, "names no otf.weight");
  llvm::Expected<Content> content =
      isa<MatrixType>(use.getType())
          ? readMatrix(weight, cast<MatrixType>(use.getType()), files)
          : readTensor(weight, cast<RankedTensorType>(use.getType()), files);
  if (content)
    return content;
  return failure(use, "cannot read @" + weight.getSymName() + ": " +
                          llvm::toString(content.takeError()));
}

} // namespace otf::reference
