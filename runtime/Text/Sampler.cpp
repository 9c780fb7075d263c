// SPDX-License-Identifier: Apache-2.0
//
// Nothing sorts the whole vocabulary: top-k selects, top-p pops a heap until
// it has its mass. Ties go to the lower id, so results do not depend on how
// the standard library orders equal elements.
#include "runtime/Text/Sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace otf::text {
namespace {

constexpr float impossible = -std::numeric_limits<float>::infinity();

} // namespace

std::optional<int32_t> largest(std::span<const float> scores) {
  // Sixteen maxima that do not wait for each other; a search ends where the largest one stands.
  constexpr size_t lanes = 16;
  float best[lanes];
  std::fill(best, best + lanes, impossible);
  size_t i = 0;
  for (; i + lanes <= scores.size(); i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      best[lane] = scores[i + lane] > best[lane] ? scores[i + lane] : best[lane];
  for (; i < scores.size(); ++i)
    best[0] = std::max(best[0], scores[i]);
  const float most = *std::max_element(best, best + lanes);
  if (!(most > impossible))
    return std::nullopt;
  return static_cast<int32_t>(std::find(scores.begin(), scores.end(), most) - scores.begin());
}

Expected<Sampler> Sampler::create(const SamplerOptions &options) {
  // Written so that NaN fails, too.
  auto bad = [](const char *name, const char *range) {
    return Error{std::string("sampler: ") + name + " is out of range; use " +
                 range};
  };
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    return bad("temperature", "0 (greedy) or more");
  if (options.topK < 0)
    return bad("top-k", "0 (all) or more");
  if (!(options.topP > 0 && options.topP <= 1))
    return bad("top-p", "more than 0 and at most 1");
  if (!(options.minP >= 0 && options.minP <= 1))
    return bad("min-p", "0 to 1");
  if (!(options.repetitionPenalty > 0 &&
        std::isfinite(options.repetitionPenalty)))
    return bad("repetition penalty", "more than 0");
  if (options.uniqueNgramLength < 0)
    return bad("n-gram length", "0 (no guard) or more");
  return Sampler(options);
}

std::optional<int32_t> Sampler::sample(std::span<const float> logits,
                                       std::span<const int32_t> history) {
  constexpr float largest = std::numeric_limits<float>::max();
  scores.assign(logits.begin(), logits.end());
  // An infinite logit would make inf - inf below.
  for (float &score : scores)
    score = std::isnan(score) ? impossible : std::min(score, largest);
  penalizeRepetition(history);
  banRepeatedNgram(history);
  if (options.temperature == 0)
    return text::largest(scores); // not the bound above
  collectCandidates();
  if (candidates.empty())
    return std::nullopt;
  keepTopK();
  weigh();
  keepTopP();
  keepMinP();
  return draw();
}

bool Sampler::isBetter(const Candidate &left, const Candidate &right) {
  return left.logit > right.logit ||
         (left.logit == right.logit && left.id < right.id);
}

void Sampler::penalizeRepetition(std::span<const int32_t> history) {
  if (options.repetitionPenalty == 1)
    return;
  seen.assign(scores.size(), false);
  for (int32_t id : history) {
    if (id < 0 || static_cast<size_t>(id) >= scores.size() || seen[id])
      continue;
    seen[id] = true;
    float &score = scores[id];
    score = score > 0 ? score / options.repetitionPenalty
                      : score * options.repetitionPenalty;
  }
}

void Sampler::banRepeatedNgram(std::span<const int32_t> history) {
  auto length = static_cast<size_t>(options.uniqueNgramLength);
  if (length == 0 || history.size() < length)
    return;
  // The last length-1 tokens would be the beginning of the n-gram; every place
  // where they occurred before tells a token that must not follow.
  std::span<const int32_t> begin = history.last(length - 1);
  for (size_t at = 0; at + length <= history.size(); ++at) {
    int32_t id = history[at + length - 1];
    if (id >= 0 && static_cast<size_t>(id) < scores.size() &&
        std::equal(begin.begin(), begin.end(), history.begin() + at))
      scores[id] = impossible;
  }
}

void Sampler::collectCandidates() {
  candidates.clear();
  for (size_t id = 0; id < scores.size(); ++id)
    if (scores[id] > impossible)
      candidates.push_back({scores[id], static_cast<int32_t>(id)});
}

void Sampler::keepTopK() {
  auto count = static_cast<size_t>(options.topK);
  if (count == 0 || count >= candidates.size())
    return;
  std::partial_sort(candidates.begin(), candidates.begin() + count,
                    candidates.end(), isBetter);
  candidates.resize(count);
}

/// Probabilities up to a common factor; the best candidate has weight 1.
void Sampler::weigh() {
  double best =
      std::min_element(candidates.begin(), candidates.end(), isBetter)->logit;
  for (Candidate &candidate : candidates)
    candidate.weight =
        std::exp((candidate.logit - best) / options.temperature);
}

void Sampler::keepTopP() {
  if (options.topP == 1)
    return;
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  // std heaps put the element on top that is less than no other.
  auto isWorse = [](const Candidate &left, const Candidate &right) {
    return isBetter(right, left);
  };
  std::make_heap(candidates.begin(), candidates.end(), isWorse);
  double mass = 0;
  auto heapEnd = candidates.end();
  while (heapEnd != candidates.begin() && mass < options.topP * total) {
    std::pop_heap(candidates.begin(), heapEnd--, isWorse);
    mass += heapEnd->weight;
  }
  // Popped elements lie behind the heap, the best one last.
  candidates.erase(candidates.begin(), heapEnd);
}

void Sampler::keepMinP() {
  std::erase_if(candidates, [&](const Candidate &candidate) {
    return candidate.weight < options.minP;
  });
}

int32_t Sampler::draw() {
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  double rest = random() * total;
  for (const Candidate &candidate : candidates) {
    rest -= candidate.weight;
    if (rest < 0)
      return candidate.id;
  }
  // Only rounding leads here.
  return candidates.back().id;
}

/// Uniform in [0, 1): the upper 53 bits of SplitMix64 (Steele, Lea, Flood,
/// 2014), which passes the usual tests and has a single word of state.
double Sampler::random() {
  randomState += 0x9E3779B97F4A7C15;
  uint64_t bits = randomState;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

} // namespace otf::text
