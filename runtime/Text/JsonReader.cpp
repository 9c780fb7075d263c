// SPDX-License-Identifier: Apache-2.0
#include "runtime/Text/JsonReader.h"

#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <charconv>

namespace otf::text {

size_t JsonReader::position() {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
    ++at;
  return at;
}

bool JsonReader::take(char sign) {
  if (position() == text.size() || text[at] != sign)
    return false;
  ++at;
  return true;
}

std::optional<std::string_view> JsonReader::string() {
  if (!take('"'))
    return std::nullopt;
  size_t begin = at; // of what is not in `unescaped` yet
  bool hasEscapes = false;
  while (at < text.size()) {
    const auto byte = uint8_t(text[at]);
    if (byte == '"') {
      std::string_view plain = text.substr(begin, at++ - begin);
      return hasEscapes ? std::string_view(unescaped.append(plain)) : plain;
    }
    if (byte == '\\') {
      if (!hasEscapes)
        unescaped.clear();
      hasEscapes = true;
      unescaped.append(text, begin, at++ - begin);
      if (!escape())
        return std::nullopt;
      begin = at;
    } else if (byte >= 0x80) {
      Utf8Step step = decodeUtf8(text.substr(at));
      if (!step.valid)
        return std::nullopt;
      at += step.length;
    } else if (byte < 0x20) {
      return std::nullopt;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> JsonReader::fourDigits() {
  uint32_t value = 0;
  if (text.size() - at < 4)
    return std::nullopt;
  auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  if (error != std::errc() || end != text.data() + at + 4)
    return std::nullopt;
  at += 4;
  return value;
}

/// What follows a backslash, as characters.
bool JsonReader::escape() {
  static constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (at == text.size())
    return false;
  const char name = text[at++];
  if (size_t i = names.find(name); i != names.npos) {
    unescaped += meanings[i];
    return true;
  }
  std::optional<uint32_t> unit = name == 'u' ? fourDigits() : std::nullopt;
  if (!unit)
    return false;
  char32_t character = *unit;
  if (*unit >> 10 == 0xD800 >> 10) { // the first half of a character above U+FFFF
    if (!text.substr(at).starts_with("\\u"))
      return false;
    at += 2;
    std::optional<uint32_t> second = fourDigits();
    if (!second || *second >> 10 != 0xDC00 >> 10)
      return false;
    character = 0x10000 + ((*unit & 0x3FF) << 10 | (*second & 0x3FF));
  } else if (*unit >> 10 == 0xDC00 >> 10) {
    return false;
  }
  appendUtf8(character, unescaped);
  return true;
}

std::optional<uint64_t> JsonReader::natural() {
  uint64_t value = 0;
  const char *begin = text.data() + position(), *last = text.data() + text.size();
  auto [end, error] = std::from_chars(begin, last, value);
  const bool hasFraction = end != last && (*end == '.' || *end == 'e' || *end == 'E');
  const bool hasZeros = end - begin > 1 && *begin == '0';
  if (error != std::errc() || hasFraction || hasZeros)
    return std::nullopt;
  at += size_t(end - begin);
  return value;
}

bool JsonReader::skip() {
  const char *next = text.data() + at, *const end = text.data() + text.size();
  size_t depth = 0;
  bool hasBegun = false; // a number or a word
  for (; next != end; ++next) {
    const char sign = *next;
    if (sign == ' ' || sign == '\n' || sign == '\r' || sign == '\t') {
      if (hasBegun && depth == 0)
        break;
    } else if (sign == '"') {
      for (++next; next != end && *next != '"'; ++next)
        if (*next == '\\' && ++next == end)
          return false;
      if (next == end)
        return false;
      if (depth == 0) {
        hasBegun = true, ++next;
        break;
      }
    } else if (sign == '{' || sign == '[') {
      ++depth;
    } else if (sign == '}' || sign == ']') {
      if (depth == 0)
        break;
      if (--depth == 0) {
        hasBegun = true, ++next;
        break;
      }
    } else if (sign == ',' || sign == ':') {
      if (depth == 0)
        break;
    } else {
      hasBegun = true;
    }
  }
  at = size_t(next - text.data());
  return hasBegun && depth == 0;
}

} // namespace otf::text
