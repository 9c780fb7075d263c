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

/// Elements and bytes of some weights.
struct Tally {
  uint64_t tensors = 0, elements = 0, bytes = 0;
  void add(const StoredWeight &weight);
  double bits() const { return elements ? 8.0 * double(bytes) / double(elements) : 0; }
};

struct Totals {
  Tally layers, vocabulary, total;
  explicit Totals(const StreamEncoder &weights);
};

/// JSON; says nothing about time or place, so equal inputs give equal reports. Call after write().
std::string makeReport(const StreamEncoder &weights, const Recipe &recipe,
                       const std::string &producer, const std::string &model,
                       const Statistics *statistics = nullptr);

/// One line about a weight.
std::string describe(const StoredWeight &weight);

} // namespace otf

#endif // OTF_LIB_COMPILE_REPORT_H
