// SPDX-License-Identifier: Apache-2.0
//
// Bytes become whole characters first, and stop strings are looked for in
// those; both stages keep only what is still undecided.
#include "runtime/Text/TextStream.h"

#include "runtime/Text/Tokenizer.h"
#include "runtime/Text/Utf8.h"

#include <algorithm>
#include <utility>

namespace otf::text {

TextStream::TextStream(std::vector<std::string> stops)
    : stopStrings(std::move(stops)) {
  std::erase_if(stopStrings, [](const std::string &s) { return s.empty(); });
  // The text is UTF-8, so a stop string has to be, or it would cut characters.
  for (std::string &stop : stopStrings)
    stop = repairUtf8(stop);
}

std::string TextStream::push(const Tokenizer &tokenizer, int32_t id) {
  return tokenizer.isSpecial(id) ? std::string()
                                 : pushBytes(tokenizer.idToBytes(id));
}

std::string TextStream::pushBytes(std::string_view more) {
  if (isStopped)
    return {};
  bytes += more;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    Utf8Step step = decodeUtf8(rest);
    if (step.truncated)
      break;
    appendUtf8(step.codePoint, text);
    rest.remove_prefix(step.length);
  }
  bytes.erase(0, bytes.size() - rest.size());

  size_t certain =
      cutAtStop() ? text.size() : text.size() - possibleStopSize();
  std::string out = text.substr(0, certain);
  text.erase(0, certain);
  return out;
}

std::string TextStream::finish() {
  if (!bytes.empty())
    appendUtf8(0xFFFD, text);
  bytes.clear();
  if (!isStopped)
    cutAtStop();
  return std::exchange(text, {});
}

/// Cuts the text before the stop string that ends first; of several that end
/// there, before the longest.
bool TextStream::cutAtStop() {
  size_t firstBegin = text.npos, firstEnd = text.npos;
  for (const std::string &stop : stopStrings) {
    size_t begin = text.find(stop);
    if (begin == text.npos)
      continue;
    size_t end = begin + stop.size();
    if (std::pair(end, begin) < std::pair(firstEnd, firstBegin)) {
      firstBegin = begin;
      firstEnd = end;
    }
  }
  if (firstBegin == text.npos)
    return false;
  text.resize(firstBegin);
  bytes.clear();
  isStopped = true;
  return true;
}

/// Size of the longest end of the text that begins a stop string. A stop
/// string that is UTF-8 begins at a character, so this never cuts one.
size_t TextStream::possibleStopSize() const {
  size_t longest = 0;
  for (const std::string &stop : stopStrings)
    for (size_t size = std::min(stop.size() - 1, text.size()); size > longest;
         --size)
      if (text.ends_with(std::string_view(stop).substr(0, size)))
        longest = size;
  return longest;
}

} // namespace otf::text
