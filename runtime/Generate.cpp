// SPDX-License-Identifier: Apache-2.0
#include "runtime/Generate.h"

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
  const bool greedy = options.sampling.temperature == 0 && options.sampling.repetitionPenalty == 1 && options.sampling.uniqueNgramLength == 0;
  decoder.wantOnlyBest(greedy);
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
  while (int64_t(result.ids.size()) < options.maxTokens) {
    std::optional<int32_t> id;
    if (Result<int32_t> best = greedy ? decoder.best() : Result<int32_t>(Status()); greedy) {
      if (!best.ok())
        return best.status();
      id = best.value();
    } else {
      id = sampler->sample(decoder.logits(), decoder.history());
    }
    if (!id)
      return badInput("output 'logits': no token is possible (every value is not a number or is "
                      "excluded)");
    result.ids.push_back(*id);
    bool isEnd = model.isEnd(*id) && !options.ignoreEnd;
    bool goOn = tell(model.tokenizer && !isEnd ? stream.push(*model.tokenizer, *id) : "", *id);
    const char *reason = isEnd ? "end" : stream.stopped() ? "stop" : !goOn ? "caller" : nullptr;
    if (!reason && int64_t(result.ids.size()) == options.maxTokens)
      break; // the token after the last one is not needed
    if (!reason && !decoder.hasRoom())
      reason = "context";
    if (reason) {
      result.reason = reason;
      break;
    }
    OTF_TRY(decoder.append(*id));
  }
  tell(model.tokenizer ? stream.finish() : "", -1);
  result.decodeSeconds = seconds() - decodeStart;
  return result;
}

} // namespace otf::runtime
