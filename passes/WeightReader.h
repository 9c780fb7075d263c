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

#include <functional>
#include <memory>

namespace otf {

class WeightReader {
public:
  virtual ~WeightReader() = default;

  /// Rows [firstRow, firstRow + rowCount) of the weight, N x K as its type says, into
  /// out[rowCount][K], with `scale` applied.
  virtual llvm::Error readRows(WeightOp weight, int64_t firstRow, int64_t rowCount, float *out) = 0;
};

/// Opens the weights of a module. `model` is the path that a pass option gives; it is empty when
/// the option is not given.
using WeightReaderFactory = std::function<llvm::Expected<std::unique_ptr<WeightReader>>(
    mlir::ModuleOp module, llvm::StringRef model)>;

} // namespace otf

#endif // OTF_PASSES_WEIGHTREADER_H
