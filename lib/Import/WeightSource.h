// SPDX-License-Identifier: Apache-2.0
//
// Weights as bytes of mapped files, or as rows of floats, a block at a time.
//
// Problem: a weight may be larger than memory, and half of the exports store the matrix of `y = W x` transposed.
// Approach: a blob is checked against its file once and then is a pointer; a block of rows is converted into the
// caller's buffer, so what is resident is the block (and pages that the kernel may drop).

#ifndef OTF_LIB_IMPORT_WEIGHTSOURCE_H
#define OTF_LIB_IMPORT_WEIGHTSOURCE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>

namespace otf {

class FileSet;
namespace onnx {
class FileBlobAttr;
}

/// The bytes of a tensor: what `#onnx.blob` says, without MLIR.
struct Blob {
  int64_t file = 0, offset = 0, length = 0;
  int64_t elementType = 0; // onnx::ElementType
  llvm::SmallVector<int64_t, 4> dims;

  static Blob of(onnx::FileBlobAttr attribute);
};

/// The number that 16 bits of IEEE half precision stand for.
float floatOfHalf(uint16_t half);

class WeightSource {
public:
  explicit WeightSource(const FileSet &files) : files(&files) {}

  /// The blob's bytes in the map. Refuses a blob that its file does not hold or whose length is not that of its shape.
  llvm::Expected<const std::byte *> data(const Blob &blob) const;

  /// Rows [firstRow, firstRow + rowCount) of the matrix W that the blob holds, as floats, into out[rowCount][columns].
  /// The blob's shape is seen as a matrix by joining dimensions: W = [dims[0]][all others], or, where `transposed`,
  /// the file holds [all but the last][last] and a row of W is a column of that.
  /// Takes f32, f16, bf16, f64, (u)int8, (u)int16, (u)int32 and bool. A transposed read touches every row of the file,
  /// so read many rows at once (64 or more make use of whole cache lines).
  llvm::Error readRows(const Blob &blob, int64_t firstRow, int64_t rowCount, bool transposed, float *out) const;

private:
  const FileSet *files;
};

} // namespace otf

#endif
