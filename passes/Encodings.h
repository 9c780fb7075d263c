// SPDX-License-Identifier: Apache-2.0
//
// What passes ask of encodings.
#ifndef OTF_PASSES_ENCODINGS_H
#define OTF_PASSES_ENCODINGS_H

#include "dialects/OTF/OTF.h"

namespace otf {

/// Whether weights are kept as floats: no scales, no outliers, and a contraction that reads floats.
inline bool isPlain(EncodingAttr encoding) {
  return encoding.getKind() == EncodingKind::f32 || encoding.getKind() == EncodingKind::f16;
}

} // namespace otf

#endif // OTF_PASSES_ENCODINGS_H
