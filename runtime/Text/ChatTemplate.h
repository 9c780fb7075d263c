// SPDX-License-Identifier: Apache-2.0
//
// Turns a conversation into the prompt text a model was trained on, by running
// the model's own chat template: a program in a subset of Jinja, with the
// settings and globals that Hugging Face gives it. `tools` and `documents` are
// none. strftime_now is left undefined, because a prompt should not depend on
// the day it is made; templates that use it have a fixed date to fall back on.
#ifndef OTF_RUNTIME_TEXT_CHATTEMPLATE_H
#define OTF_RUNTIME_TEXT_CHATTEMPLATE_H

#include "runtime/Text/Expected.h"

#include <span>
#include <string>
#include <string_view>

namespace otf::text {

struct ChatMessage {
  std::string role; // "system", "user", "assistant"
  std::string content;
};

/// Fails with the line of the template when it uses what is not supported, or
/// with the template's own words when it refuses the conversation. An empty
/// bosToken or eosToken means that the model has none.
Expected<std::string> renderChat(std::string_view templateText,
                                 std::span<const ChatMessage> messages,
                                 bool addGenerationPrompt,
                                 std::string_view bosToken,
                                 std::string_view eosToken);

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_CHATTEMPLATE_H
