// SPDX-License-Identifier: Apache-2.0
//
// A tensor's values stand in one of three places: raw_data (by now a span of the model's file), another file, or a
// typed field (float_data, …), which is packed here. All three become bytes whose number must be that of the shape.

#include "lib/Import/TensorImport.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/WireScan.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace mlir;

namespace otf {

using ::onnx::TensorProto;
namespace ElementType = onnx::ElementType;

static llvm::Error fail(const llvm::Twine &what) { return llvm::createStringError(what); }

namespace {
struct Place {
  int64_t file = 0;
  uint64_t offset = 0, length = 0;
  bool isSynthetic = false;
};
} // namespace

/// "float [4, 4]".
static std::string shapeText(const TensorProto &message) {
  std::string text = onnx::elementTypeName(message.data_type()) + " [";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(message.dims(), stream);
  return text + "]";
}

static llvm::Expected<Place> placeOfExternal(const TensorProto &message, uint64_t bytes, FileSet &files) {
  llvm::StringRef location;
  std::optional<uint64_t> length;
  uint64_t offset = 0;
  for (const auto &entry : message.external_data()) { // other keys say nothing that we use
    uint64_t number = 0;
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (llvm::StringRef(entry.value()).getAsInteger(10, number))
        return fail("external data's " + entry.key() + " is '" + entry.value() + "' (a number of bytes is expected)");
      (entry.key() == "offset" ? offset : length.emplace()) = number;
    }
  }
  if (length && *length != bytes)
    return fail("external data has " + llvm::Twine(*length) + " bytes but " + shapeText(message) + " needs " +
                llvm::Twine(bytes) + " (the file is corrupt; export the model again)");
  if (files.syntheticSeed() && files.isAbsent(location)) {
    int64_t type = message.data_type();
    if (type != ElementType::Float && type != ElementType::Float16 && type != ElementType::BFloat16)
      return fail("external data '" + location + "' is absent, and synthetic values are floats, not " + shapeText(message) +
                  " (put these values into the model's file)");
    return Place{files.addSynthetic(message.name()), 0, bytes, true};
  }
  llvm::Expected<unsigned> file = files.open(location);
  if (!file)
    return file.takeError();
  uint64_t size = files.bytes(*file).size();
  if (offset > size || bytes > size - offset)
    return fail("external data '" + location + "' is too short: " + llvm::Twine(bytes) + " bytes at " +
                llvm::Twine(offset) + " of a file of " + llvm::Twine(size) + " bytes (was its download cut off?)");
  return Place{*file, offset, bytes, false};
}

/// Packs the values of a typed field into elements of `width` bytes.
template <typename Values>
static llvm::Expected<std::vector<std::byte>> pack(const Values &values, uint64_t width, uint64_t bytes,
                                                   const TensorProto &message) {
  using Value = typename Values::value_type;
  if (uint64_t(values.size()) != bytes / width)
    return fail("holds " + llvm::Twine(values.size()) + " values but " + shapeText(message) + " needs " +
                llvm::Twine(bytes / width) + " (the file is corrupt; export the model again)");
  std::vector<std::byte> packed(bytes);
  for (int i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if constexpr (std::is_integral_v<Value>) {
      int64_t bits = int64_t(width) * 8;
      bool isOutside = std::is_signed_v<Value>
                           ? bits < 32 && (int64_t(value) < -(int64_t(1) << (bits - 1)) || int64_t(value) >> bits > 0)
                           : bits < 64 && uint64_t(value) >> bits != 0;
      if (isOutside)
        return fail("value " + llvm::Twine(value) + " does not fit into " +
                    onnx::elementTypeName(message.data_type()) + " (the file is corrupt; export the model again)");
    }
    std::memcpy(&packed[i * width], &value, width); // little-endian: the low bytes
  }
  return packed;
}

static llvm::Expected<std::vector<std::byte>> packTyped(const TensorProto &message, uint64_t bytes) {
  uint64_t width = std::max(onnx::elementBits(message.data_type()), 8u) / 8;
  switch (message.data_type()) {
  case ElementType::Float: return pack(message.float_data(), width, bytes, message);
  case ElementType::Double: return pack(message.double_data(), width, bytes, message);
  case ElementType::Int64: return pack(message.int64_data(), width, bytes, message);
  case ElementType::UInt32:
  case ElementType::UInt64: return pack(message.uint64_data(), width, bytes, message);
  default: return pack(message.int32_data(), width, bytes, message); // a value holds a byte of types below a byte
  }
}

