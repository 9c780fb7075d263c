// SPDX-License-Identifier: Apache-2.0
//
// Scalar programs (bodies of tensor.generate, epilogues of linears) as CUDA C++ statements. One
// variable a value: the compiler behind it does the rest. What it can print is a fixed list of
// operations of arith, math and scf; anything else is a diagnostic at the operation. EmitC was
// tried for this and translates plain f32 arithmetic only.
#ifndef OTF_CODEGEN_CUDA_SCALARPRINTER_H
#define OTF_CODEGEN_CUDA_SCALARPRINTER_H

#include "dialects/OTF/OTF.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <set>
#include <string>

namespace otf::cuda {

/// A tensor, a matrix or a cache: the variable that points to it and, for a tensor, its sizes.
struct Memory {
  std::string pointer;
  mlir::Type element;
  llvm::SmallVector<otf::Size> shape;
  std::string splat; ///< every element, for a constant of one value: then there is no pointer
};

/// The element that is being computed: names of its indices, and of its row-major offset.
struct Position {
  llvm::SmallVector<std::string> indices;
  std::string offset;
  llvm::ArrayRef<otf::Size> shape;
};

class ScalarPrinter {
public:
  std::string text;
  int indent = 1;
  llvm::DenseMap<mlir::Value, Memory> memory;
  llvm::DenseMap<mlir::Value, std::string> names;
  std::set<std::string> symbols; ///< sizes that are variables of the kernel

  void line(const llvm::Twine &statement);
  /// The C++ type of a value or an element; empty, without a diagnostic, if it has none.
  static std::string typeName(mlir::Type type);
  /// A literal; empty if the attribute is no number.
  static std::string literal(mlir::Attribute value);

  /// A polynomial as an expression in parentheses; nothing after a diagnostic at `loc`.
  std::optional<std::string> size(const otf::Size &size, mlir::Location loc);
  std::optional<std::string> product(llvm::ArrayRef<otf::Size> sizes, mlir::Location loc);
  std::optional<std::string> offset(llvm::ArrayRef<otf::Size> shape,
                                    llvm::ArrayRef<std::string> indices, mlir::Location loc);
  /// Declares the indices of row-major `position` in `shape`; returns their names.
  std::optional<llvm::SmallVector<std::string>>
  split(llvm::StringRef position, llvm::ArrayRef<otf::Size> shape, mlir::Location loc);
  std::string fresh(llvm::StringRef prefix);

  /// Prints the operations of a block but its terminator; the names of what that yields.
  std::optional<llvm::SmallVector<std::string>> program(mlir::Block &block,
                                                        const Position &position);
  bool operation(mlir::Operation &op, const Position &position);

private:
  bool define(mlir::Value value, const llvm::Twine &expression);
  bool extract(mlir::Operation &op, const Position &position);
  /// A load from or a store to a result of otf.compute.
  bool access(mlir::Operation &op);
  bool control(mlir::Operation &op, const Position &position);
  std::string expression(mlir::Operation &op);
  bool assign(llvm::ArrayRef<std::string> to, mlir::ValueRange from);
  llvm::SmallVector<std::string> declare(mlir::ValueRange values, mlir::ValueRange initial);
  unsigned next = 0;
};

} // namespace otf::cuda

#endif // OTF_CODEGEN_CUDA_SCALARPRINTER_H
