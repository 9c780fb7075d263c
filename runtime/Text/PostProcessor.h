// SPDX-License-Identifier: Apache-2.0
//
// The "post_processor" of tokenizer.json, as far as it adds tokens around one
// sequence: a prefix (often <bos>) and a suffix (seldom <eos>).
#ifndef OTF_RUNTIME_TEXT_POSTPROCESSOR_H
#define OTF_RUNTIME_TEXT_POSTPROCESSOR_H

#include "runtime/Text/Expected.h"
#include "runtime/Text/JsonField.h"

#include <cstdint>
#include <vector>

namespace otf::text {

class PostProcessor {
public:
  static Expected<PostProcessor> fromJson(const Json *json);

  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

private:
  MaybeError add(const Json &json, int depth);
  MaybeError addTemplate(const Json &json);
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_POSTPROCESSOR_H
