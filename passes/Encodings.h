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

/// Whether a linear's weight is coded as a recipe says, and could be coded otherwise: no table, and no codes of the file.
inline bool isCodedLinear(WeightOp weight) {
  std::optional<EncodingAttr> encoding = weight.getEncoding();
  return encoding && !isPlain(*encoding) && !weight.getVocabulary() && !weight.getKeepsGiven();
}

} // namespace otf

#endif // OTF_PASSES_ENCODINGS_H
