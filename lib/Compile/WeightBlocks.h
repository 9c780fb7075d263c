// SPDX-License-Identifier: Apache-2.0
//
// One weight as blocks of rows, each of which becomes bytes of the plan by itself: any thread may make any of them, in any order.
// Blocks are small, so that a matrix of a small model keeps many threads busy, and follow from shape and encoding alone, so that
// nothing depends on how many there are.
#ifndef OTF_LIB_COMPILE_WEIGHTBLOCKS_H
#define OTF_LIB_COMPILE_WEIGHTBLOCKS_H

#include "lib/Compile/StreamEncoder.h"
#include "lib/Compile/WeightRows.h"

#include <optional>

namespace otf {

/// What a block became. `view` is `bytes`, or lies in a mapped file.
struct CodedBlock {
  std::vector<std::byte> bytes;
  std::span<const std::byte> view;
  CodingError error;
  std::string failure; ///< one clause; empty if all is well
};

class WeightBlocks {
public:
  /// Memory that a block of `stored` takes while it is made, whatever becomes of it.
  static int64_t blockMemory(const StoredWeight &stored) { return divide(stored).memory; }

  /// `rows` are those of `stored`, which must stay. An error's message is a clause.
  static llvm::Expected<WeightBlocks> open(StoredWeight &stored, llvm::Expected<WeightRows> rows);

  /// At least 1.
  int64_t count() const { return parts.count; }
  int64_t blockMemory() const { return parts.memory; }
  /// `floats` is the caller's memory, kept from block to block. The first block also describes the weight's grid in `stored`.
  CodedBlock make(int64_t block, const Feedback *feedback, std::vector<float> &floats) const;

private:
  enum class Form { none, mapped, bytes, tensor, matrix };
  struct Parts {
    Form form = Form::none;
    int64_t count = 1, rows = 0, memory = 0; ///< blocks, and of each
  };

  WeightBlocks(StoredWeight &stored, WeightRows rows);
  static Parts divide(const StoredWeight &stored, bool isSynthetic = false);
  std::string makeMatrix(int64_t first, int64_t rows, const Feedback *feedback, float *floats, CodedBlock &made) const;
  std::string makeTensor(int64_t first, int64_t rows, float *floats, CodedBlock &made) const;

  StoredWeight *stored;
  WeightRows source;
  Parts parts;
  std::optional<mlir::DenseFPElementsAttr> rowScales;
};

} // namespace otf

#endif // OTF_LIB_COMPILE_WEIGHTBLOCKS_H
