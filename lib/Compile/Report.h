// SPDX-License-Identifier: Apache-2.0
//
// What compiling did to each tensor, for people and for the plan: report.json.
#ifndef OTF_LIB_COMPILE_REPORT_H
#define OTF_LIB_COMPILE_REPORT_H

#include "lib/Compile/Recipe.h"
#include "lib/Compile/StreamEncoder.h"

#include <string>

namespace otf {

class Statistics;

/// Elements and bytes of some weights, what the model's files spend on them, and what coding changed.
struct Tally {
  uint64_t tensors = 0, elements = 0, bytes = 0, fileBytes = 0;
  CodingError error;
  void add(const StoredWeight &weight);
  double bits() const { return elements ? 8.0 * double(bytes) / double(elements) : 0; }
};

struct Totals {
  Tally linears;    ///< matrices that activations are multiplied by, vocabulary tables apart
  Tally layers;     ///< all but vocabulary tables: linears, norms, constants
  Tally vocabulary; ///< embeddings and heads
  Tally total;
  explicit Totals(const StreamEncoder &weights);
};

/// Weights of one kind: those of all layers that are read by the same node of a layer, in the order
/// in which the first is read.
struct WeightType {
  std::string name; ///< the node's, with "*" for numbers: "/model/layers.*/mlp/up_proj/MatMul"
  std::string encoding; ///< several are joined
  int64_t rows = 0, columns = 0; ///< of the first
  Tally tally;
};
std::vector<WeightType> weightTypes(const StreamEncoder &weights);

/// The types and totals as lines for people. Call after write().
std::string reportTable(const StreamEncoder &weights);

/// JSON; says nothing about time or place, so equal inputs give equal reports. Call after write().
std::string makeReport(const StreamEncoder &weights, const Recipe &recipe,
                       const std::string &producer, const std::string &model,
                       const Statistics *statistics = nullptr);

/// One line about a weight.
std::string describe(const StoredWeight &weight);

} // namespace otf

#endif // OTF_LIB_COMPILE_REPORT_H
