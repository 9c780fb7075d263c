// SPDX-License-Identifier: Apache-2.0
//
// How far a plan's next-token distribution is from a reference's, at one position of a text.
// Logits are f32; sums over the vocabulary are f64, so that 50,000 terms cost no accuracy. Natural
// logarithms throughout.
#ifndef OTF_RUNTIME_DIVERGENCE_H
#define OTF_RUNTIME_DIVERGENCE_H

#include <cstdint>
#include <optional>
#include <span>

namespace otf::runtime {

/// What is measured where p is the reference's distribution and q the plan's.
struct Prediction {
  double divergence = 0;       ///< KL(p || q) = sum of p log(p/q), nats
  double referenceLoss = 0;    ///< -log p(next token of the text), nats
  double loss = 0;             ///< -log q(next token of the text), nats
  bool sameBest = false;       ///< p and q have their largest value at the same token
  bool bestInFive = false;     ///< p's likeliest token is among q's five likeliest
  double logitsSquare = 0;     ///< of the reference's logits less their mean: the sum of squares
  double differenceSquare = 0; ///< of both logits, each less its mean: the squared distance
};

/// Compares the logits for one position. Equal logits are ordered by token id. Nothing if a logit
/// is not finite. Both have the same number of logits, and `next` is one of them.
std::optional<Prediction> comparePredictions(std::span<const float> reference,
                                             std::span<const float> plan, int32_t next);

} // namespace otf::runtime

#endif // OTF_RUNTIME_DIVERGENCE_H
