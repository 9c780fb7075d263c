// SPDX-License-Identifier: Apache-2.0
//
// plan.kernel to CUDA C++. An entry is short: its sizes and pointers, then one instantiation of the
// device library with functors printed from the kernel's region. The entries behind the device
// library are one translation unit that NVRTC compiles alone.
#ifndef OTF_CODEGEN_CUDA_EMITKERNEL_H
#define OTF_CODEGEN_CUDA_EMITKERNEL_H

#include "dialects/Plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace otf::cuda {

struct CudaKernel {
  std::string name;   ///< of the entry: that of the plan.kernel
  std::string source; ///< constants and the entry, without the device library
  /// Blocks in x, over the kernel's own sizes d0, d1, … and, with caches, past, capacity, batch;
  /// each launch says what they are. A grid that depends on `past` changes with every token and so
  /// forbids the replay of graphs: whoever writes the plan puts `capacity` for it. Any grid gives
  /// right results.
  Size grid;
  unsigned block = 256;
  unsigned shared = 0; ///< dynamic shared memory, bytes
  /// Bytes that its blocks leave one another or the second kernel, over the same sizes; 0 for none. The buffer stands between what the
  /// kernel reads and what it writes.
  Size work;
  /// A second kernel, right after it where the extent is above 0, with the same buffers and sizes. No name for none.
  std::string second;
  Size secondGrid, secondExtent;
};

/// Nothing after a diagnostic.
std::optional<CudaKernel> emitCuda(plan::KernelOp kernel);

/// One launch for several of the plan where they have one row (passes/Lower/MergeLaunches.cpp). Its buffers and sizes are those of
/// the prologue, if there is one, and then of the launches, in order.
struct MergedLaunch {
  plan::LaunchOp prologue; ///< null for none
  std::vector<plan::LaunchOp> launches;
  std::string kernel;
};

struct CudaSource {
  std::string text; ///< device library and all entries
  std::vector<CudaKernel> kernels;
  std::vector<MergedLaunch> merged; ///< by the first of their launches; their kernels are in `kernels` too
  /// Kernels that have no CUDA form, and why: the host has to run them.
  std::map<std::string, std::string> host;
};

/// Adds the entries of merged launches, whose kernels all are in `source`.
void emitMerged(mlir::ModuleOp planned, CudaSource &source);

/// Every plan.kernel of the module, in order. Each is in `kernels` or in `host`.
CudaSource emitCudaSource(mlir::ModuleOp planned);

} // namespace otf::cuda

#endif // OTF_CODEGEN_CUDA_EMITKERNEL_H
