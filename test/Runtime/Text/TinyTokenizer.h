// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer small enough to read: all 256 bytes, four merges, three added
// tokens.
#ifndef OTF_TEST_RUNTIME_TEXT_TINYTOKENIZER_H
#define OTF_TEST_RUNTIME_TEXT_TINYTOKENIZER_H

#include "runtime/Text/ByteLevel.h"

#include <string>

namespace otf::text {

inline std::string tinyTokenizerJson() {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token = toByteLevel(std::string(1, static_cast<char>(byte)));
    if (token == "\"" || token == "\\")
      token.insert(0, 1, '\\');
    vocab += "\"" + token + "\": " + std::to_string(byte) + ", ";
  }
  return R"({
  "added_tokens": [
    {"id": 260, "content": "<s>", "special": true, "normalized": false},
    {"id": 261, "content": "</s>", "special": true, "normalized": false},
    {"id": 262, "content": "<tool>", "special": false, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [260], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {)" +
         vocab + R"("ab": 256, "bc": 257, "abc": 258, "Ġa": 259},
    "merges": ["b c", ["a", "b"], "a bc", "Ġ a"]}})";
}

} // namespace otf::text

#endif // OTF_TEST_RUNTIME_TEXT_TINYTOKENIZER_H
