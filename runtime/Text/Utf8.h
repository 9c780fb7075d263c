// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as the text code needs it: step over code points, repair bytes that
// are not UTF-8 in the way Rust's from_utf8_lossy does (the reference
// tokenizer is written in Rust), and tell complete characters from cut ones.
#ifndef OTF_RUNTIME_TEXT_UTF8_H
#define OTF_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <string>
#include <string_view>

namespace otf::text {

struct Utf8Step {
  /// Bytes consumed; at least 1 for non-empty input. For bytes that are not
  /// UTF-8 this is the maximal prefix that one U+FFFD stands for.
  size_t length;
  char32_t codePoint;
  bool valid;
  /// Not valid, but only because the input ends inside a character.
  bool truncated;
};

/// Decodes the first code point of `text`, which must not be empty.
Utf8Step decodeUtf8(std::string_view text);

void appendUtf8(char32_t codePoint, std::string &out);

/// `bytes` with every maximal invalid part replaced by U+FFFD.
std::string repairUtf8(std::string_view bytes);

size_t countCodePoints(std::string_view text);

/// What Python's str.isspace() accepts; str.strip() removes these.
bool isPythonSpace(char32_t codePoint);

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_UTF8_H
