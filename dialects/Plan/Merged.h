// SPDX-License-Identifier: Apache-2.0
//
// What otf-merge-launches says of a plan.launch, for devices on which a launch costs time.
#ifndef OTF_DIALECTS_PLAN_MERGED_H
#define OTF_DIALECTS_PLAN_MERGED_H

#include "llvm/ADT/StringRef.h"

namespace otf::plan {

/// i64: launches of one unit may run together where they have one row, so what one of them reads or writes is alive while any of them
/// runs. A unit is consecutive launches; the first may be a prologue that the others read the record of, and only they.
inline constexpr llvm::StringLiteral kLaunchUnitAttribute = "plan.unit";

/// i64: launches of a unit with the same number become one, which does the unit's prologue too.
inline constexpr llvm::StringLiteral kMergedAttribute = "plan.merged";

/// i64: of the launches that are merged, those of different lanes are independent. Those of one lane run in order, on the same
/// items divided in the same way: what one reads of those before it, it has written at the same place itself.
inline constexpr llvm::StringLiteral kLaneAttribute = "plan.lane";

/// str: a polynomial that is 1 where they may run together, on the first launch of what is merged.
inline constexpr llvm::StringLiteral kRowsAttribute = "plan.rows";

} // namespace otf::plan

#endif // OTF_DIALECTS_PLAN_MERGED_H
