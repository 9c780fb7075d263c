// SPDX-License-Identifier: Apache-2.0
//
// Linking the micro-kernels before optimising is what specialises them: their sizes are constants
// at the calls, so the optimiser unrolls and folds them per kernel of the plan.

#include "lib/Codegen/CPU/Object.h"
#include "lib/Codegen/CPU/kernels/KernelBitcode.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"

#include <mutex>

using namespace llvm;

namespace otf::cpu {

static Error failure(const Twine &text) { return createStringError(text.str()); }

/// Features are spelt out, not taken from a CPU such as x86-64-v3, so that they are what the
/// runtime checks before it chooses the object: virtual machines hide single features (LZCNT,
/// MOVBE).
static StringRef featuresOf(StringRef level) {
  if (level == "avx2")
    return "+avx2,+fma,+f16c,+bmi,+bmi2";
  if (level == "avx512vnni")
    return "+avx2,+fma,+f16c,+bmi,+bmi2,+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni";
  return "";
}

Expected<std::unique_ptr<TargetMachine>> targetMachine(StringRef level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  if (featuresOf(level).empty())
    return failure("no instruction set level \"" + level + "\"; there are avx2 and avx512vnni");
  Triple triple("x86_64-unknown-linux-gnu");
  std::string text;
  const Target *target = TargetRegistry::lookupTarget(triple, text);
  if (!target)
    return failure(text);
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, "x86-64", featuresOf(level), TargetOptions(), Reloc::PIC_,
                                  CodeModel::Small, CodeGenOptLevel::Aggressive));
  if (!machine)
    return failure("LLVM has no machine for " + triple.str());
  return std::move(machine);
}

/// Only what `module` calls, and what that calls; bodies of others are not even read.
static Error linkKernels(Module &module, StringRef level) {
  std::string_view bitcode = kernelBitcode(level);
  auto kernels =
      getLazyBitcodeModule(MemoryBufferRef(StringRef(bitcode.data(), bitcode.size()), "micro-kernels"),
                           module.getContext());
  if (!kernels)
    return kernels.takeError();
  (*kernels)->setDataLayout(module.getDataLayout());
  (*kernels)->setTargetTriple(module.getTargetTriple());
  if (Linker::linkModules(module, std::move(*kernels), Linker::LinkOnlyNeeded))
    return failure("a kernel and a function of the kernel library differ in type or share a name");
  return Error::success();
}

Error optimise(Module &module, TargetMachine &machine, StringRef level) {
  StringSet<> entries;
  for (Function &function : module)
    if (!function.isDeclaration())
      entries.insert(function.getName());
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple());
  if (Error error = linkKernels(module, level))
    return error;
  for (Function &function : module) {
    // Functions inline only into ones with all their features; equal strings make that certain.
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("tune-cpu");
    function.addFnAttr("prefer-vector-width", "256"); // 512-bit ones lower clocks for little
    function.addFnAttr(Attribute::NoUnwind);
    if (!function.isDeclaration())
      function.removeFnAttr(Attribute::UWTable);
  }
  internalizeModule(module,
                    [&](const GlobalValue &value) { return entries.contains(value.getName()); });

  PipelineTuningOptions tuning;
  tuning.SLPVectorization = true;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager calls;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
  return Error::success();
}

/// What the loading program provides: memory functions and libm, f32 and f64.
static bool provided(StringRef symbol) {
  static const StringSet<> memory = {"memcpy", "memmove", "memset"};
  static const StringSet<> math = {
      "acos",  "acosh",  "asin",  "asinh",     "atan", "atan2", "atanh", "cbrt",
      "ceil",  "cos",    "cosh",  "erf",       "erfc", "exp",   "exp10", "exp2",
      "expm1", "fabs",   "floor", "fma",       "fmax", "fmin",  "fmod",  "log",
      "log10", "log1p",  "log2",  "nearbyint", "pow",  "rint",  "round", "roundeven",
      "sin",   "sincos", "sinh",  "sqrt",      "tan",  "tanh",  "trunc"};
  if (memory.contains(symbol) || math.contains(symbol))
    return true;
  return symbol.consume_back("f") && math.contains(symbol);
}

static Error checkSymbols(ArrayRef<char> object) {
  auto file = object::ObjectFile::createELFObjectFile(
      MemoryBufferRef(StringRef(object.data(), object.size()), "kernels"));
  if (!file)
    return file.takeError();
  for (object::SymbolRef symbol : (*file)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if ((*flags & object::SymbolRef::SF_Undefined) && !name->empty() && !provided(*name) &&
        *name != "_GLOBAL_OFFSET_TABLE_") // the linker's own
      return failure("a kernel needs the function \"" + *name + "\", which no runtime provides");
  }
  return Error::success();
}

Expected<SmallVector<char, 0>> emitObject(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return failure("LLVM cannot write objects for " + machine.getTargetTriple().str());
  passes.run(module);
  if (Error error = checkSymbols(object))
    return std::move(error);
  return object;
}

} // namespace otf::cpu
