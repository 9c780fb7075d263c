// SPDX-License-Identifier: Apache-2.0
//
// A table-free decoder. The allowed range of the second byte depends on the
// first one; that single rule excludes overlong forms, surrogates and code
// points past U+10FFFF (Unicode standard, table 3-7).
#include "runtime/Text/Utf8.h"

#include <cstdint>

namespace otf::text {

Utf8Step decodeUtf8(std::string_view text) {
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byteAt(0);
  if (first < 0x80)
    return {1, first, true, false};

  size_t length = first < 0xC2   ? 0
                  : first < 0xE0 ? 2
                  : first < 0xF0 ? 3
                  : first < 0xF5 ? 4
                                 : 0;
  if (length == 0)
    return {1, 0xFFFD, false, false};

  uint8_t low = 0x80, high = 0xBF;
  if (first == 0xE0)
    low = 0xA0;
  else if (first == 0xED)
    high = 0x9F;
  else if (first == 0xF0)
    low = 0x90;
  else if (first == 0xF4)
    high = 0x8F;

  char32_t codePoint = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {i, 0xFFFD, false, true};
    uint8_t byte = byteAt(i);
    if (byte < low || byte > high)
      return {i, 0xFFFD, false, false};
    codePoint = codePoint << 6 | (byte & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {length, codePoint, true, false};
}

void appendUtf8(char32_t codePoint, std::string &out) {
  auto tail = [&](int shift) {
    out += static_cast<char>(0x80 | (codePoint >> shift & 0x3F));
  };
  if (codePoint < 0x80) {
    out += static_cast<char>(codePoint);
  } else if (codePoint < 0x800) {
    out += static_cast<char>(0xC0 | codePoint >> 6);
    tail(0);
  } else if (codePoint < 0x10000) {
    out += static_cast<char>(0xE0 | codePoint >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | codePoint >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string repairUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    Utf8Step step = decodeUtf8(bytes);
    if (step.valid)
      out += bytes.substr(0, step.length);
    else
      appendUtf8(0xFFFD, out);
    bytes.remove_prefix(step.length);
  }
  return out;
}

size_t countCodePoints(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count)
    text.remove_prefix(decodeUtf8(text).length);
  return count;
}

bool isPythonSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

} // namespace otf::text
