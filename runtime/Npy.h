// SPDX-License-Identifier: Apache-2.0
//
// Arrays in numpy's .npy format: versions 1 to 3, little-endian, row-major.
#ifndef OTF_RUNTIME_NPY_H
#define OTF_RUNTIME_NPY_H

#include "runtime/PlanFile.h"

#include <vector>

namespace otf::runtime {

struct NpyArray {
  ElementType type; // u8 or u16 for bits
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  bool isBits = false; // of a type that numpy has no name for, and the file does not say which

  /// Takes bits, or unsigned integers of their size, for elements of a type that numpy lacks. Nothing
  /// for other types, and for elements of another size.
  void readAs(ElementType wanted);
};

/// The content of a file. A file of 64-bit integers and so on is a type error of whoever uses it.
Result<NpyArray> parseNpy(Bytes file);
Result<NpyArray> readNpy(const std::string &path);

/// Types that numpy lacks are written as their bits, V2 for bf16 and V1 for those of a byte: view them
/// as the type of ml_dtypes.
Status writeNpy(const std::string &path, ElementType type, std::span<const int64_t> shape,
                const void *data);

} // namespace otf::runtime

#endif // OTF_RUNTIME_NPY_H
