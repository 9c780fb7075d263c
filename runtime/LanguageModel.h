// SPDX-License-Identifier: Apache-2.0
//
// What a plan knows about language: the tokenizer and the chat template of its model, the tokens
// that begin and end a text, and how long one may be. Does not change after it was made; sessions
// share it.
#ifndef OTF_RUNTIME_LANGUAGEMODEL_H
#define OTF_RUNTIME_LANGUAGEMODEL_H

#include "runtime/PlanFile.h"
#include "runtime/Text/ChatTemplate.h"
#include "runtime/Text/Tokenizer.h"

#include <optional>

namespace otf::runtime {

class LanguageModel {
public:
  /// `tokenizerJson` replaces the plan's tokenizer unless it is empty. A plan without one still
  /// works on token ids.
  static Result<LanguageModel> create(const PlanFile &plan, std::string_view tokenizerJson);

  Result<std::vector<int32_t>> encode(std::string_view text) const;
  /// The conversation as the model was trained on it, up to where its answer begins.
  Result<std::vector<int32_t>> encodeChat(std::span<const text::ChatMessage> messages) const;
  bool isEnd(int32_t id) const;

  std::optional<text::Tokenizer> tokenizer;
  std::optional<int32_t> begin;
  std::vector<int32_t> ends;
  int64_t context = 0; // 0: not known
  std::string chatTemplate;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_LANGUAGEMODEL_H
