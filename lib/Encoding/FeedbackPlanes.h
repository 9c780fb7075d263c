// SPDX-License-Identifier: Apache-2.0
//
// planes<w,k> coded with error feedback: 32 columns at a time, those of many rows together.
#ifndef OTF_ENCODING_FEEDBACKPLANES_H
#define OTF_ENCODING_FEEDBACKPLANES_H

#include "Feedback.h"
#include "Layout.h"

namespace otf {

/// As encodeTile, for rows of any number of tiles; tile t lies at tiles + t · layout.tileBytes. `feedback` has
/// layout.columns columns in the order of `index`. Scales are fitted to the loss, not to the weights.
EncodeStatus encodePlanesWithFeedback(EncodingKind kind, const WeightLayout &layout,
                                      const uint32_t *index, const float *weights,
                                      int64_t rowStride, int64_t rows, const Feedback &feedback,
                                      uint8_t *tiles);

} // namespace otf

#endif // OTF_ENCODING_FEEDBACKPLANES_H
