// SPDX-License-Identifier: Apache-2.0
//
// Lexer, parser and evaluator in a row.
#include "runtime/Text/ChatTemplate.h"

#include "runtime/Text/Jinja/Evaluator.h"
#include "runtime/Text/Jinja/Parser.h"
#include "runtime/Text/Utf8.h"

namespace otf::text {

Expected<std::string> renderChat(std::string_view templateText,
                                 std::span<const ChatMessage> messages,
                                 bool addGenerationPrompt,
                                 std::string_view bosToken,
                                 std::string_view eosToken) {
  // Repaired once here, so that everything behind may rely on UTF-8.
  Expected<std::vector<jinja::Token>> tokens =
      jinja::lex(repairUtf8(templateText));
  if (!tokens)
    return tokens.error();
  Expected<jinja::Block> block = jinja::parse(std::move(*tokens));
  if (!block)
    return block.error();

  jinja::List list;
  for (const ChatMessage &message : messages) {
    auto value = jinja::Value::dict({{"role", repairUtf8(message.role)},
                                     {"content", repairUtf8(message.content)}});
    if (!value)
      return value.error();
    list.push_back(std::move(*value));
  }
  Expected<jinja::Value> conversation = jinja::Value::list(std::move(list));
  if (!conversation)
    return conversation.error();

  jinja::Dict globals{{"messages", std::move(*conversation)},
                      {"add_generation_prompt", addGenerationPrompt},
                      {"tools", jinja::Value::none()},
                      {"documents", jinja::Value::none()}};
  if (!bosToken.empty())
    globals.emplace_back("bos_token", bosToken);
  if (!eosToken.empty())
    globals.emplace_back("eos_token", eosToken);
  return jinja::evaluate(*block, std::move(globals));
}

} // namespace otf::text
