// SPDX-License-Identifier: Apache-2.0
//
// Which choice for each item costs least while all of them together keep within a limit: the
// multiple-choice knapsack problem, which is what spending a budget of bytes on weights is
// (Kellerer, Pferschy, Pisinger, "Knapsack Problems", chapter 11).
//
// Problem: the Lagrangian relaxation, min value + λ · weight of each item alone, leaves part of the
// limit unspent, and with few items that is a tenth of the gain. Approach: it says the bounds, and
// all that can still be best between them is kept as a front of partial sums. The result is exact.
#ifndef OTF_LIB_ANALYSIS_ALLOCATION_H
#define OTF_LIB_ANALYSIS_ALLOCATION_H

#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <vector>

namespace otf {

struct Choice {
  double weight; ///< what the limit counts; not negative, finite
  double value;  ///< what is to be small; finite
};

/// The choice of each item, such that Σ weight <= limit and Σ value is least; of equal values the
/// least weight, then the first choices. Nothing where even the lightest choices exceed the limit.
/// Items have at least one choice. `value`s and `weight`s that differ by rounding of their sums
/// count as equal.
std::optional<std::vector<unsigned>> allocate(llvm::ArrayRef<std::vector<Choice>> items,
                                              double limit);

} // namespace otf

#endif // OTF_LIB_ANALYSIS_ALLOCATION_H
