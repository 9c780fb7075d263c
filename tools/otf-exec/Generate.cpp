// SPDX-License-Identifier: Apache-2.0
//
// otf-exec generate and chat.
#include "tools/otf-exec/Common.h"

#include "runtime/Generate.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <unistd.h>

namespace otf::exec {

using namespace runtime;

namespace {

struct Talker {
  Opened opened;
  std::optional<LanguageModel> model;
  std::unique_ptr<Decoder> decoder;
  GenerateOptions settings;
  double loadSeconds = 0;
};

Result<std::string> readFile(const std::string &path) {
  std::unique_ptr<FILE, decltype([](FILE *f) { fclose(f); })> file(fopen(path.c_str(), "rbe"));
  if (!file)
    return badInput("tokenizer '", path, "': cannot be opened (", std::strerror(errno), ")");
  std::string text;
  char part[1 << 16];
  while (size_t n = fread(part, 1, sizeof part, file.get()))
    text.append(part, n);
  return text;
}

Result<Talker> prepare(const TextOptions &o) {
  auto start = std::chrono::steady_clock::now();
  Talker t;
  Result<Opened> opened = open(o);
  if (!opened.ok())
    return opened.status();
  t.opened = std::move(opened.value());
  std::string tokenizer;
  if (!o.tokenizer.empty()) {
    Result<std::string> text = readFile(o.tokenizer);
    if (!text.ok())
      return text.status();
    tokenizer = std::move(text.value());
  }
  Result<LanguageModel> model = LanguageModel::create(*t.opened.plan, tokenizer);
  if (!model.ok())
    return model.status();
  t.model.emplace(std::move(model.value()));
  Result<std::unique_ptr<Decoder>> decoder = Decoder::create(*t.opened.session);
  if (!decoder.ok())
    return decoder.status();
  t.decoder = std::move(decoder.value());
  constexpr int64_t most = INT32_MAX;
  t.settings.sampling = {.temperature = o.greedy ? 0.0f : float(o.temperature),
                         .topK = int32_t(std::min(o.topK, most)),
                         .topP = float(o.topP),
                         .minP = float(o.minP),
                         .repetitionPenalty = float(o.repetitionPenalty),
                         .uniqueNgramLength = int32_t(std::min(o.noRepeatNgram, most)),
                         .seed = o.seed};
  t.settings.stops = o.stops;
  t.settings.maxTokens = o.maxTokens;
  t.settings.ignoreEnd = o.ignoreEos;
  t.loadSeconds = secondsSince(start);
  return t;
}

std::vector<text::ChatMessage> conversation(const TextOptions &o) {
  std::vector<text::ChatMessage> messages;
  if (!o.system.empty())
    messages.push_back({"system", o.system});
  return messages;
}

/// Prints what became certain. A reader that went away ends the generation.
bool print(void *, std::string_view text, int32_t) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

} // namespace

int generate(const TextOptions &o) {
  if (!o.hasPrompt && !o.hasChatPrompt && o.promptIds.empty())
    return fail("command line", usageError("generate: expected --prompt, --prompt-ids or "
                                           "--chat-prompt"));
  Result<Talker> prepared = prepare(o);
  if (!prepared.ok())
    return fail(o.plan, prepared.status());
  Talker &t = prepared.value();

  std::vector<int32_t> ids = o.promptIds;
  if (o.hasPrompt || o.hasChatPrompt) {
    std::vector<text::ChatMessage> messages = conversation(o);
    messages.push_back({"user", o.chatPrompt});
    auto encoded = o.hasPrompt ? t.model->encode(o.prompt) : t.model->encodeChat(messages);
    if (!encoded.ok())
      return fail(o.plan, encoded.status());
    ids = std::move(encoded.value());
  }
  bool streams = !o.json && !o.noStream;
  Result<Generated> result =
      runtime::generate(*t.model, *t.decoder, ids, t.settings, streams ? print : nullptr, nullptr);
  if (!result.ok())
    return fail(o.plan, result.status());
  Generated &g = result.value();

  if (o.json) {
    nlohmann::ordered_json json;
    json["prompt_ids"] = ids;
    json["ids"] = g.ids;
    json["text"] = g.text;
    json["reason"] = g.reason;
    json["device"] = t.opened.device->description();
    json["seconds"] = {
        {"load", t.loadSeconds}, {"prefill", g.prefillSeconds}, {"decode", g.decodeSeconds}};
    std::puts(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  if (!streams)
    std::fwrite(g.text.data(), 1, g.text.size(), stdout);
  if (!t.model->tokenizer)
    for (int32_t id : g.ids)
      std::printf("%d ", id);
  std::puts("");
  return 0;
}

int chat(const TextOptions &o) {
  Result<Talker> prepared = prepare(o);
  if (!prepared.ok())
    return fail(o.plan, prepared.status());
  Talker &t = prepared.value();
  std::vector<text::ChatMessage> messages = conversation(o);
  const bool isTerminal = isatty(STDIN_FILENO);
  std::string line;
  for (;;) {
    if (isTerminal)
      std::fputs("> ", stdout), std::fflush(stdout);
    if (!std::getline(std::cin, line))
      return 0;
    if (line.empty())
      continue;
    messages.push_back({"user", line});
    auto ids = t.model->encodeChat(messages);
    if (!ids.ok())
      return fail(o.plan, ids.status());
    // The beginning of the conversation is still in the cache and is not computed again.
    Result<Generated> result =
        runtime::generate(*t.model, *t.decoder, ids.value(), t.settings, print, nullptr);
    if (!result.ok())
      return fail(o.plan, result.status());
    std::puts("");
    messages.push_back({"assistant", std::move(result.value().text)});
  }
}

} // namespace otf::exec
