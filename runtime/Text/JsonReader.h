// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON in place, from the front: for the lists of a tokenizer.json, whose hundred thousand entries would each be an object of the JSON
// library. Loading SmolLM2's tokenizer took 273 million instructions with those, which was most of the time to a first token, and takes 108
// million now; the library's events (sax_parse) alone would take 116. As strict as the library where it reads; skip() alone looks at
// brackets and quotes only. Internal to this library.
#ifndef OTF_RUNTIME_TEXT_JSONREADER_H
#define OTF_RUNTIME_TEXT_JSONREADER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace otf::text {

class JsonReader {
public:
  explicit JsonReader(std::string_view text) : text(text) {}

  /// Where the next value or sign begins.
  size_t position();
  bool isAtEnd() { return position() == text.size(); }
  /// Whether `sign` is next; then it has been read.
  bool take(char sign);
  /// A string, valid until the next is read. Nothing where none is next, or it is not as JSON has it.
  std::optional<std::string_view> string();
  /// An integer without sign that fits.
  std::optional<uint64_t> natural();
  /// Passes a value of any kind.
  bool skip();

  /// Calls `read(key)` where each value of an object begins; it reads the value, or returns false to end here.
  template <typename Read> bool members(const Read &read) {
    return list('{', '}', [&] {
      std::optional<std::string_view> key = string();
      return key && take(':') && read(*key);
    });
  }
  /// The same for an array.
  template <typename Read> bool items(const Read &read) { return list('[', ']', read); }

private:
  template <typename Read> bool list(char open, char close, const Read &read) {
    if (!take(open))
      return false;
    if (take(close))
      return true;
    do
      if (!read())
        return false;
    while (take(','));
    return take(close);
  }
  bool escape();
  std::optional<uint32_t> fourDigits();

  std::string_view text;
  size_t at = 0;
  std::string unescaped;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_JSONREADER_H
