// SPDX-License-Identifier: Apache-2.0
//
// What otf-insert-observers reads and leaves, as attributes.
#ifndef OTF_DIALECTS_OTF_OBSERVED_H
#define OTF_DIALECTS_OTF_OBSERVED_H

#include "dialects/OTF/OTF.h"

namespace otf {

/// A string, of an otf.weight: the set of statistics that its inputs go to.
inline constexpr llvm::StringLiteral kObservedAttribute = "otf.observed";

/// Strings, of a module: the sets that are of no weight.
inline constexpr llvm::StringLiteral kObservedValuesAttribute = "otf.observed_values";

/// i64, of what makes a tensor of chosen experts, tokens x choices: how many experts there are.
inline constexpr llvm::StringLiteral kExpertsAttribute = "otf.experts";

/// Sets of what an otf.append adds to a cache, and of how many tokens chose each expert, as sums of channels: these and a name.
inline constexpr llvm::StringLiteral kCacheSet = "cache:";
inline constexpr llvm::StringLiteral kExpertsSet = "experts:";

} // namespace otf

#endif // OTF_DIALECTS_OTF_OBSERVED_H
