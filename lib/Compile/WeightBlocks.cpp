// SPDX-License-Identifier: Apache-2.0
//
// A megabyte of floats is a block where coding is quick; where a code is searched, or chosen by feedback, a quarter of that is
// enough work, but for at least as many rows as FeedbackPlanes codes together.

#include "lib/Compile/WeightBlocks.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "lib/Compile/GridDetector.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace otf {

static constexpr int64_t kBlockBytes = 1 << 20, kSearchedBytes = 1 << 18, kMostBlockBytes = 16 << 20;
static constexpr int64_t kLeastRows = 16, kLeastSearchedRows = 32; // the grid's detector looks at 16
/// Rows of a transposed matrix are columns in the file; so many at once use whole cache lines.
static constexpr int64_t kTransposedRows = 64;
/// Copies of a row that coding with feedback has at hand: weights, targets, errors, ...
static constexpr int64_t kFeedbackArrays = 8;

/// The grid of rows [first, first + count) as an encoding with codes around 0 takes it.
static GivenGrid gridOf(const GivenWeight &given, int64_t bits, bool isSigned, bool zeros, int64_t first, int64_t count) {
  int64_t groups = given.blocks();
  float middle = isSigned ? 0.0f : float(1 << (bits - 1));
  GivenGrid grid;
  grid.scales.resize(size_t(count * groups));
  grid.zeros.resize(zeros ? size_t(count * groups) : 0);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t at = 0; at < groups; ++at) {
      float scale = given.scale(first + row, at);
      grid.scales[size_t(row * groups + at)] = scale;
      if (zeros)
        grid.zeros[size_t(row * groups + at)] = scale * (middle - given.point(first + row, at));
    }
  return grid;
}

/// Makes rows that have a scale each the codes of otf-choose-grids.
static void toCodes(DenseFPElementsAttr scales, int64_t first, int64_t rows, int64_t columns, float *floats,
                    CodingError &error) {
  auto scale = scales.value_begin<float>() + first;
  for (int64_t row = 0; row < rows; ++row, ++scale)
    for (float &value : llvm::MutableArrayRef(floats + row * columns, size_t(columns))) {
      double code = codeOf(value, *scale), difference = double(value) - code * double(*scale);
      error.weight += double(value) * double(value);
      error.difference += difference * difference;
      value = float(code);
    }
}

WeightBlocks::WeightBlocks(StoredWeight &stored, WeightRows rows)
    : stored(&stored), source(std::move(rows)), parts(divide(stored, source.isSynthetic())) {
  auto scales = stored.weight->getAttrOfType<DenseFPElementsAttr>(kRowScalesAttribute);
  if (stored.isMatrix() && scales && !stored.weight.getGiven())
    rowScales = scales;
}

llvm::Expected<WeightBlocks> WeightBlocks::open(StoredWeight &stored, llvm::Expected<WeightRows> rows) {
  if (!rows)
    return rows.takeError();
  WeightBlocks result(stored, std::move(*rows));
  if (result.parts.form != Form::none)
    return result;
  std::string words;
  llvm::raw_string_ostream(words) << "a tensor of " << stored.weight.getBlob().getType() << " cannot be stored as "
                                  << cast<RankedTensorType>(stored.content).getElementType();
  return llvm::createStringError(words);
}

WeightBlocks::Parts WeightBlocks::divide(const StoredWeight &stored, bool isSynthetic) {
  WeightOp weight = stored.weight;
  BlobAttr blob = weight.getBlob();
  int64_t columns = stored.columns;
  Parts parts;
  if (stored.isMatrix()) {
    const TileEncoder &tiles = *stored.tiles;
    bool feeds = bool(weight.getFeedbackAttr());
    auto rowsIn = [&](int64_t bytes) { return bytes / (columns * 4); };
    parts.form = Form::matrix;
    parts.rows = feeds || tiles.isSearched() ? std::max(kLeastSearchedRows, rowsIn(kSearchedBytes) / 32 * 32)
                                             : std::max(kLeastRows, rowsIn(kBlockBytes) / 8 * 8);
    if (blob.getTransposed())
      parts.rows = std::max(parts.rows, std::min(kTransposedRows, rowsIn(kMostBlockBytes) / 8 * 8));
    parts.rows = std::min(parts.rows, int64_t(llvm::alignTo(stored.rows, 8)));
    parts.memory = parts.rows * columns * 4 + parts.rows / 8 * tiles.tileBytes() +
                   (feeds ? kLeastSearchedRows * columns * 4 * kFeedbackArrays : 0);
  } else {
    Type to = cast<RankedTensorType>(stored.content).getElementType();
    bool asItIs = !blob.getTransposed() && !weight.getScaleAttr();
    if (stored.size == 0 || (to == blob.getType() && asItIs && !isSynthetic && !weight.getGiven() && derivedPart(weight).empty())) {
      parts.form = Form::mapped;
      return parts;
    }
    if (blob.getType().getIntOrFloatBitWidth() < 8 && to.isInteger(8) && asItIs) {
      parts.form = Form::bytes;
      parts.rows = std::max(int64_t(1), kBlockBytes / columns);
      parts.memory = parts.rows * columns;
    } else if (to.isF32() || to.isF16()) {
      parts.form = Form::tensor;
      parts.rows = std::max(int64_t(1), kBlockBytes / (columns * 4));
      parts.memory = parts.rows * columns * 8;
    } else {
      return parts;
    }
  }
  parts.count = (stored.rows + parts.rows - 1) / parts.rows;
  return parts;
}

