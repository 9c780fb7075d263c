// SPDX-License-Identifier: Apache-2.0
//
// Codes of 2, 4 or 8 bits are packed without gaps, lowest bits first (FP4 and NF4 of bitsandbytes: highest first); an element's
// place is row · pitch + column, or the other way round in a file that has the matrix transposed.

#include "lib/Import/GivenWeight.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/OTF/Codes.h"

#include <cstring>

using namespace mlir;

namespace otf {

float GivenWeight::number(const Numbers &numbers, int64_t at) {
  if (!numbers.bytes)
    return numbers.values[size_t(at)];
  uint16_t half;
  float single;
  double wide;
  switch (numbers.type) {
  case onnx::ElementType::Float16:
    std::memcpy(&half, numbers.bytes + 2 * at, 2);
    return floatOfHalf(half);
  case onnx::ElementType::BFloat16: {
    std::memcpy(&half, numbers.bytes + 2 * at, 2);
    uint32_t bits = uint32_t(half) << 16;
    std::memcpy(&single, &bits, 4);
    return single;
  }
  case onnx::ElementType::Double:
    std::memcpy(&wide, numbers.bytes + 8 * at, 8);
    return float(wide);
  default:
    std::memcpy(&single, numbers.bytes + 4 * at, 4);
    return single;
  }
}

llvm::Expected<GivenWeight::Numbers> GivenWeight::open(const FileSet &files, Attribute attribute) {
  Numbers result;
  if (auto values = dyn_cast<DenseF32ArrayAttr>(attribute)) {
    result.values.assign(values.asArrayRef().begin(), values.asArrayRef().end());
    result.count = values.size();
    return result;
  }
  auto blob = cast<BlobAttr>(attribute); // by the verifier
  result.type = onnx::elementNumberOf(blob.getType());
  int64_t bytes = blob.getType().getIntOrFloatBitWidth() / 8;
  result.count = blob.getLength() / bytes;
  WeightSource source(files);
  llvm::Expected<const std::byte *> data =
      source.data({blob.getFile(), blob.getOffset(), blob.getLength(), result.type, {result.count}});
  if (!data)
    return data.takeError();
  result.bytes = *data;
  return result;
}

llvm::Expected<GivenWeight> GivenWeight::open(const FileSet &files, WeightOp weight, int64_t rows, int64_t columns) {
  GivenAttr given = *weight.getGiven();
  BlobAttr blob = weight.getBlob();
  GivenWeight result;
  result.rows = rows;
  result.columns = columns;
  result.bits = given.getBits();
  result.isSigned = given.getIsSigned();
  result.highFirst = given.getHighFirst();
  result.pitch = given.getPitch();
  result.rowBlock = given.getRowBlock();
  result.block = given.getBlock();
  result.transposed = blob.getTransposed();
  result.codesOnly = weight->hasAttr(kRowScalesAttribute);
  result.scaleRow = given.getScaleRow();
  result.scaleBlock = given.getScaleBlock();
  result.zeroRow = given.getZeroRow();
  result.zeroBlock = given.getZeroBlock();
  result.zero = given.getZero();
  if (given.getTable())
    result.table.assign(given.getTable().asArrayRef().begin(), given.getTable().asArrayRef().end());
  WeightSource source(files);
  llvm::Expected<const std::byte *> bytes = source.data(
      {blob.getFile(), blob.getOffset(), blob.getLength(), onnx::ElementType::UInt8, {blob.getLength()}});
  if (!bytes)
    return bytes.takeError();
  result.codes = *bytes;
  llvm::Expected<Numbers> scales = open(files, given.getScales());
  if (!scales)
    return scales.takeError();
  result.scales = std::move(*scales);
  if (given.getZeros()) {
    llvm::Expected<Numbers> zeros = open(files, given.getZeros());
    if (!zeros)
      return zeros.takeError();
    result.zeros = std::move(*zeros);
    result.packedZeros = result.zeros.bytes && isa<IntegerType>(cast<BlobAttr>(given.getZeros()).getType());
  }
  // Places grow with row and column, so the last one decides. Sizes are below 2^31, so products fit.
  int64_t lastRow = rows - 1, lastBlock = result.blocks() - 1;
  int64_t lastCode = result.transposed ? (columns - 1) * result.pitch + lastRow : lastRow * result.pitch + columns - 1;
  int64_t perByte = 8 / result.bits;
  bool inside = lastCode / perByte < blob.getLength() &&
                lastRow / result.rowBlock * result.scaleRow + lastBlock * result.scaleBlock < result.scales.count;
  if (given.getZeros())
    inside = inside && (lastRow / result.rowBlock * result.zeroRow + lastBlock * result.zeroBlock) / (result.packedZeros ? perByte : 1) <
                           result.zeros.count;
  if (!inside)
    return llvm::createStringError("its codes, scales or zero points are fewer than its shape needs");
  return result;
}

int GivenWeight::code(const std::byte *from, int64_t at) const {
  int64_t perByte = 8 / bits;
  int64_t place = highFirst ? perByte - 1 - at % perByte : at % perByte;
  int value = int(uint8_t(from[at / perByte]) >> (place * bits)) & ((1 << bits) - 1);
  return isSigned && value >> (bits - 1) ? value - (1 << bits) : value;
}

float GivenWeight::point(int64_t row, int64_t at) const {
  int64_t place = row / rowBlock * zeroRow + at * zeroBlock;
  if (packedZeros)
    return float(code(zeros.bytes, place));
  return zeros.count != 0 ? number(zeros, place) : float(zero);
}

void GivenWeight::read(int64_t firstRow, int64_t rowCount, float *out) const {
  // A column of all rows before the next one where that is the order of the file.
  for (int64_t at = 0; at < blocks(); ++at) {
    int64_t begin = at * block, end = std::min(begin + block, columns);
    if (!transposed) {
      for (int64_t row = 0; row < rowCount; ++row) {
        float s = scale(firstRow + row, at), p = point(firstRow + row, at);
        for (int64_t column = begin; column < end; ++column)
          out[row * columns + column] = value(code(codes, (firstRow + row) * pitch + column), s, p);
      }
      continue;
    }
    constexpr int64_t kRun = 256;
    float s[kRun], p[kRun];
    for (int64_t run = 0; run < rowCount; run += kRun) {
      int64_t count = std::min(kRun, rowCount - run);
      for (int64_t i = 0; i < count; ++i) {
        s[i] = scale(firstRow + run + i, at);
        p[i] = point(firstRow + run + i, at);
      }
      for (int64_t column = begin; column < end; ++column)
        for (int64_t i = 0; i < count; ++i)
          out[(run + i) * columns + column] = value(code(codes, column * pitch + firstRow + run + i), s[i], p[i]);
    }
  }
}

} // namespace otf
