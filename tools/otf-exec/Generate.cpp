// SPDX-License-Identifier: Apache-2.0
//
// otf-exec generate and chat.
#include "tools/otf-exec/Common.h"

#include "runtime/Generate.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
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

/// "1,2,3". What the model knows is checked where it is known.
Result<std::vector<int32_t>> parseIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (std::string_view rest = text; !rest.empty();) {
    size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    while (item.starts_with(' '))
      item.remove_prefix(1);
    while (item.ends_with(' '))
      item.remove_suffix(1);
    int32_t id = 0;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), id);
    if (item.empty() || error != std::errc() || end != item.data() + item.size() ||
        (comma != rest.npos && comma + 1 == rest.size()))
      return usageError("--prompt-ids: expected token ids with commas between them, as in 1,2,3, "
                        "found '", text, "'");
    ids.push_back(id);
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  }
  return ids;
}

Result<Talker> prepare(const TextOptions &o) {
  auto start = std::chrono::steady_clock::now();
  Talker t;
  Result<Opened> opened = open(o);
  if (!opened.ok())
    return opened.status();
  t.opened = std::move(opened.value());
  Result<LanguageModel> model = openLanguageModel(*t.opened.plan, o.tokenizer);
  if (!model.ok())
    return model.status();
  t.model.emplace(std::move(model.value()));
  if (!o.stops.empty() && !t.model->tokenizer)
    return usageError("--stop: the plan has no tokenizer, so there is no text to look for it in "
                      "(give --tokenizer)");
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
  t.settings.draftNgrams = o.draft == "ngram";
  t.loadSeconds = secondsSince(start);
  return t;
}

std::vector<text::ChatMessage> conversation(const TextOptions &o) {
  std::vector<text::ChatMessage> messages;
  if (!o.system.empty())
    messages.push_back({"system", o.system});
  return messages;
}

/// Prints what became certain: of a model without a tokenizer, its ids. A reader that went away ends
/// the generation.
bool print(void *model, std::string_view text, int32_t id) {
  if (!static_cast<LanguageModel *>(model)->tokenizer && id >= 0)
    std::printf("%d ", id);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 && !outputIsGone();
}

bool isWanted(void *, std::string_view, int32_t) { return !outputIsGone(); }

} // namespace

int generate(const TextOptions &o) {
  if (!o.hasPrompt && !o.hasChatPrompt && !o.hasPromptIds)
    return fail("command line", usageError("generate: expected --prompt, --prompt-ids or "
                                           "--chat-prompt"));
  Result<std::vector<int32_t>> given = parseIds(o.promptIds);
  if (!given.ok())
    return fail("command line", given.status());
  Result<Talker> prepared = prepare(o);
  if (!prepared.ok())
    return fail(o.plan, prepared.status());
  Talker &t = prepared.value();

  std::vector<int32_t> ids = std::move(given.value());
  if (o.hasPrompt || o.hasChatPrompt) {
    std::vector<text::ChatMessage> messages = conversation(o);
    messages.push_back({"user", o.chatPrompt});
    auto encoded = o.hasPrompt ? t.model->encode(o.prompt) : t.model->encodeChat(messages);
    if (!encoded.ok())
      return fail(o.plan, encoded.status());
    ids = std::move(encoded.value());
  }
  bool streams = !o.json && !o.noStream;
  Result<Generated> result = runtime::generate(*t.model, *t.decoder, ids, t.settings,
                                               streams ? print : isWanted, &*t.model);
  if (!result.ok())
    return fail(o.plan, result.status());
  Generated &g = result.value();

  if (o.json) {
    nlohmann::ordered_json json;
    json["prompt_ids"] = ids;
    json["ids"] = g.ids;
    json["text"] = g.text;
    json["reason"] = g.reason;
    if (t.settings.draftNgrams)
      json["draft"] = {{"guessed", g.drafted}, {"accepted", g.accepted}};
    json["device"] = t.opened.device->description();
    json["seconds"] = {
        {"load", t.loadSeconds}, {"prefill", g.prefillSeconds}, {"decode", g.decodeSeconds}};
    std::puts(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return finishOutput();
  }
  if (!streams)
    std::fwrite(g.text.data(), 1, g.text.size(), stdout);
  if (!streams && !t.model->tokenizer)
    for (int32_t id : g.ids)
      std::printf("%d ", id);
  std::puts("");
  return finishOutput();
}

/// The ids of a conversation that leaves room for an answer. Where it has grown too long for the
/// context, its oldest turns are forgotten; `fixed` messages at the beginning and the last one stay,
/// whether they fit or not.
static Result<std::vector<int32_t>> fitConversation(const Talker &t, size_t fixed,
                                                    std::vector<text::ChatMessage> &messages) {
  const Session &session = *t.opened.session;
  const int64_t capacity = session.plan.states.empty() ? INT64_MAX : session.stateCapacity();
  const int64_t answer = std::min(t.settings.maxTokens, capacity / 4);
  bool forgot = false;
  for (;;) {
    Result<std::vector<int32_t>> ids = t.model->encodeChat(messages);
    if (!ids.ok())
      return ids;
    if (int64_t(ids.value().size()) <= capacity - answer || messages.size() == fixed + 1) {
      if (forgot && int64_t(ids.value().size()) <= capacity)
        std::fprintf(stderr, "note: the context of %lld tokens is full, so the oldest messages are "
                             "forgotten (give --context)\n", (long long)capacity);
      return ids;
    }
    // A question goes with its answer.
    auto oldest = messages.begin() + ptrdiff_t(fixed);
    messages.erase(oldest, oldest + 2);
    forgot = true;
  }
}

int chat(const TextOptions &o) {
  Result<Talker> prepared = prepare(o);
  if (!prepared.ok())
    return fail(o.plan, prepared.status());
  Talker &t = prepared.value();
  std::vector<text::ChatMessage> messages = conversation(o);
  const size_t fixed = messages.size();
  int exitStatus = 0;
  const bool isTerminal = isatty(STDIN_FILENO);
  std::string line;
  for (;;) {
    if (isTerminal)
      std::fputs("> ", stdout), std::fflush(stdout);
    if (!std::getline(std::cin, line)) {
      int written = finishOutput();
      return written ? written : exitStatus;
    }
    if (line.empty())
      continue;
    const std::vector<text::ChatMessage> before = messages;
    messages.push_back({"user", line});
    Result<std::vector<int32_t>> ids = fitConversation(t, fixed, messages);
    if (!ids.ok())
      return fail(o.plan, ids.status());
    const Session &session = *t.opened.session;
    if (!session.plan.states.empty() && int64_t(ids.value().size()) > session.stateCapacity()) {
      exitStatus = fail(o.plan, badInput("chat: a message of ", ids.value().size(),
                                         " tokens does not fit in a context of ",
                                         session.stateCapacity(),
                                         " (give --context or a shorter line)"));
      messages = before;
      continue;
    }
    // The beginning of the conversation is still in the cache and is not computed again.
    Result<Generated> result =
        runtime::generate(*t.model, *t.decoder, ids.value(), t.settings, print, &*t.model);
    if (!result.ok())
      return fail(o.plan, result.status());
    std::puts("");
    if (std::fflush(stdout) != 0 || outputIsGone())
      return finishOutput();
    messages.push_back({"assistant", std::move(result.value().text)});
  }
}

} // namespace otf::exec
