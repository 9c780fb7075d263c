// SPDX-License-Identifier: Apache-2.0
//
// A matrix as its encoding leaves it: encoded by lib/Encoding's reference codec and decoded again.
// The encoding is given as the number that #otf.encoding has for its kind, since lib/Encoding and
// the dialect name their enumerations alike.
#ifndef OTF_LIB_REFERENCE_MATRIXCODEC_H
#define OTF_LIB_REFERENCE_MATRIXCODEC_H

#include "lib/Reference/Tensor.h"

#include <functional>

namespace otf::reference {

/// Rows [first, first + count) as floats; or a clause that says why there are none.
using ReadRows = std::function<std::string(int64_t first, int64_t count, float *rows)>;

/// Fills `weights` and `blob` of `matrix`, whose other members say what it is. Returns a clause that
/// says what is wrong, or nothing.
std::string recode(Matrix &matrix, int kind, int64_t group, const ReadRows &read, bool jointFit = false);

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_MATRIXCODEC_H
