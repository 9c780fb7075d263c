// SPDX-License-Identifier: Apache-2.0
#include "runtime/LanguageModel.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace otf::runtime {

using Json = nlohmann::json;

static std::optional<int32_t> tokenId(const Json &value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX)
    return std::nullopt;
  return int32_t(value.get<uint64_t>());
}

Result<LanguageModel> LanguageModel::create(const PlanFile &plan, std::string_view tokenizerJson) {
  LanguageModel model;
  if (!plan.generation.empty()) {
    Json json = Json::parse(plan.generation, nullptr, false);
    if (!json.is_object())
      return badInput("generation settings: not a JSON object (compile the model again)");
    model.begin = tokenId(json.value("bos", Json()));
    Json ends = json.value("eos", Json());
    if (!ends.is_array())
      ends = Json::array({ends});
    for (const Json &end : ends)
      if (std::optional<int32_t> id = tokenId(end))
        model.ends.push_back(*id);
    if (Json context = json.value("context", Json()); tokenId(context))
      model.context = *tokenId(context);
    if (Json text = json.value("chat_template", Json()); text.is_string())
      model.chatTemplate = text.get<std::string>();
  }
  Bytes section = plan.section(plan::SectionKind::tokenizer);
  if (tokenizerJson.empty())
    tokenizerJson = {reinterpret_cast<const char *>(section.data()), section.size()};
  if (!tokenizerJson.empty()) {
    auto tokenizer = text::Tokenizer::fromJson(tokenizerJson);
    if (!tokenizer)
      return badInput("tokenizer: ", tokenizer.error().message);
    model.tokenizer = std::move(*tokenizer);
  }
  return model;
}

Result<std::vector<int32_t>> LanguageModel::encode(std::string_view text) const {
  if (!tokenizer)
    return badInput("tokenizer: the plan has none (put tokenizer.json beside the model and compile "
                    "again, or give token ids)");
  auto ids = tokenizer->encode(text, /*addSpecial=*/true);
  if (!ids)
    return badInput("prompt: ", ids.error().message);
  return std::move(*ids);
}

Result<std::vector<int32_t>>
LanguageModel::encodeChat(std::span<const text::ChatMessage> messages) const {
  if (!tokenizer)
    return encode("");
  if (chatTemplate.empty())
    return badInput("chat template: the plan has none, so its model may not answer messages (use a "
                    "plain prompt)");
  auto name = [&](std::optional<int32_t> id) {
    return id ? tokenizer->idToBytes(*id) : std::string();
  };
  auto end = ends.empty() ? std::nullopt : std::optional(ends[0]);
  auto prompt = text::renderChat(chatTemplate, messages, true, name(begin), name(end));
  if (!prompt)
    return badInput("chat template: ", prompt.error().message);
  // The template has written the special tokens itself.
  auto ids = tokenizer->encode(*prompt, /*addSpecial=*/false);
  if (!ids)
    return badInput("prompt: ", ids.error().message);
  return std::move(*ids);
}

bool LanguageModel::isEnd(int32_t id) const {
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

} // namespace otf::runtime
