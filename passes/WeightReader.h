// SPDX-License-Identifier: Apache-2.0
//
// What a decision pass asks of a model's bytes.
//
// Problem: scoring columns needs weights, which stay in the model's files, and passes know no
// files. Approach: an interface over `otf.weight`, which whoever opened the model implements.
#ifndef OTF_PASSES_WEIGHTREADER_H
#define OTF_PASSES_WEIGHTREADER_H

#include "dialects/OTF/OTF.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace otf {

class WeightReader {
public:
  virtual ~WeightReader() = default;

  /// Rows [firstRow, firstRow + rowCount) of the weight, N x K as its type says, into
  /// out[rowCount][K], with `scale` applied.
  virtual llvm::Error readRows(WeightOp weight, int64_t firstRow, int64_t rowCount, float *out) = 0;

  /// take(n, row) for every row of the weight, in order, until it fails.
  llvm::Error forEachRow(WeightOp weight, llvm::function_ref<llvm::Error(int64_t, llvm::ArrayRef<float>)> take) {
    constexpr int64_t kAtOnce = 64; // WeightSource: whole cache lines of a transposed file
    llvm::ArrayRef<int64_t> shape = mlir::cast<mlir::RankedTensorType>(weight.getType()).getShape();
    const int64_t rows = shape[0], columns = shape[1];
    std::vector<float> block(size_t(std::min(rows, kAtOnce) * columns));
    for (int64_t first = 0; first < rows; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, rows - first);
      if (llvm::Error error = readRows(weight, first, count, block.data()))
        return error;
      for (int64_t row = 0; row != count; ++row)
        if (llvm::Error error = take(first + row, llvm::ArrayRef(block).slice(size_t(row * columns), size_t(columns))))
          return error;
    }
    return llvm::Error::success();
  }
};

/// Opens the weights of a module. `model` is the path that a pass option gives; it is empty when
/// the option is not given.
using WeightReaderFactory = std::function<llvm::Expected<std::unique_ptr<WeightReader>>(
    mlir::ModuleOp module, llvm::StringRef model)>;

} // namespace otf

#endif // OTF_PASSES_WEIGHTREADER_H
