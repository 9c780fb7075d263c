// SPDX-License-Identifier: Apache-2.0
//
// A weight of the IR as rows of floats: its blob in the model's files, turned, scaled and rotated as
// otf.weight says. The plan is written from it, and otf-choose-outliers scores columns with it.
#ifndef OTF_LIB_COMPILE_WEIGHTROWS_H
#define OTF_LIB_COMPILE_WEIGHTROWS_H

#include "lib/Import/GivenWeight.h"
#include "lib/Import/WeightSource.h"
#include "lib/Encoding/Rotation.h"
#include "passes/WeightReader.h"

#include <optional>
#include <vector>

namespace otf {

class WeightRows {
public:
  /// Sees `weight` as rows × columns, whatever its rank. Reads the scale, if it has one.
  static llvm::Expected<WeightRows> open(const FileSet &files, WeightOp weight, int64_t rows,
                                         int64_t columns);

  /// Rows that no file has (dialects/OTF/Derived.h), as floats in memory.
  static WeightRows ofFloats(const FileSet &files, std::vector<float> values, int64_t columns);

  llvm::Error read(int64_t firstRow, int64_t rowCount, float *out) const;
  /// The grid of a weight that the file has quantized, or null.
  const GivenWeight *given() const { return quantized ? &*quantized : nullptr; }
  /// Whether values are made and not read, so that there are no bytes.
  bool isSynthetic() const { return memory.empty() && synthetic; }
  /// The bytes as they are in the file; without turning, scaling and rotation.
  llvm::Expected<const std::byte *> raw() const { return source.data(blob); }
  /// Elements of fewer than 8 bits, a byte each.
  llvm::Error unpack(int64_t first, int64_t count, int8_t *out) const {
    return source.unpack(blob, first, count, out);
  }

private:
  explicit WeightRows(const FileSet &files) : source(files) {}

  WeightSource source;
  Blob blob;
  bool transposed = false, synthetic = false;
  int64_t columns = 0, taps = 1;
  std::vector<float> scale, unit; ///< column k is multiplied by scale[k] and unit[k]; empty for none
  std::vector<float> memory;      ///< instead of a file
  std::optional<GivenWeight> quantized;
  Rotation rotation;
  std::vector<double> factor; ///< of the rotation; empty for none
};

/// Reads weights from files that are open; they must outlive what the factory makes.
WeightReaderFactory readWeightsFrom(const FileSet &files);

/// Opens the files that the module names, for tools that start from text. The passes' option
/// `model` says another folder than `onnx.folder`.
WeightReaderFactory reopenWeights();

} // namespace otf

#endif // OTF_LIB_COMPILE_WEIGHTROWS_H
