// SPDX-License-Identifier: Apache-2.0
//
// A weight that the model's file has quantized (`#otf.given`), as rows of floats and as the grid that the rows lie on.
#ifndef OTF_LIB_IMPORT_GIVENWEIGHT_H
#define OTF_LIB_IMPORT_GIVENWEIGHT_H

#include "dialects/OTF/OTF.h"
#include "lib/Import/WeightSource.h"

#include <vector>

namespace otf {

class GivenWeight {
public:
  /// Sees the weight, whose `given` is set, as rows × columns; checks that everything lies inside its blob.
  static llvm::Expected<GivenWeight> open(const FileSet &files, WeightOp weight, int64_t rows, int64_t columns);

  /// Rows as floats, into out[rowCount][columns].
  void read(int64_t firstRow, int64_t rowCount, float *out) const;

  int64_t blocks() const { return (columns + block - 1) / block; }
  float scale(int64_t row, int64_t at) const { return codesOnly ? 1.0f : number(scales, row / rowBlock * scaleRow + at * scaleBlock); }
  /// The zero point: weight = scale · (code − point).
  float point(int64_t row, int64_t at) const;

private:
  /// A tensor of floats in the file or in the attribute.
  struct Numbers {
    const std::byte *bytes = nullptr;
    int64_t type = 0, count = 0;
    std::vector<float> values; // where there are no bytes
  };
  static float number(const Numbers &, int64_t at);
  static llvm::Expected<Numbers> open(const FileSet &files, mlir::Attribute attribute);
  int code(const std::byte *bytes, int64_t at) const;
  float value(int code, float scale, float point) const {
    return table.empty() ? scale * (float(code) - point) : scale * table[size_t(code)];
  }

  int64_t rows = 0, columns = 0, bits = 0, pitch = 0, rowBlock = 1, block = 0;
  int64_t scaleRow = 0, scaleBlock = 0, zeroRow = 0, zeroBlock = 0, zero = 0;
  bool codesOnly = false; // scales are applied to sums
  bool isSigned = false, transposed = false, highFirst = false, packedZeros = false;
  const std::byte *codes = nullptr;
  Numbers scales, zeros;
  std::vector<float> table;
};

} // namespace otf

#endif // OTF_LIB_IMPORT_GIVENWEIGHT_H
