// SPDX-License-Identifier: Apache-2.0
//
// A scan with buckets by first byte. Vocabularies have at most a few hundred
// patterns, nearly all with a rare first byte, so an automaton would not pay.
#include "runtime/Text/AddedTokens.h"

#include "runtime/Text/RegexDialect.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>

namespace otf::text {
namespace {

size_t lastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xC0) == 0x80)
    --at;
  return at;
}

/// Rust's char::is_whitespace, which unlike Python leaves U+001C..1F out.
bool isSpace(std::string_view character) {
  char32_t c = decodeUtf8(character).codePoint;
  return isPythonSpace(c) && !(c >= 0x1C && c <= 0x1F);
}

} // namespace

MaybeError AddedTokenMatcher::add(AddedToken token) {
  if (token.singleWord && !word) {
    // Here the reference uses Rust's regex crate, whose \w has the two joiners.
    Expected<Regex> compiled = Regex::compile("[" + std::string(wordClass) + "\\x{200c}\\x{200d}]");
    if (!compiled)
      return compiled.error();
    word = std::move(*compiled);
  }
  auto &bucket = buckets[static_cast<uint8_t>(token.pattern.front())];
  auto isShorter = [&](const AddedToken &other) {
    return other.pattern.size() < token.pattern.size();
  };
  auto at = std::find_if(bucket.begin(), bucket.end(), isShorter);
  bucket.insert(at, std::move(token));
  return std::nullopt;
}

const AddedToken *AddedTokenMatcher::matchAt(std::string_view text) const {
  for (const AddedToken &token : buckets[static_cast<uint8_t>(text.front())])
    if (text.starts_with(token.pattern))
      return &token;
  return nullptr;
}

bool AddedTokenMatcher::isWord(std::string_view character) const {
  Expected<std::vector<Span>> found = word->findAll(character);
  return found && !found->empty();
}

void AddedTokenMatcher::split(std::string_view text,
                              std::vector<TextPart> &parts) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken *token = matchAt(text.substr(at));
    if (!token) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->pattern.size();
    at = end;
    if (token->singleWord) {
      std::string_view before = text.substr(0, begin), after = text.substr(end);
      if (!before.empty() && isWord(before.substr(lastCharacter(before))))
        continue;
      if (!after.empty() && isWord(after.substr(0, decodeUtf8(after).length)))
        continue;
    }
    if (token->stripLeft) {
      while (begin > done) {
        size_t previous = lastCharacter(text.substr(0, begin));
        if (!isSpace(text.substr(previous)))
          break;
        begin = previous;
      }
    }
    // Only the emitted range grows: the scan goes on right after the pattern,
    // so a following token may begin inside these spaces, as in the reference.
    if (token->stripRight)
      while (end < text.size() && isSpace(text.substr(end)))
        end += decodeUtf8(text.substr(end)).length;

    if (done < begin)
      parts.push_back({-1, text.substr(done, begin - done)});
    parts.push_back({token->id, text.substr(begin, end - begin)});
    done = end;
  }
  if (done < text.size())
    parts.push_back({-1, text.substr(done)});
}

} // namespace otf::text