/// Types below a byte take a byte or more an element in an elements attribute; 4-bit floats stay in the file.
static bool fitsElements(int64_t type, uint64_t bytes) {
  return bytes <= kInlineBytes && type != ElementType::Float4E2M1;
}

static Attribute elementsOf(ArrayRef<std::byte> bytes, RankedTensorType type, unsigned bits) {
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (std::byte byte : bytes)
      values.push_back(byte != std::byte(0));
    return DenseElementsAttr::get(type, values);
  }
  if (bits >= 8)
    return DenseElementsAttr::getFromRawBuffer(type, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
  SmallVector<APInt> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    values.emplace_back(bits, (unsigned(bytes[i * bits / 8]) >> (i * bits % 8)) & ((1u << bits) - 1));
  return DenseElementsAttr::get(type, values);
}

llvm::Expected<Attribute> importTensor(const TensorProto &message, FileSet &files, MLIRContext *context) {
  ArrayRef<int64_t> dims(message.dims().data(), message.dims_size());
  int64_t type = message.data_type();
  if (dims.size() > kMaxRank)
    return fail("has " + llvm::Twine(dims.size()) + " dimensions (at most " + llvm::Twine(kMaxRank) + " are supported)");
  for (int64_t dim : dims)
    if (dim < 0)
      return fail("dimension " + llvm::Twine(dim) + " is negative (the file is corrupt; export the model again)");
  Type elementType = onnx::elementTypeOf(context, type);
  if (!elementType)
    return fail("element type " + llvm::Twine(type) + " (" + onnx::elementTypeName(type) +
                ") is not supported (only numbers and bools are; convert the tensor)");
  std::optional<uint64_t> bytes = onnx::tensorBytes(type, dims);
  if (!bytes)
    return fail("size of " + shapeText(message) + " overflows (the file is corrupt; export the model again)");
  if (message.has_segment())
    return fail("is stored in segments (nothing writes these; save the model in one piece)");

  bool isExternal = message.data_location() == TensorProto::EXTERNAL;
  RawSpan raw = decodeSpan(message.raw_data());
  std::pair<const char *, bool> fields[] = {
      {"external_data", isExternal},
      {"raw_data", raw.length != 0},
      {"float_data", message.float_data_size() != 0},
      {"int32_data", message.int32_data_size() != 0},
      {"int64_data", message.int64_data_size() != 0},
      {"double_data", message.double_data_size() != 0},
      {"uint64_data", message.uint64_data_size() != 0},
      {"string_data", message.string_data_size() != 0},
  };
  SmallVector<StringRef> used;
  for (auto [name, isUsed] : fields)
    if (isUsed)
      used.push_back(name);
  if (used.size() > 1)
    return fail("has both " + used[0] + " and " + used[1] + " (only one may hold the values; export the model again)");
  if (used.empty() && *bytes != 0)
    return fail("has no values but " + shapeText(message) + " needs " + llvm::Twine(*bytes) +
                " bytes (was the model saved without its weights?)");

  Place place{0, raw.offset, raw.length, false};
  std::vector<std::byte> packed;
  bool isTyped = !isExternal && raw.length == 0;
  if (isExternal) {
    llvm::Expected<Place> external = placeOfExternal(message, *bytes, files);
    if (!external)
      return external.takeError();
    place = *external;
  } else if (isTyped) {
    llvm::Expected<std::vector<std::byte>> values = packTyped(message, *bytes);
    if (!values)
      return values.takeError();
    packed = std::move(*values);
  } else if (raw.length != *bytes) {
    return fail("has " + llvm::Twine(raw.length) + " bytes of data but " + shapeText(message) + " needs " +
                llvm::Twine(*bytes) + " (the file is corrupt; export the model again)");
  }

  if (!place.isSynthetic && fitsElements(type, *bytes)) {
    ArrayRef<std::byte> content = isTyped ? ArrayRef<std::byte>(packed)
                                          : files.bytes(place.file).slice(place.offset, place.length);
    return elementsOf(content, RankedTensorType::get(dims, elementType), onnx::elementBits(type));
  }
  if (isTyped)
    place = {files.addPacked(message.name(), std::move(packed)), 0, *bytes, false};
  return onnx::FileBlobAttr::get(context, place.file, place.offset, place.length, type, dims);
}

} // namespace otf
