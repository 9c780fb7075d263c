// SPDX-License-Identifier: Apache-2.0
//
// What every emitter needs while it writes the function of one plan.kernel: its parameters, where
// each tensor lies, what each size is, and typed loads and stores.
//
// The function is an llvm.func whose body uses scf, arith and math on indices, and llvm loads and
// stores on bare pointers: shapes are polynomials over `dims`, which memrefs could not say. Every
// access carries an alias scope, "read" or "written", since a launch never passes one buffer as
// both; without it LLVM would not vectorise loops over pointers that it loaded from memory.
#ifndef OTF_CODEGEN_CPU_KERNELBUILDER_H
#define OTF_CODEGEN_CPU_KERNELBUILDER_H

#include "dialects/OTF/OTF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <map>
#include <optional>

namespace otf::cpu {

/// A tensor, a matrix or a cache: where it begins and, for a tensor, its sizes.
struct Memory {
  mlir::Value pointer;
  mlir::Type element;                 ///< null for a matrix
  llvm::SmallVector<otf::Size> shape; ///< empty for matrices and caches
  bool written = false;
};

class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  /// `function` has the signature of otf_kernel; the insertion point becomes its entry block.
  KernelBuilder(mlir::ModuleOp module, mlir::LLVM::LLVMFuncOp function);

  mlir::ModuleOp module;
  mlir::Value begin, end; ///< work items, index
  mlir::Value scratch;    ///< OTF_KERNEL_SCRATCH bytes of the thread
  std::map<std::string, mlir::Value> symbols;
  llvm::DenseMap<mlir::Value, Memory> memory;

  mlir::Value index(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(const llvm::APFloat &value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value smaller(mlir::Value a, mlir::Value b);

  /// The value of a polynomial; null, and a diagnostic, for a symbol that the kernel does not have.
  mlir::Value size(const otf::Size &size);
  bool knows(const otf::Size &size) const;

  /// Row-major offset of an element.
  mlir::Value offset(llvm::ArrayRef<otf::Size> shape, mlir::ValueRange indices);
  /// Splits a row-major position into indices of `shape`.
  llvm::SmallVector<mlir::Value> split(mlir::Value position, llvm::ArrayRef<otf::Size> shape);

  mlir::Value at(const Memory &memory, mlir::Value offset);
  mlir::Value atByte(mlir::Value pointer, mlir::Value offset);
  mlir::Value load(const Memory &memory, mlir::Value offset);
  void store(mlir::Value value, const Memory &memory, mlir::Value offset);

  /// for (i = lower; i < upper; i += step) body(i)
  mlir::scf::ForOp loop(mlir::Value lower, mlir::Value upper, int64_t step,
                        llvm::function_ref<void(mlir::Value)> body);

  /// Calls a micro-kernel or a function of its library; index arguments become i64.
  mlir::Value call(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<mlir::Value> arguments);

  mlir::Value null();
  /// Stack memory, allocated once at entry.
  mlir::Value stack(mlir::Type element, int64_t count);
  /// A constant array in the object.
  Memory constant(mlir::DenseElementsAttr value);

private:
  mlir::ArrayAttr readScope, writtenScope;
};

/// How elements lie in memory: i1 is a byte, index is i64, bf16 is its bits.
mlir::Type storageType(mlir::Type element);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_KERNELBUILDER_H
