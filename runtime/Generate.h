// SPDX-License-Identifier: Apache-2.0
//
// Prompt in, text out: the loop of decoding, sampling and streaming.
#ifndef OTF_RUNTIME_GENERATE_H
#define OTF_RUNTIME_GENERATE_H

#include "runtime/Decoder.h"
#include "runtime/LanguageModel.h"
#include "runtime/Text/Sampler.h"

namespace otf::runtime {

struct GenerateOptions {
  text::SamplerOptions sampling;
  std::vector<std::string> stops;
  int64_t maxTokens = 256;
  bool ignoreEnd = false;
  /// Guess tokens to come by the text so far and check several in one run (Draft.h). Tokens are chosen by the same
  /// logits and the same random numbers, so the text is that without guesses, but for near ties where
  /// weights are f32 or f16: sums of several rows round otherwise.
  bool draftNgrams = false;
};

struct Generated {
  std::vector<int32_t> ids; // with the end token when there was one
  std::string text;         // empty without a tokenizer
  const char *reason;       // why it ended: "end", "stop", "length", "context" or "caller"
  double prefillSeconds = 0, decodeSeconds = 0;
  size_t drafted = 0, accepted = 0; // guessed tokens, and how many of them were right
};

/// Called for each token with the text that became certain with it, which may be empty, and once
/// at the end with id -1 and the rest. Returning false ends the generation.
using OnToken = bool (*)(void *user, std::string_view text, int32_t id);

Result<Generated> generate(const LanguageModel &model, Decoder &decoder,
                           std::span<const int32_t> prompt, const GenerateOptions &options,
                           OnToken onToken, void *user);

} // namespace otf::runtime

#endif // OTF_RUNTIME_GENERATE_H
