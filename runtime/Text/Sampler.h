// SPDX-License-Identifier: Apache-2.0
//
// Chooses the next token from a row of logits. The steps are those of Hugging
// Face's generate(), in its order: repetition penalty, n-gram guard,
// temperature, top-k, top-p, min-p. The same seed, logits and history give the
// same token everywhere.
#ifndef OTF_RUNTIME_TEXT_SAMPLER_H
#define OTF_RUNTIME_TEXT_SAMPLER_H

#include "runtime/Text/Expected.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace otf::text {

struct SamplerOptions {
  /// 0 takes the most likely token.
  float temperature = 0;
  /// Keep this many of the most likely tokens; 0 keeps all.
  int32_t topK = 0;
  /// Keep the fewest tokens whose probabilities reach this sum; 1 keeps all.
  float topP = 1;
  /// Keep tokens at least this likely relative to the best one; 0 keeps all.
  float minP = 0;
  /// Divides positive and multiplies negative logits of tokens in the history;
  /// 1 changes nothing.
  float repetitionPenalty = 1;
  /// Never complete an n-gram of this length a second time; 0 allows all.
  int32_t uniqueNgramLength = 0;
  uint64_t seed = 0;
};

/// The first of the largest; nothing where all are not numbers or -infinity.
std::optional<int32_t> largest(std::span<const float> scores);

class Sampler {
public:
  /// Fails when an option is out of its range.
  static Expected<Sampler> create(const SamplerOptions &options);

  /// The next token after `history` (prompt and output so far). Logits that
  /// are not a number count as impossible. Nothing when every token is
  /// impossible or banned, which means that the logits are broken.
  std::optional<int32_t> sample(std::span<const float> logits,
                                std::span<const int32_t> history);

private:
  struct Candidate {
    float logit;
    int32_t id;
    double weight = 0;
  };
  static bool isBetter(const Candidate &left, const Candidate &right);

  explicit Sampler(const SamplerOptions &options)
      : options(options), randomState(options.seed) {}

  void penalizeRepetition(std::span<const int32_t> history);
  void banRepeatedNgram(std::span<const int32_t> history);
  void collectCandidates();
  void keepTopK();
  void weigh();
  void keepTopP();
  void keepMinP();
  int32_t draw();
  double random();

  SamplerOptions options;
  uint64_t randomState;
  // Kept between calls so that sampling does not allocate.
  std::vector<float> scores;
  std::vector<bool> seen;
  std::vector<Candidate> candidates;
};

} // namespace otf::text

#endif // OTF_RUNTIME_TEXT_SAMPLER_H
