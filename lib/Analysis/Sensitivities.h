// SPDX-License-Identifier: Apache-2.0
//
// What a model loses where one weight is off: what `otf-compile --calibrate` measures for recipes
// that choose among encodings, as a JSON file beside the model, which a person may read and change:
//
//   {
//     "format": "otf-sensitivities-1",
//     "model": "…",                  the key of the model (ModelKey.h)
//     "settings": "…",               a hash of what was run and of how errors were made
//     "source": "512 tokens of a.txt",
//     "errors": "…",                 how errors were made, in words: rotation, rounding
//     "measure": "kl",               nats a token, or "error": squared relative error of outputs
//     "noise": 0.03,                 variance of a code's error to the mean square of its row
//     "weights": {"NAME": 0.001, …}, the loss where this weight alone has such errors
//     "tables": {"NAME": 0.3, …},    the same for vocabulary tables, whose errors are those of rounding; may be left out
//     "together": [[0.005, 0.1], …]  noise and loss where all weights have; both ascend
//   }
//
// Losses are proportional to noise where they are small, and errors of different weights add: so a
// number a weight foretells what any choice of encodings costs. What they do to each other at large
// errors is read from `together`.
#ifndef OTF_LIB_ANALYSIS_SENSITIVITIES_H
#define OTF_LIB_ANALYSIS_SENSITIVITIES_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace otf {

struct Sensitivities {
  std::string model, settings, source, errors, measure;
  double noise = 0;
  std::map<std::string, double> weights, tables;
  std::vector<std::pair<double, double>> together;

  /// An error's message is whole: "<path>: <what> (<why, and what to try>)".
  static llvm::Expected<Sensitivities> open(llvm::StringRef path);
  std::string json() const;

  /// What the model loses where `sum` is what the weights' losses add up to. Never falls where
  /// `sum` grows.
  double foretell(double sum) const;
};

} // namespace otf

#endif // OTF_LIB_ANALYSIS_SENSITIVITIES_H
