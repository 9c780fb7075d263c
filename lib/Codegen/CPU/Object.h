// SPDX-License-Identifier: Apache-2.0
//
// LLVM's side of the CPU code generator: from an LLVM module to a shared object. No MLIR here.
// Failures are llvm::Error, whose text becomes a diagnostic.
#ifndef OTF_CODEGEN_CPU_OBJECT_H
#define OTF_CODEGEN_CPU_OBJECT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace otf::cpu {

/// The machine of an instruction set level; an error names the levels there are.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> targetMachine(llvm::StringRef level);

/// Gives `module` the machine's layout, links in the micro-kernels it calls, makes everything but
/// its own functions internal, and optimises.
llvm::Error optimise(llvm::Module &module, llvm::TargetMachine &machine, llvm::StringRef level);

/// A relocatable object; an error if it needs a symbol that no program has to offer.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module,
                                                      llvm::TargetMachine &machine);

/// The object as a shared object.
llvm::Expected<std::string> linkShared(llvm::ArrayRef<char> object);

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_OBJECT_H
