// SPDX-License-Identifier: Apache-2.0
//
// Both directions come from one table built on first use.
#include "runtime/Text/ByteLevel.h"

#include "runtime/Text/Utf8.h"

#include <array>
#include <cstdint>

namespace otf::text {
namespace {

struct Alphabet {
  std::array<char32_t, 256> charOf;
  /// Byte of a character below U+0144, or -1. 256 + 68 characters are enough:
  /// 68 bytes are not printable.
  std::array<int16_t, 256 + 68> byteOf;

  Alphabet() {
    byteOf.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      bool printable = (byte >= 33 && byte <= 126) ||
                       (byte >= 161 && byte <= 172) || byte >= 174;
      charOf[byte] = printable ? static_cast<char32_t>(byte) : next++;
      byteOf[charOf[byte]] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet &alphabet() {
  static const Alphabet instance;
  return instance;
}

} // namespace

std::string toByteLevel(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 2);
  for (char byte : bytes)
    appendUtf8(alphabet().charOf[static_cast<uint8_t>(byte)], out);
  return out;
}

std::string fromByteLevel(std::string_view token) {
  const auto &byteOf = alphabet().byteOf;
  std::string out;
  for (std::string_view rest = token; !rest.empty();) {
    Utf8Step step = decodeUtf8(rest);
    if (step.codePoint >= byteOf.size() || byteOf[step.codePoint] < 0)
      return std::string(token);
    out += static_cast<char>(byteOf[step.codePoint]);
    rest.remove_prefix(step.length);
  }
  return out;
}

} // namespace otf::text
