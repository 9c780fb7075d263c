// SPDX-License-Identifier: Apache-2.0
//
// Second moments of what a linear multiplies a coded weight by, from the calibration's of the
// model's own activations: relative inputs r = (x − c) / s and rotated ones R r are linear in x, so
// theirs follow from Σ x xᵀ and Σ x.
#ifndef OTF_LIB_COMPILE_INPUTMOMENTS_H
#define OTF_LIB_COMPILE_INPUTMOMENTS_H

#include "dialects/OTF/OTF.h"
#include "lib/Analysis/Statistics.h"

#include <vector>

namespace otf {

/// Whether they differ from `channels.product`.
bool changesInputs(WeightOp weight);

/// K x K, row-major, both triangles. Needs products.
std::vector<double> inputMoments(WeightOp weight, const ChannelStatistics &channels);

} // namespace otf

#endif // OTF_LIB_COMPILE_INPUTMOMENTS_H
