// SPDX-License-Identifier: Apache-2.0
//
// A checked cursor over protobuf's wire format.
//
// Every read says whether it stayed inside the bytes; lengths are compared with what is left before anything moves,
// so no sum of file values can overflow. Groups (wire types 3 and 4) are refused: nothing writes them into ONNX.

#ifndef OTF_LIB_IMPORT_WIREREADER_H
#define OTF_LIB_IMPORT_WIREREADER_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace otf {

enum class WireType : unsigned { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  llvm::StringRef payload; // Bytes: the content; otherwise the encoded value
};

class WireReader {
public:
  explicit WireReader(llvm::StringRef bytes) : rest(bytes) {}

  bool atEnd() const { return rest.empty(); }
  const char *position() const { return rest.data(); }

  /// Reads one field and steps over it.
  [[nodiscard]] bool next(WireField &field) {
    uint64_t tag, length;
    if (!varint(tag) || tag > UINT32_MAX || (tag >> 3) == 0)
      return false;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = static_cast<WireType>(tag & 7);
    const char *start = rest.data();
    switch (field.type) {
    case WireType::Varint:
      if (!varint(length))
        return false;
      field.payload = llvm::StringRef(start, rest.data() - start);
      return true;
    case WireType::Bytes:
      return varint(length) && take(length, field.payload);
    case WireType::Fixed64:
      return take(8, field.payload);
    case WireType::Fixed32:
      return take(4, field.payload);
    }
    return false;
  }

private:
  bool varint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0, i = 0; i < 10 && i < rest.size(); ++i, shift += 7) {
      uint64_t byte = static_cast<unsigned char>(rest[i]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        rest = rest.drop_front(i + 1);
        return true;
      }
    }
    return false;
  }

  bool take(uint64_t length, llvm::StringRef &bytes) {
    if (length > rest.size())
      return false;
    bytes = rest.take_front(length);
    rest = rest.drop_front(length);
    return true;
  }

  llvm::StringRef rest;
};

} // namespace otf

#endif
