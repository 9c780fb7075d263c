// SPDX-License-Identifier: Apache-2.0
//
// What otf-level IR means, by running it: a float64 interpreter for tests.
//
// Every float is computed in double, whatever its type says: an f16 or f32 only bounds what weights
// and records can hold. So the result is the exact one up to 1e-15 or so, and what a kernel differs
// from it is the kernel's own rounding. Integers wrap as their types say. Nothing in a module is
// trusted but its verifiers: what has no meaning here is an error that names the operation.
#ifndef OTF_LIB_REFERENCE_INTERPRETER_H
#define OTF_LIB_REFERENCE_INTERPRETER_H

#include "dialects/Plan/Plan.h"
#include "lib/Import/FileSet.h"
#include "lib/Reference/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>

namespace otf::reference {

using Tensors = std::map<std::string, Tensor>;

/// Caches between steps, by the name of the model's input; [batch, heads, length, width]. One that is
/// missing is empty. All have the same length.
using States = std::map<std::string, Tensor>;

/// The sizes that a kernel calls d0, d1, ….
using KernelSizes = std::map<std::string, int64_t>;

/// Runs a kernel of a plan.call. `sizes` has d0, d1, … and, where the kernel reads a cache, "past" and
/// "batch". A cache that is returned keeps its name.
using RunKernel = std::function<llvm::Expected<std::vector<Content>>(
    plan::KernelOp kernel, llvm::ArrayRef<const Content *> arguments, const KernelSizes &sizes)>;

/// Results of @main by their otf.name. The module is of stage imported, annotated, quantized or
/// fused; or it has plan.call, as after otf-outline, and `runKernel` may then put another kernel in
/// the place of interpretKernel. Symbols follow from the shapes of `inputs` and `states`, which is
/// updated on success.
llvm::Expected<Tensors> interpret(mlir::ModuleOp module, const FileSet &files,
                                  const Tensors &inputs, States &states, RunKernel runKernel = {});

/// Results of one kernel. `sizes` may leave out what follows from the shapes of arguments. A cache
/// argument is what it is before an append.
llvm::Expected<std::vector<Content>> interpretKernel(plan::KernelOp kernel,
                                                     llvm::ArrayRef<const Content *> arguments,
                                                     const KernelSizes &sizes = {});

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_INTERPRETER_H
