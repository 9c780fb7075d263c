// SPDX-License-Identifier: Apache-2.0
//
// The "pre_tokenizer" of tokenizer.json: cuts text into words that the model
// then tokenizes one by one. A list of steps; each sees the words of the one
// before and nothing else.
#ifndef OTF_RUNTIME_TEXT_PRETOKENIZER_H
#define OTF_RUNTIME_TEXT_PRETOKENIZER_H

#include "runtime/Text/Expected.h"
#include "runtime/Text/JsonField.h"
#include "runtime/Text/Regex.h"

#include <string>
#include <string_view>
#include <vector>

namespace otf::text {

/// What happens to a match when text is cut (Hugging Face's names).
enum class SplitBehavior {
  Isolated,
  Removed,
  Contiguous,
  MergedWithPrevious,
  MergedWithNext
};

class PreTokenizer {
public:
  static Expected<PreTokenizer> fromJson(const Json *json);

  /// Words in the byte-level alphabet. `text` must be valid UTF-8.
  Expected<std::vector<std::string>> apply(std::string_view text) const;

private:
  enum class StepKind { PrefixSpace, Split, ByteLevel };
  struct Step {
    StepKind kind;
    // The rest is for Split only.
    Regex regex;
    SplitBehavior behavior = SplitBehavior::Isolated;
    bool invert = false;
  };

  MaybeError add(const Json &json, int depth);
  MaybeError addSplit(Expected<Regex> regex, SplitBehavior behavior,
                      bool invert);

  std::vector<Step> steps;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_PRETOKENIZER_H
