// SPDX-License-Identifier: Apache-2.0
//
// A text's predictions as figures with confidence. Predictions inside a window of text depend on
// each other, so intervals come from a bootstrap over windows: windows are drawn with replacement,
// as many as there are, and each figure is computed anew from what was drawn. Both models' figures
// use the same draws (a paired bootstrap), so what is hard for both does not widen an interval of
// their difference. The draws follow from a fixed seed.
#ifndef OTF_RUNTIME_EVALUATION_H
#define OTF_RUNTIME_EVALUATION_H

#include "runtime/Divergence.h"

#include <cstddef>
#include <vector>

namespace otf::runtime {

/// A figure, and the 2.5 % and 97.5 % quantiles of its bootstrap distribution (percentile method).
/// With fewer than two windows there is no interval: low and high are NaN.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

struct Figures {
  size_t windows = 0, predictions = 0;
  Estimate divergence, divergenceMedian, divergence99, divergence999; ///< KL, nats
  Estimate sameBest, bestInFive;                                      ///< fractions
  Estimate referencePerplexity, perplexity;                           ///< exp of the mean loss
  Estimate ratio;         ///< exp(mean loss - mean reference loss)
  double logitsError = 0; ///< relative, of logits less each position's mean
};

/// The quantile of ascending values at fraction q, between neighbours linearly (numpy's default).
double quantile(const std::vector<double> &ascending, double q);

class Evaluation {
public:
  /// What follows belongs to a new window.
  void beginWindow();
  void add(const Prediction &prediction);

  static constexpr unsigned kResamples = 10000;
  Figures figures(unsigned resamples = kResamples) const;

private:
  struct Sums {
    double count = 0, divergence = 0, referenceLoss = 0, loss = 0, sameBest = 0, bestInFive = 0;
  };
  struct Divergence {
    double value;
    unsigned window;
  };
  std::vector<Sums> windows;
  std::vector<Divergence> divergences;
  double logitsSquare = 0, differenceSquare = 0;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_EVALUATION_H
