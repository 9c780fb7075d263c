// SPDX-License-Identifier: Apache-2.0
//
// What running a plan takes, from its metadata alone: for a dry run, before there is a plan.
#ifndef OTF_LIB_COMPILE_FOOTPRINT_H
#define OTF_LIB_COMPILE_FOOTPRINT_H

#include "lib/Plan/PlanModel.h"

#include <optional>

namespace otf {

/// Bytes, for one step that appends one position to a cache of `context - 1`: batch 1, one token.
/// A model without states has symbols of its own; each is taken as 1.
struct Footprint {
  uint64_t states = 0;  ///< the caches with room for the context
  uint64_t scratch = 0; ///< slots and outputs of the step
  uint64_t read = 0;    ///< weights that the step reads whole: all but embeddings
  bool atLeast = false; ///< sizes that the run finds out were taken as 1
};

/// Nothing where a size is negative or does not fit in 64 bits.
std::optional<Footprint> footprintOf(const plan::model::Plan &plan, int64_t context);

/// Positions that a session has room for unless it is told: the model's context, at most 4096.
int64_t defaultContext(const plan::model::Plan &plan);

} // namespace otf

#endif // OTF_LIB_COMPILE_FOOTPRINT_H