CodedBlock WeightBlocks::make(int64_t block, const Feedback *feedback, std::vector<float> &floats) const {
  CodedBlock made;
  int64_t first = block * parts.rows, rows = std::min(parts.rows, stored->rows - first);
  if (parts.form == Form::matrix || parts.form == Form::tensor)
    floats.resize(size_t(rows * stored->columns));
  switch (parts.form) {
  case Form::none:
    return made;
  case Form::mapped: {
    if (stored->size == 0)
      return made;
    llvm::Expected<const std::byte *> bytes = source.raw();
    if (bytes)
      made.view = {*bytes, size_t(stored->size)};
    else
      made.failure = llvm::toString(bytes.takeError());
    return made;
  }
  case Form::bytes:
    made.bytes.resize(size_t(rows * stored->columns));
    made.failure = llvm::toString(source.unpack(first * stored->columns, rows * stored->columns,
                                                reinterpret_cast<int8_t *>(made.bytes.data())));
    break;
  case Form::tensor:
    made.failure = makeTensor(first, rows, floats.data(), made);
    break;
  case Form::matrix:
    made.failure = makeMatrix(first, rows, feedback, floats.data(), made);
    break;
  }
  made.view = made.bytes;
  return made;
}

/// Where the first weight is that is not finite, if one is. A rotation has taken it to all columns of its row.
static std::string placeOf(const float *floats, int64_t first, int64_t rows, int64_t columns, bool rotated) {
  for (int64_t i = 0; i != rows * columns; ++i)
    if (!std::isfinite(floats[i]))
      return ", the first in row " + std::to_string(first + i / columns) + (rotated ? "" : ", column " + std::to_string(i % columns)) +
             " (outputs x inputs); look at what made it, or have --allow-nonfinite keep it as f32";
  return {};
}

std::string WeightBlocks::makeMatrix(int64_t first, int64_t rows, const Feedback *feedback, float *floats,
                                     CodedBlock &made) const {
  const TileEncoder &tiles = *stored->tiles;
  int64_t columns = stored->columns;
  made.bytes.resize(size_t((rows + 7) / 8 * tiles.tileBytes()));
  if (llvm::Error error = source.read(first, rows, floats))
    return llvm::toString(std::move(error));
  if (first == 0 && !source.given() && derivedPart(stored->weight).empty())
    stored->grid = describeGrid(floats, rows, columns);
  GivenGrid grid;
  CodingError ofTiles;
  if (stored->weight.getKeepsGiven()) {
    GivenAttr given = *stored->weight.getGiven();
    if (tiles.groups() != source.given()->blocks())
      return "its groups are not the blocks of the grid that it keeps";
    EncodingKind kind = cast<MatrixType>(stored->content).getEncoding().getKind();
    bool zeros = kind == EncodingKind::grid8z || kind == EncodingKind::grid4z || kind == EncodingKind::grid2z;
    grid = gridOf(*source.given(), given.getBits(), given.getIsSigned(), zeros, first, rows);
  } else if (rowScales) {
    toCodes(*rowScales, first, rows, columns, floats, made.error);
    grid.scales.assign(size_t(rows * tiles.groups()), 1);
    feedback = nullptr;
  }
  if (stored->weight->hasAttr(kNonfiniteAttribute) && cast<MatrixType>(stored->content).getEncoding().getKind() == EncodingKind::f32) {
    tiles.keep(floats, rows, made.bytes.data());
    return {};
  }
  const char *bad = tiles.encode(floats, rows, made.bytes.data(), ofTiles, grid.scales.empty() ? nullptr : &grid, feedback);
  if (!rowScales)
    made.error = ofTiles;
  return bad ? bad + placeOf(floats, first, rows, columns, bool(stored->weight.getRotationAttr())) : "";
}

std::string WeightBlocks::makeTensor(int64_t first, int64_t rows, float *floats, CodedBlock &made) const {
  int64_t count = rows * stored->columns;
  if (llvm::Error error = source.read(first, rows, floats))
    return llvm::toString(std::move(error));
  if (cast<RankedTensorType>(stored->content).getElementType().isF32()) {
    auto bytes = std::as_bytes(std::span(floats, size_t(count)));
    made.bytes.assign(bytes.begin(), bytes.end());
    return {};
  }
  made.bytes.resize(size_t(2 * count));
  const char *bad = toHalf(floats, count, made.bytes.data());
  return bad ? bad : "";
}

} // namespace otf
