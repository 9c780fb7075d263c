// SPDX-License-Identifier: Apache-2.0
#include "runtime/Generate.h"

#include "runtime/Draft.h"
#include "runtime/Text/TextStream.h"

#include <chrono>

namespace otf::runtime {

static double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

Result<Generated> generate(const LanguageModel &model, Decoder &decoder,
                           std::span<const int32_t> prompt, const GenerateOptions &options,
                           OnToken onToken, void *user) {
  auto sampler = text::Sampler::create(options.sampling);
  if (!sampler)
    return usageError("sampling: ", sampler.error().message);
  // Nothing but the most likely token is asked for: what the device can find itself.
  // Guesses need the logits after each of them.
  const bool onlyBest = options.sampling.temperature == 0 && options.sampling.repetitionPenalty == 1 &&
                        options.sampling.uniqueNgramLength == 0 && !options.draftNgrams;
  decoder.wantOnlyBest(onlyBest);
  text::TextStream stream(options.stops);
  Generated result;
  result.reason = "length";
  double start = seconds();
  OTF_TRY(decoder.start(prompt));
  double decodeStart = seconds();
  result.prefillSeconds = decodeStart - start;

  auto tell = [&](std::string_view piece, int32_t id) {
    result.text += piece;
    return !onToken || onToken(user, piece, id);
  };
  if (options.draftNgrams && decoder.isStateless())
    return usageError("--draft: the model has no cache, so each token is a run over the whole text (leave it out)");
  NgramDraft draft;
  std::vector<int32_t> batch; // a chosen token and guesses that follow it, as they were appended
  size_t row = 0;             // of the batch's logits: those after its first row + 1 tokens, which are right
  while (int64_t(result.ids.size()) < options.maxTokens) {
    const size_t unsure = decoder.rows() - 1 - row;
    std::optional<int32_t> id;
    if (Result<int32_t> best = onlyBest ? decoder.best() : Result<int32_t>(Status()); onlyBest) {
      if (!best.ok())
        return best.status();
      id = best.value();
    } else {
      std::span<const int32_t> text = decoder.history();
      id = sampler->sample(decoder.logits(row), text.first(text.size() - unsure));
    }
    if (!id)
      return badInput("output 'logits': no token is possible (every value is not a number or is "
                      "excluded)");
    result.ids.push_back(*id);
    bool isEnd = model.isEnd(*id) && !options.ignoreEnd;
    bool goOn = tell(model.tokenizer && !isEnd ? stream.push(*model.tokenizer, *id) : "", *id);
    const char *reason = isEnd ? "end" : stream.stopped() ? "stop" : !goOn ? "caller" : nullptr;
    const bool isLast = int64_t(result.ids.size()) == options.maxTokens; // the token after it is not needed
    const bool isRight = unsure > 0 && batch[row + 1] == *id;
    if (!reason && !isLast && isRight) {
      ++row;
      continue;
    }
    // What the cache holds beyond the text is taken back, at the end too.
    if (decoder.rows() > 1)
      draft.learn(row + (isRight ? 1 : 0));
    if (unsure > 0)
      OTF_TRY(decoder.forget(unsure));
    if (!reason && isLast)
      break;
    if (!reason && !decoder.hasRoom())
      reason = "context";
    if (reason) {
      result.reason = reason;
      break;
    }
    row = 0;
    if (!options.draftNgrams) {
      OTF_TRY(decoder.append(*id));
      continue;
    }
    batch.assign(decoder.history().begin(), decoder.history().end());
    batch.push_back(*id);
    const size_t most = std::min<size_t>(size_t(options.maxTokens) - result.ids.size() - 1, decoder.room() - 1);
    const std::span<const int32_t> guesses = draft.guess(batch, most);
    batch.assign(1, *id);
    batch.insert(batch.end(), guesses.begin(), guesses.end());
    OTF_TRY(decoder.append(batch));
  }
  result.drafted = draft.drafted;
  result.accepted = draft.accepted;
  tell(model.tokenizer ? stream.finish() : "", -1);
  result.decodeSeconds = seconds() - decodeStart;
  return result;
}

} // namespace otf::runtime
