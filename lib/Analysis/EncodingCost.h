// SPDX-License-Identifier: Apache-2.0
//
// What an encoding costs and what it loses, before anything is encoded. It knows no MLIR: the
// caller says the encoding as the number that #otf.encoding gives its kind.
#ifndef OTF_LIB_ANALYSIS_ENCODINGCOST_H
#define OTF_LIB_ANALYSIS_ENCODINGCOST_H

#include <cstdint>

namespace otf {

/// Bytes of an N × K weight in the plan, with scales, index and padding; 0 where there is no such
/// layout.
uint64_t storedBytes(int kind, int64_t group, int64_t rows, int64_t columns, int64_t outliers);

/// Mean squared error over mean square of a weight that looks Gaussian, where `columns` of them
/// share a scale; 0 for floats. Negative for encodings that nobody has asked about.
double gaussianDistortion(int kind, int64_t columns);

} // namespace otf

#endif // OTF_LIB_ANALYSIS_ENCODINGCOST_H
