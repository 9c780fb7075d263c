// SPDX-License-Identifier: Apache-2.0
//
// Float weights that somebody quantized before and wrote back as floats. Coding such a weight on another grid loses twice, so
// whoever compiles the model should know.
#ifndef OTF_LIB_COMPILE_GRIDDETECTOR_H
#define OTF_LIB_COMPILE_GRIDDETECTOR_H

#include <cstdint>
#include <string>

namespace otf {

/// Looks at the first rows of a weight: "at most 16 values in each 32 columns", or nothing where it looks like any weight.
std::string describeGrid(const float *rows, int64_t count, int64_t columns);

} // namespace otf

#endif // OTF_LIB_COMPILE_GRIDDETECTOR_H
