// SPDX-License-Identifier: Apache-2.0
//
// Bodies of tensor.generate and of epilogues, run for one index at a time.
//
// A block becomes a list of closures on numbered slots, one slot an SSA value, so that a body that
// runs a million times is looked at once. Constants, and what comes from outside the block, are put
// into their slots when the program is made.
#ifndef OTF_LIB_REFERENCE_SCALARPROGRAM_H
#define OTF_LIB_REFERENCE_SCALARPROGRAM_H

#include "lib/Reference/ScalarOperations.h"
#include "lib/Reference/Symbols.h"
#include "lib/Reference/Tensor.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

#include <memory>

namespace otf::reference {

/// A result of otf.compute while work items write it. An element belongs to the item that stored it first.
struct Handle {
  Tensor tensor;
  std::vector<int64_t> owners; ///< by element; -1 while nothing is stored
  int64_t item = 0;            ///< that runs now
};

/// What a program may read that it does not compute. Tensors must outlive the program.
struct Scope {
  explicit Scope(const Symbols &symbols) : symbols(symbols) {}

  const Symbols &symbols;
  llvm::DenseMap<mlir::Value, const Tensor *> tensors;
  llvm::DenseMap<mlir::Value, Scalar> scalars;
  llvm::DenseMap<mlir::Value, Handle *> handles; ///< what it may write too
};

class ScalarProgram {
public:
  /// The program of `block`, whose results are its terminator's operands. An error names the
  /// operation that has no meaning here.
  static llvm::Expected<ScalarProgram> compile(mlir::Block &block, const Scope &scope);
  /// One operation outside of all bodies, with scalar operands and one scalar result.
  static llvm::Expected<Scalar> evaluate(mlir::Operation *op, const Scope &scope);

  ScalarProgram(ScalarProgram &&);
  ~ScalarProgram();

  /// `arguments` are the block's, `results` its terminator's operands. An error names the operation
  /// that failed: a read outside of a tensor, a division by zero, a loop that does not advance.
  llvm::Error run(llvm::ArrayRef<Scalar> arguments, llvm::MutableArrayRef<Scalar> results);

private:
  struct Code;
  explicit ScalarProgram(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code;
};

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_SCALARPROGRAM_H
