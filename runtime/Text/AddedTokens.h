// SPDX-License-Identifier: Apache-2.0
//
// Tokens that are found in the text before the model sees it: chat markers,
// reserved tokens, runs of spaces. Matching is leftmost, then longest.
#ifndef OTF_RUNTIME_TEXT_ADDEDTOKENS_H
#define OTF_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/Text/Regex.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace otf::text {

struct AddedToken {
  int32_t id;
  /// What to look for and what the token decodes to: its content, after the
  /// normalizer if it is looked for in normalized text. Not empty.
  std::string pattern;
  bool special;
  bool singleWord;
  bool stripLeft;
  bool stripRight;
};

/// A part of a text: an added token, or text between (id < 0).
struct TextPart {
  int32_t id;
  std::string_view text;
};

class AddedTokenMatcher {
public:
  MaybeError add(AddedToken token);

  /// Cuts `text` (valid UTF-8) at added tokens and appends the parts.
  void split(std::string_view text, std::vector<TextPart> &parts) const;

private:
  const AddedToken *matchAt(std::string_view text) const;
  bool isWord(std::string_view character) const;

  /// By first byte; the longest pattern first.
  std::array<std::vector<AddedToken>, 256> buckets;
  std::optional<Regex> word; // compiled where a token wants it: Unicode's classes take milliseconds
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_ADDEDTOKENS_H
