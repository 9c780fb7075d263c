// SPDX-License-Identifier: Apache-2.0
//
// Conversion is one function a type over a contiguous run of elements; rows are runs, and a transposed block is runs
// of columns that are scattered.

#include "lib/Import/WeightSource.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/FileSet.h"
#include "lib/Import/SyntheticValues.h"

#include <bit>
#include <cstring>

namespace otf {

static_assert(std::endian::native == std::endian::little, "ONNX files are little-endian");

float floatOfHalf(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) // infinity, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400)
    return std::bit_cast<float>(sign | ((magnitude << 13) + ((127 - 15) << 23)));
  float small = static_cast<float>(magnitude) * 0x1p-24f; // subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

namespace {

struct Half {
  uint16_t bits;
  operator float() const { return floatOfHalf(bits); }
};

struct Brain {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

using Convert = void (*)(const std::byte *from, int64_t count, float *to);

template <typename T> void convert(const std::byte *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T)); // offsets in a file need not be aligned
    to[i] = static_cast<float>(value);
  }
}

Convert converterOf(int64_t type) {
  using namespace onnx;
  switch (type) {
  case ElementType::Float: return convert<float>;
  case ElementType::Float16: return convert<Half>;
  case ElementType::BFloat16: return convert<Brain>;
  case ElementType::Double: return convert<double>;
  case ElementType::Bool:
  case ElementType::UInt8: return convert<uint8_t>;
  case ElementType::Int8: return convert<int8_t>;
  case ElementType::UInt16: return convert<uint16_t>;
  case ElementType::Int16: return convert<int16_t>;
  case ElementType::UInt32: return convert<uint32_t>;
  case ElementType::Int32: return convert<int32_t>;
  default: return nullptr;
  }
}

} // namespace

Blob Blob::of(onnx::FileBlobAttr attribute) {
  return {attribute.getFile(), attribute.getOffset(), attribute.getLength(), attribute.getElementType(),
          llvm::SmallVector<int64_t, 4>(attribute.getDims())};
}

llvm::Expected<const std::byte *> WeightSource::data(const Blob &blob) const {
  if (blob.file < 0 || blob.file >= static_cast<int64_t>(files->size()))
    return llvm::createStringError("blob names file " + std::to_string(blob.file) + " (there are " +
                                   std::to_string(files->size()) + "; see onnx.files)");
  if (files->isSynthetic(unsigned(blob.file)))
    return llvm::createStringError(files->name(blob.file).str() +
                                   ": synthetic values are rows of a weight, and this tensor is used otherwise (put it into the model's file)");
  llvm::ArrayRef<std::byte> bytes = files->bytes(blob.file);
  int64_t size = bytes.size();
  if (blob.offset < 0 || blob.length < 0 || blob.offset > size || blob.length > size - blob.offset)
    return llvm::createStringError(files->name(blob.file).str() + ": blob of " + std::to_string(blob.length) +
                                   " bytes at " + std::to_string(blob.offset) + " leaves the file (it has " +
                                   std::to_string(size) + " bytes; was it replaced?)");
  std::optional<uint64_t> expected = onnx::tensorBytes(blob.elementType, blob.dims);
  if (!expected || *expected != static_cast<uint64_t>(blob.length))
    return llvm::createStringError(files->name(blob.file).str() + ": blob of " + std::to_string(blob.length) +
                                   " bytes does not have the size of its shape (element type " +
                                   onnx::elementTypeName(blob.elementType) + ")");
  return bytes.data() + blob.offset;
}

llvm::Error WeightSource::readRows(const Blob &blob, int64_t firstRow, int64_t rowCount, bool transposed,
                                   float *out) const {
  const bool isSynthetic = blob.file >= 0 && blob.file < int64_t(files->size()) && files->isSynthetic(unsigned(blob.file));
  const std::byte *base = nullptr;
  if (!isSynthetic) {
    llvm::Expected<const std::byte *> bytes = data(blob);
    if (!bytes)
      return bytes.takeError();
    base = *bytes;
  }
  Convert convert = converterOf(blob.elementType);
  if (!convert || blob.dims.empty())
    return llvm::createStringError(files->name(blob.file).str() + ": a tensor of type " +
                                   onnx::elementTypeName(blob.elementType) + " and rank " +
                                   std::to_string(blob.dims.size()) + " cannot be read as rows of floats");
  llvm::ArrayRef<int64_t> dims = blob.dims;
  int64_t outer = *onnx::elementCount(transposed ? dims.drop_back() : dims.take_front());
  int64_t inner = *onnx::elementCount(transposed ? dims.take_back() : dims.drop_front());
  int64_t rows = transposed ? inner : outer;
  if (firstRow < 0 || rowCount < 0 || firstRow > rows || rowCount > rows - firstRow)
    return llvm::createStringError(files->name(blob.file).str() + ": rows " + std::to_string(firstRow) + " + " +
                                   std::to_string(rowCount) + " of a matrix with " + std::to_string(rows) + " rows");
  int64_t size = onnx::elementBits(blob.elementType) / 8;
  std::optional<SyntheticValues> made;
  if (isSynthetic)
    made.emplace(files->name(unsigned(blob.file)), rows, transposed ? outer : inner);
  auto take = [&](int64_t first, int64_t count, float *to) {
    if (made)
      made->make(first, count, to);
    else
      convert(base + first * size, count, to);
  };
  if (!transposed) {
    take(firstRow * inner, rowCount * inner, out);
    return llvm::Error::success();
  }
  constexpr int64_t kRun = 256;
  float run[kRun];
  for (int64_t r = 0; r < rowCount; r += kRun) {
    int64_t count = std::min(kRun, rowCount - r);
    for (int64_t k = 0; k < outer; ++k) {
      take(k * inner + firstRow + r, count, run);
      for (int64_t i = 0; i < count; ++i)
        out[(r + i) * outer + k] = run[i];
    }
  }
  return llvm::Error::success();
}

llvm::Error WeightSource::unpack(const Blob &blob, int64_t first, int64_t count, int8_t *out) const {
  llvm::Expected<const std::byte *> base = data(blob);
  if (!base)
    return base.takeError();
  int64_t bits = onnx::elementBits(blob.elementType), elements = *onnx::elementCount(blob.dims);
  if (bits >= 8 || first < 0 || count < 0 || first > elements || count > elements - first)
    return llvm::createStringError(files->name(blob.file).str() + ": elements " + std::to_string(first) + " + " +
                                   std::to_string(count) + " of " + std::to_string(elements) + " of type " +
                                   onnx::elementTypeName(blob.elementType) + " cannot be unpacked");
  bool isSigned = blob.elementType == onnx::ElementType::Int4 || blob.elementType == onnx::ElementType::Int2;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = (first + i) * bits;
    // The element at the top of a byte, and down again.
    auto top = uint8_t(unsigned((*base)[at / 8]) << (8 - bits - at % 8));
    out[i] = int8_t(isSigned ? int8_t(top) >> (8 - bits) : top >> (8 - bits));
  }
  return llvm::Error::success();
}

} // namespace otf
