// SPDX-License-Identifier: Apache-2.0
//
// What otf-choose-caches says of an otf.cache, and what an element type of a cache means for its rows.
#ifndef OTF_DIALECTS_OTF_CACHES_H
#define OTF_DIALECTS_OTF_CACHES_H

#include "dialects/OTF/OTF.h"
#include "lib/Encoding/CacheRow.h"

namespace otf {

/// Type, f16 or i8: the session shall hold the cache in it; otf-encode-caches then makes it the states' element type.
inline constexpr llvm::StringLiteral kHeldAttribute = "otf.held";

/// Elements of the state's type that a row takes: behind one of i8 lies its scale.
inline int64_t rowElements(StateType type) { return type.getWidth() + (type.getElementType().isInteger(8) ? kCacheScaleBytes : 0); }

/// Work items of an attention to a cache are heads times this of one row, so that threads can share the keys of a head, and heads
/// times this less one more than the rows of many, which then are proportions of the work.
inline constexpr int64_t kAttentionParts = 8;

} // namespace otf

#endif // OTF_DIALECTS_OTF_CACHES_H
