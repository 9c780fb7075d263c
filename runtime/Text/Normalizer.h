// SPDX-License-Identifier: Apache-2.0
//
// The "normalizer" of tokenizer.json. Byte-level tokenizers mostly have none;
// the ones that need no Unicode tables are supported, the rest refused by name.
#ifndef OTF_RUNTIME_TEXT_NORMALIZER_H
#define OTF_RUNTIME_TEXT_NORMALIZER_H

#include "runtime/Text/Expected.h"
#include "runtime/Text/JsonField.h"

#include <string>
#include <vector>

namespace otf::text {

class Normalizer {
public:
  static Expected<Normalizer> fromJson(const Json *json);

  std::string apply(std::string text) const;

private:
  /// Replaces every `from` by `to`; an empty `from` means: put `to` in front.
  struct Step {
    std::string from;
    std::string to;
  };

  MaybeError add(const Json &json, int depth);

  std::vector<Step> steps;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_NORMALIZER_H
