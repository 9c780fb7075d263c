// SPDX-License-Identifier: Apache-2.0
//
// The mark of a tensor.generate whose order of dimensions is worth keeping, as a contraction's is: what reads it transposed is
// computed in its order (otf-sink-transposes).
#ifndef OTF_DIALECTS_OTF_ORDER_H
#define OTF_DIALECTS_OTF_ORDER_H

#include "llvm/ADT/StringRef.h"

namespace otf {

inline constexpr llvm::StringLiteral kKeepsOrder = "otf.keeps_order";

} // namespace otf

#endif // OTF_DIALECTS_OTF_ORDER_H
