// SPDX-License-Identifier: Apache-2.0
//
// Arrays in numpy's .npy format: versions 1 to 3, little-endian, row-major.
#ifndef OTF_RUNTIME_NPY_H
#define OTF_RUNTIME_NPY_H

#include "runtime/PlanFile.h"

#include <vector>

namespace otf::runtime {

struct NpyArray {
  ElementType type;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// The content of a file. A file of 64-bit integers and so on is a type error of whoever uses it.
Result<NpyArray> parseNpy(Bytes file);
Result<NpyArray> readNpy(const std::string &path);

/// bf16 has no name in numpy and is written as its bits, u16.
Status writeNpy(const std::string &path, ElementType type, std::span<const int64_t> shape,
                const void *data);

} // namespace otf::runtime

#endif // OTF_RUNTIME_NPY_H
