// SPDX-License-Identifier: Apache-2.0
#include "runtime/Draft.h"

#include <algorithm>

namespace otf::runtime {

// A wrong guess costs the time of its rows, and more than fifteen are hardly ever right at once.
static constexpr size_t kShortest = 2, kLongest = 15;
// One token alone is too little to go by; what agrees in more is looked for first.
static constexpr size_t kLongestContext = 4, kShortestContext = 2;

std::span<const int32_t> NgramDraft::guess(std::span<const int32_t> text, size_t most) {
  tokens.clear();
  most = std::min(most, length);
  for (size_t n = kLongestContext; n >= kShortestContext && tokens.empty() && most > 0; --n) {
    if (text.size() <= n)
      continue;
    const std::span<const int32_t> end = text.last(n);
    // The latest place counts: texts repeat what they said last.
    for (size_t at = text.size() - n; at-- > 0;)
      if (std::equal(end.begin(), end.end(), text.begin() + ptrdiff_t(at))) {
        // A period that is shorter than the guess goes on in the guess itself.
        for (size_t i = at + n; tokens.size() < most; ++i)
          tokens.push_back(i < text.size() ? text[i] : tokens[i - text.size()]);
        break;
      }
  }
  drafted += tokens.size();
  return tokens;
}

void NgramDraft::learn(size_t right) {
  accepted += right;
  if (tokens.empty())
    return;
  length = right == tokens.size() ? std::min(kLongest, 2 * length) : std::max(kShortest, right + 1);
}

} // namespace otf::runtime
