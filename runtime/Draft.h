// SPDX-License-Identifier: Apache-2.0
//
// Guesses at the tokens to come, out of the text so far (prompt lookup): where its last tokens stood
// before, what followed them then may follow again. Costs no model. A guess is never believed: the model
// reads several guessed tokens in one run, and those that it would have chosen itself are kept.
#ifndef OTF_RUNTIME_DRAFT_H
#define OTF_RUNTIME_DRAFT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace otf::runtime {

class NgramDraft {
public:
  /// At most `most` tokens that may follow `text`; none where its last two tokens have not stood before.
  /// Valid until the next call.
  std::span<const int32_t> guess(std::span<const int32_t> text, size_t most);
  /// How many tokens of the last guess were right. The next guesses are as long as that suggests.
  void learn(size_t right);

  size_t drafted = 0, accepted = 0; // tokens, so far

private:
  std::vector<int32_t> tokens;
  size_t length = 4; // of the next guess
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_DRAFT_H
