// SPDX-License-Identifier: Apache-2.0
//
// Text that appears while tokens do. A token may end inside a character, and
// the text may be about to become a stop string, so some of it is held back
// until it is certain. What comes out does not depend on how the bytes were
// cut into tokens.
#ifndef OTF_RUNTIME_TEXT_TEXTSTREAM_H
#define OTF_RUNTIME_TEXT_TEXTSTREAM_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace otf::text {

class Tokenizer;

class TextStream {
public:
  /// Empty stop strings are ignored.
  explicit TextStream(std::vector<std::string> stopStrings);

  /// Adds a token and returns the text that is certain now: valid UTF-8,
  /// possibly empty. Special tokens have no text.
  std::string push(const Tokenizer &tokenizer, int32_t id);
  /// The same for the bytes of a token.
  std::string pushBytes(std::string_view bytes);

  /// The rest, when no more tokens will come. A cut character is U+FFFD.
  std::string finish();

  /// A stop string is complete: the first to become so. Neither it nor what
  /// follows is ever returned.
  bool stopped() const { return isStopped; }

private:
  bool cutAtStop();
  size_t possibleStopSize() const;

  std::vector<std::string> stopStrings;
  /// The beginning of a character.
  std::string bytes;
  /// Whole characters that may begin a stop string.
  std::string text;
  bool isStopped = false;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_TEXTSTREAM_H
