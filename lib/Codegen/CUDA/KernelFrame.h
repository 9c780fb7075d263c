// SPDX-License-Identifier: Apache-2.0
//
// What the emitters of operators share: the kernel's parameters as variables, and the text so far.
#ifndef OTF_CODEGEN_CUDA_KERNELFRAME_H
#define OTF_CODEGEN_CUDA_KERNELFRAME_H

#include "lib/Codegen/CUDA/EmitKernel.h"
#include "lib/Codegen/CUDA/RowDivision.h"
#include "lib/Codegen/CUDA/ScalarPrinter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace otf::cuda {

/// Parameters of a kernel fill at most 4 KiB on every architecture; the last pointer is the sizes'.
inline constexpr unsigned kMostBuffers = 4096 / sizeof(uint64_t) - 1;

class KernelFrame : public ScalarPrinter {
public:
  Memory result; ///< of the root operator, unless it is a cache
  Size grid = 1;
  std::string globals; ///< constants in front of the entry
  std::string work;    ///< the buffer of CudaKernel::work, or a null pointer

  // Of CudaKernel. The second kernel's text begins as this one's does, before its operator.
  Size workBytes, secondGrid, secondExtent;
  std::string second;

  /// Where the kernel is one of several in an entry for one row (EmitMerged.cpp), and how much of the entry's arguments others have.
  struct Part {
    unsigned firstBuffer = 0, firstDim = 0;
    std::string prefix = {}; ///< of the names of constants
    std::string order = {};  ///< of a prologue: the otf::…Order of its record
    RowDivision division = {};
    bool spread = false; ///< of a prologue: blocks make parts of a record in device memory
  };
  std::optional<Part> part;

  // Of a part, what the entry has to know.
  std::string prefetch;            ///< a statement for before the wait, or nothing
  std::string weight, record;      ///< of a linear: the otf::Weight, and where its record is in device memory
  int64_t recordBytes = 0, scratchBytes = 0; ///< of shared memory

  /// The argument that says which blocks are the kernel's, after a comma.
  std::string blocks() const { return part ? ", blocks" : ""; }

  /// `pointer` of an optional operand.
  std::string pointerOr0(mlir::Value value) {
    return value ? memory[value].pointer : std::string("nullptr");
  }
  /// Blocks for one thread an element of `shape`: exact in the static sizes, one block or eight a
  /// row in the others, since a polynomial cannot divide. Kernels stride over the rest.
  static Size gridFor(llvm::ArrayRef<Size> shape);
};

/// Sizes, pointers and constants of a kernel, and then its operator. False after a diagnostic.
bool emitBody(KernelFrame &k, plan::KernelOp kernel, unsigned &buffers);

// Each writes the body of the entry, sets `grid`, and returns false after a diagnostic.
bool emitGenerate(KernelFrame &k, mlir::tensor::GenerateOp op);
bool emitCompute(KernelFrame &k, ComputeOp op);
bool emitLinear(KernelFrame &k, LinearOp op);
bool emitEmbedding(KernelFrame &k, EmbeddingOp op);
bool emitNorm(KernelFrame &k, NormOp op);
bool emitPrologue(KernelFrame &k, PrologueOp op);
bool emitRotate(KernelFrame &k, RotateOp op);
bool emitRope(KernelFrame &k, RopeOp op);
bool emitAppend(KernelFrame &k, AppendOp op);
bool emitAttention(KernelFrame &k, AttentionOp op);

/// Whether blocks may divide the keys, and then have CudaKernel::work.
bool usesWork(AttentionOp op);

/// `x`'s row functor followed by the number of rows, and the text of its width. Nothing after a diagnostic.
std::optional<std::pair<std::string, std::string>> rowsOf(KernelFrame &k, mlir::Operation *op, mlir::Value x);

/// The device library's rotation of rows of `columns`, and the name of its factor, which becomes a constant.
std::pair<std::string, std::string> rotationOf(KernelFrame &k, mlir::Operation *op, RotationAttr rotation, int64_t columns);

} // namespace otf::cuda

#endif // OTF_CODEGEN_CUDA_KERNELFRAME_H
