// SPDX-License-Identifier: Apache-2.0
//
// The fold and units are applied in f32, in which the weights are read; then rows are rotated in f64 and rounded.

#include "lib/Compile/WeightRows.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/OTF/Derived.h"
#include "dialects/OTF/Taps.h"
#include "lib/Import/FileSet.h"

#include "llvm/Support/Path.h"

#include <algorithm>

using namespace mlir;

namespace otf {

static Blob blobOf(WeightOp weight, int64_t rows, int64_t columns) {
  BlobAttr from = weight.getBlob();
  Blob blob{from.getFile(),
            from.getOffset(),
            from.getLength(),
            onnx::elementNumberOf(from.getType()),
            {rows, columns}};
  if (from.getTransposed())
    std::swap(blob.dims[0], blob.dims[1]);
  return blob;
}

llvm::Expected<WeightRows> WeightRows::open(const FileSet &files, WeightOp weight, int64_t rows,
                                            int64_t columns) {
  WeightRows result(files);
  if (!derivedPart(weight).empty())
    return llvm::createStringError("no file has it: it is derived from other weights while a plan is written");
  if (auto units = weight->getAttrOfType<DenseFPElementsAttr>(kUnitAttribute)) {
    if (units.getNumElements() != columns)
      return llvm::createStringError("it has " + Twine(units.getNumElements()) + " units for " + Twine(columns) + " columns");
    result.unit.assign(units.value_begin<float>(), units.value_end<float>());
  }
  result.blob = blobOf(weight, rows, columns);
  result.transposed = weight.getBlob().getTransposed();
  result.synthetic = result.blob.file >= 0 && result.blob.file < int64_t(files.size()) && files.isSynthetic(unsigned(result.blob.file));
  result.columns = columns;
  result.taps = tapsOf(weight);
  if (weight.getGiven()) {
    llvm::Expected<GivenWeight> given = GivenWeight::open(files, weight, rows, columns);
    if (!given)
      return given.takeError();
    result.quantized = std::move(*given);
  }
  if (RotationAttr rotation = weight.getRotationAttr()) {
    result.rotation = {rotation.getBlock(), rotation.getFactor(), rotation.getSeed()};
    result.factor = rotationFactor(result.rotation);
  }
  if (!weight.getScaleAttr())
    return result;
  auto gain = SymbolTable::lookupNearestSymbolFrom<WeightOp>(weight, weight.getScaleAttr());
  if (!gain)
    return llvm::createStringError("its scale is no otf.weight");
  result.scale.resize(size_t(columns));
  if (llvm::Error error =
          result.source.readRows(blobOf(gain, 1, columns), 0, 1, false, result.scale.data()))
    return std::move(error);
  return result;
}

WeightRows WeightRows::ofFloats(const FileSet &files, std::vector<float> values, int64_t columns) {
  WeightRows result(files);
  result.memory = std::move(values);
  result.columns = columns;
  return result;
}

llvm::Error WeightRows::read(int64_t firstRow, int64_t rowCount, float *out) const {
  if (!memory.empty()) {
    std::copy_n(memory.begin() + firstRow * columns, rowCount * columns, out);
    return llvm::Error::success();
  }
  if (quantized)
    quantized->read(firstRow, rowCount, out);
  else if (llvm::Error error = source.readRows(blob, firstRow, rowCount, transposed, out))
    return error;
  turnTaps(out, rowCount, columns, taps);
  if (!scale.empty())
    for (int64_t row = 0; row < rowCount; ++row)
      for (int64_t column = 0; column < columns; ++column)
        out[row * columns + column] *= scale[size_t(column)];
  if (!unit.empty())
    for (int64_t row = 0; row < rowCount; ++row)
      for (int64_t column = 0; column < columns; ++column)
        out[row * columns + column] *= unit[size_t(column)];
  if (!factor.empty()) {
    std::vector<double> wide(static_cast<size_t>(columns));
    for (int64_t row = 0; row < rowCount; ++row) {
      float *narrow = out + row * columns;
      std::copy_n(narrow, columns, wide.begin());
      rotateExact(rotation, factor.data(), columns, wide.data());
      for (int64_t column = 0; column < columns; ++column)
        narrow[column] = float(wide[size_t(column)]);
    }
  }
  return llvm::Error::success();
}

namespace {

class FileWeights : public WeightReader {
public:
  explicit FileWeights(const FileSet *files) : files(files) {}
  explicit FileWeights(std::unique_ptr<FileSet> set) : owned(std::move(set)), files(owned.get()) {}

  llvm::Error readRows(WeightOp weight, int64_t firstRow, int64_t rowCount, float *out) override {
    auto type = cast<RankedTensorType>(weight.getType());
    llvm::Expected<WeightRows> rows =
        WeightRows::open(*files, weight, type.getDimSize(0), type.getDimSize(1));
    if (!rows)
      return rows.takeError();
    return rows->read(firstRow, rowCount, out);
  }

private:
  std::unique_ptr<FileSet> owned;
  const FileSet *files;
};

} // namespace

WeightReaderFactory readWeightsFrom(const FileSet &files) {
  return [&files](ModuleOp, llvm::StringRef) -> llvm::Expected<std::unique_ptr<WeightReader>> {
    return std::make_unique<FileWeights>(&files);
  };
}

WeightReaderFactory reopenWeights() {
  return
      [](ModuleOp module, llvm::StringRef model) -> llvm::Expected<std::unique_ptr<WeightReader>> {
        auto folder = module->getAttrOfType<StringAttr>("onnx.folder");
        auto names = module->getAttrOfType<ArrayAttr>("onnx.files");
        if (!names || (!folder && model.empty()))
          return llvm::createStringError("the module names no files (onnx.folder and onnx.files)");
        std::vector<std::string> files;
        for (Attribute name : names)
          if (auto text = dyn_cast<StringAttr>(name))
            files.push_back(text.str());
        llvm::StringRef where = folder ? folder.getValue() : "";
        if (!model.empty()) {
          llvm::StringRef parent = llvm::sys::path::parent_path(model);
          where = parent.empty() ? "." : parent;
        }
        llvm::Expected<FileSet> set = FileSet::reopen(where, files);
        if (!set)
          return set.takeError();
        return std::make_unique<FileWeights>(std::make_unique<FileSet>(std::move(*set)));
      };
}

} // namespace otf
