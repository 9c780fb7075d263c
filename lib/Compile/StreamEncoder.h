// SPDX-License-Identifier: Apache-2.0
//
// The weight section of a plan: which weights a planned module uses, where each lies, and their
// bytes, made from the model's files one block of rows at a time. Offsets follow from shapes and
// encodings alone, so a dry run and the metadata know them without encoding anything.
#ifndef OTF_LIB_COMPILE_STREAMENCODER_H
#define OTF_LIB_COMPILE_STREAMENCODER_H

#include "dialects/Plan/Plan.h"
#include "lib/Compile/TileEncoder.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <vector>

namespace otf {

class FileSet;
class Statistics;

/// Takes bytes in order; false means that more are not wanted.
using Sink = llvm::function_ref<bool(std::span<const std::byte>)>;

/// One weight as the plan stores it.
struct StoredWeight {
  WeightOp weight;
  mlir::Type content; // !otf.matrix or a tensor
  std::string name;
  std::string node;            // that reads it first, in the model
  std::string given;           // what the file has, in words; empty for floats and plain tensors
  std::string grid;            // of floats that are quantized already, in words; known after write()
  std::string rotation;        // text of #otf.rotation, or empty
  std::string asked, encoding; // text of #otf.encoding: the weight's decision, and what is stored
  int64_t rows = 0, columns = 0, outliers = 0;
  uint64_t offset = 0, size = 0;
  bool vocabulary = false;
  CodingError error;                  // known after write()
  double leaves = -1; // of what coding lost by the calibration's inputs, the part that a low rank leaves: of its left factor, known after write()
  bool isDone = false;                // its bytes are written
  std::unique_ptr<TileEncoder> tiles; // null for plain tensors

  bool isMatrix() const { return tiles != nullptr; }
  double bitsPerWeight() const { return 8.0 * double(size) / (double(rows) * double(columns)); }
};

/// How long a weight takes to encode, in no unit.
double encodingWork(const StoredWeight &stored);

struct WriteOptions {
  unsigned threads = 2;
  int64_t memory = 0; ///< bytes that encoding may take; 0: as many as are of use
  /// Complains that `memory` is too little, and `needed` would do.
  llvm::function_ref<void(int64_t needed)> refuse = {};
  llvm::function_ref<void(const StoredWeight &)> begin = {}, done = {}; ///< of each weight, in order
};

class StreamEncoder {
public:
  /// Finds the weights of all plan.weight ops and lays them out. Weights with equal bytes (blob,
  /// fold, rotation, encoding, outliers) are one. Complains at the op that is wrong.
  static mlir::FailureOr<StreamEncoder> plan(mlir::ModuleOp module);

  /// What earlier bytes of the section hold: its first weights, as a run before this one left them.
  void setDone(size_t weight, const CodingError &error, double leaves, std::string grid) {
    weights[weight].error = error;
    weights[weight].leaves = leaves;
    weights[weight].grid = std::move(grid);
    weights[weight].isDone = true;
  }

  /// The weight that a plan.weight op means.
  const StoredWeight &of(plan::WeightOp use) const { return weights[uses.at(use)]; }
  const std::vector<StoredWeight> &stored() const { return weights; }
  uint64_t sectionBytes() const { return bytes; }

  /// Gives all bytes of the section to `sink`, but for those of weights at the beginning that are done. The bytes do not depend on
  /// threads or memory. `statistics`, which weights with feedback need, may be null.
  mlir::LogicalResult write(const FileSet &files, const Statistics *statistics, Sink sink, const WriteOptions &options = {});

private:
  std::vector<StoredWeight> weights;
  llvm::DenseMap<mlir::Operation *, size_t> uses;
  uint64_t bytes = 0;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_STREAMENCODER_H
