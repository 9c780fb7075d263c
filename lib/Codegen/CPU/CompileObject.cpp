// SPDX-License-Identifier: Apache-2.0
//
// From kernels in scf, arith and math to LLVM's own IR; the rest is LLVM's (Object.h).

#include "lib/Codegen/CPU/CompileObject.h"
#include "lib/Codegen/CPU/EmitKernel.h"
#include "lib/Codegen/CPU/Object.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace otf::cpu {

static LogicalResult lower(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createSCFToControlFlowPass());
  // bf16 is widened and narrowed with integers: what LLVM would call for it is in no C library.
  passes.addPass(arith::createArithExpandOpsPass({.includeBf16 = true}));
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

/// LLVM reports warnings (a loop it did not vectorise) on stderr unless someone listens.
static void listen(llvm::LLVMContext &context, ModuleOp planned) {
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *module) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        std::string text;
        llvm::raw_string_ostream stream(text);
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
        emitError(ModuleOp::getFromOpaquePointer(module).getLoc()) << text;
      },
      const_cast<void *>(planned.getAsOpaquePointer()));
}

static LogicalResult report(ModuleOp planned, llvm::Error error) {
  if (!error)
    return success();
  return emitError(planned.getLoc())
         << "cannot compile kernels: " << llvm::toString(std::move(error));
}

static std::unique_ptr<llvm::Module> translate(ModuleOp planned, llvm::LLVMContext &context) {
  OwningOpRef<ModuleOp> kernels = emitKernels(planned);
  if (!kernels || failed(lower(*kernels)))
    return {};
  registerBuiltinDialectTranslation(*planned.getContext());
  registerLLVMDialectTranslation(*planned.getContext());
  // The name is the file's name in the object's symbols: a constant keeps objects equal.
  return translateModuleToLLVMIR(*kernels, context, "otf_kernels");
}

FailureOr<std::string> compileObject(ModuleOp planned, StringRef level) {
  llvm::LLVMContext context;
  listen(context, planned);
  auto machine = targetMachine(level);
  if (!machine)
    return report(planned, machine.takeError());
  std::unique_ptr<llvm::Module> module = translate(planned, context);
  if (!module || failed(report(planned, optimise(*module, **machine, level))))
    return failure();
  auto object = emitObject(*module, **machine);
  if (!object)
    return report(planned, object.takeError());
  auto shared = linkShared(*object);
  if (!shared)
    return report(planned, shared.takeError());
  return std::move(*shared);
}

FailureOr<std::string> emitLlvmText(ModuleOp planned, StringRef level, LlvmStage stage) {
  llvm::LLVMContext context;
  listen(context, planned);
  auto machine = targetMachine(level);
  if (!machine)
    return report(planned, machine.takeError());
  std::unique_ptr<llvm::Module> module = translate(planned, context);
  if (!module)
    return failure();
  if (stage == LlvmStage::Optimised && failed(report(planned, optimise(*module, **machine, level))))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

} // namespace otf::cpu
