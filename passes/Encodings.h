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

/// Whether a weight gets codes that are not the file's.
inline bool hasChosenCodes(WeightOp weight) {
  std::optional<EncodingAttr> encoding = weight.getEncoding();
  return encoding && !isPlain(*encoding) && !weight.getKeepsGiven();
}

/// Whether a budget may give a weight another encoding: tables, heads that are coded as linears among them, keep theirs.
inline bool hasChoice(WeightOp weight) { return hasChosenCodes(weight) && !weight.getVocabulary(); }

/// Whether a budget of bytes may give a vocabulary table another encoding: one that is coded as a table, by rounding alone.
inline bool hasTableChoice(WeightOp weight) {
  return hasChosenCodes(weight) && weight.getVocabulary() && !weight.getOutliers() && !weight.getRotationAttr() && !weight.getFeedbackAttr();
}

} // namespace otf

#endif // OTF_PASSES_ENCODINGS_H
