// SPDX-License-Identifier: Apache-2.0
//
// With e = exp(x - max x), s = sum of e and log p = x - max x - log s, and the same of y for q:
//   KL = sum of p (log p - log q) = sum of e (x - y) / s - (max x + log s) + (max y + log t).
// So each logit takes one exponential (f32) and a few products (f64), and equal logits give 0.
#include "runtime/Divergence.h"

#include <algorithm>
#include <cmath>

namespace otf::runtime {

std::optional<Prediction> comparePredictions(std::span<const float> reference,
                                             std::span<const float> plan, int32_t next) {
  const size_t count = reference.size();
  const float *x = reference.data(), *y = plan.data();
  size_t best = 0, planBest = 0;
  bool finite = count > 0;
  for (size_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(x[i]) && std::isfinite(y[i]);
    best = x[i] > x[best] ? i : best;
    planBest = y[i] > y[planBest] ? i : planBest;
  }
  if (!finite)
    return std::nullopt;

  const float mostX = x[best], mostY = y[planBest];
  double sumX = 0, sumY = 0, weighted = 0, meanX = 0, meanDifference = 0, squareX = 0, square = 0;
  size_t before = 0;
  for (size_t i = 0; i < count; ++i) {
    const double e = double(std::exp(x[i] - mostX)), difference = double(x[i]) - double(y[i]);
    sumX += e;
    sumY += double(std::exp(y[i] - mostY));
    weighted += e * difference;
    meanX += double(x[i]);
    meanDifference += difference;
    squareX += double(x[i]) * double(x[i]);
    square += difference * difference;
    before += y[i] > y[best] || (y[i] == y[best] && i < best);
  }
  const double normX = double(mostX) + std::log(sumX), normY = double(mostY) + std::log(sumY);
  Prediction result;
  result.divergence = weighted / sumX - normX + normY;
  result.referenceLoss = normX - double(x[size_t(next)]);
  result.loss = normY - double(y[size_t(next)]);
  result.sameBest = best == planBest;
  result.bestInFive = before < 5;
  // The mean of squares less the square of the mean, which rounding can put below 0.
  result.logitsSquare = std::max(0.0, squareX - meanX * meanX / double(count));
  result.differenceSquare = std::max(0.0, square - meanDifference * meanDifference / double(count));
  return result;
}

} // namespace otf::runtime
