// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a plan file from a planned module: what `plan` operations say with types and
// symbols, said with numbers. Launches become steps, buffers pointers, sizes polynomials over a
// table of symbols. Nothing is decided here; what a planned module leaves open is an error at its
// op.
#ifndef OTF_LIB_COMPILE_PLANASSEMBLY_H
#define OTF_LIB_COMPILE_PLANASSEMBLY_H

#include "lib/Compile/Labels.h"
#include "lib/Compile/StreamEncoder.h"
#include "lib/Plan/PlanModel.h"

#include <map>

namespace otf {

/// How a CUDA kernel is launched. Sizes are over the kernel's d0, d1, … and, where the kernel has
/// states, "past", "capacity" and "batch".
struct LaunchGeometry {
  std::vector<Size> grid; // x, y, z
  uint32_t block = 0, shared = 0;
  // As in lib/Codegen/CUDA/EmitKernel.h: memory for what blocks leave one another, and a second kernel.
  Size work;
  std::string second;
  Size secondGrid, secondExtent;
};

/// One launch for several that have one row (lib/Codegen/CUDA/EmitKernel.h): buffers and sizes are theirs, in order.
struct MergedStep {
  std::vector<mlir::Operation *> launches; ///< the prologue first, if there is one
  bool hasPrologue = false;
  std::string kernel; ///< with a geometry
};

struct AssemblyOptions {
  std::string producer, model, generation;
  bool cpu = true;
  bool cuda = false;
  /// By kernel, for every kernel that is launched, where `cuda`: how the GPU runs it, or why the host does.
  std::map<std::string, LaunchGeometry> geometry;
  std::map<std::string, std::string> host;
  std::vector<MergedStep> merged;
};

/// Everything but `objects` and `cubins`, whose places the writer of the sections knows.
mlir::FailureOr<plan::model::Plan>
assemblePlan(mlir::ModuleOp planned, const StreamEncoder &weights, const AssemblyOptions &options);

} // namespace otf

#endif // OTF_LIB_COMPILE_PLANASSEMBLY_H
