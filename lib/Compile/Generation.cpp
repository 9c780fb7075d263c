// SPDX-License-Identifier: Apache-2.0
//
// generation_config.json is about generating and wins over config.json, which is about training.
// chat_template.jinja is where newer exporters put what tokenizer_config.json held before.

#include "lib/Compile/Generation.h"

#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

namespace otf {

using Json = nlohmann::ordered_json;

llvm::Expected<std::string> readWhole(const std::string &path) {
  if (path.empty())
    return std::string();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(path + ": cannot be read (" + file.getError().message() + ")");
  return (*file)->getBuffer().str();
}

static llvm::Expected<Json> readJson(const std::string &path) {
  llvm::Expected<std::string> text = readWhole(path);
  if (!text)
    return text.takeError();
  if (text->empty())
    return Json::object();
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return llvm::createStringError(path + ": is no JSON object (repair it, or move it away to "
                                          "compile without it)");
  return json;
}

/// The token ids of a key that may hold one, several or null.
static Json ids(const Json &config, const char *key) {
  Json list = Json::array();
  Json value = config.value(key, Json());
  for (const Json &each : value.is_array() ? value : Json::array({value}))
    if (each.is_number_unsigned())
      list.push_back(each);
  return list;
}

llvm::Expected<std::string> generationSettings(const ModelFile::Companions &files) {
  llvm::Expected<Json> config = readJson(files.config);
  if (!config)
    return config.takeError();
  llvm::Expected<Json> generation = readJson(files.generationConfig);
  if (!generation)
    return generation.takeError();
  llvm::Expected<Json> tokenizer = readJson(files.tokenizerConfig);
  if (!tokenizer)
    return tokenizer.takeError();
  llvm::Expected<std::string> chatTemplate = readWhole(files.chatTemplate);
  if (!chatTemplate)
    return chatTemplate.takeError();

  Json settings = Json::object();
  for (const Json *from : {&*config, &*generation}) {
    if (Json begin = ids(*from, "bos_token_id"); !begin.empty())
      settings["bos"] = begin[0];
    if (Json ends = ids(*from, "eos_token_id"); !ends.empty())
      settings["eos"] = ends;
  }
  for (const char *key : {"max_position_embeddings", "n_positions"})
    if (!settings.contains("context") && config->value(key, Json()).is_number_unsigned())
      settings["context"] = (*config)[key];
  Json old = tokenizer->value("chat_template", Json());
  if (!chatTemplate->empty())
    settings["chat_template"] = *chatTemplate;
  else if (old.is_string())
    settings["chat_template"] = old;
  // Bytes that are no UTF-8 are replaced, so that dumping cannot throw.
  return settings.empty() ? std::string()
                          : settings.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace otf
