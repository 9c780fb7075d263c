// SPDX-License-Identifier: Apache-2.0
//
// From planned IR to code for each target.

#include "lib/Compile/Targets.h"

#include "lib/Codegen/CPU/CompileObject.h"
#include "lib/Codegen/CUDA/EmitKernel.h"
#include "runtime/CPU/Levels.h"
#include "runtime/CUDA/Nvrtc.h"

#include "mlir/IR/Diagnostics.h"

#include <atomic>
#include <thread>

using namespace mlir;

namespace otf {

/// "native" by its name.
static FailureOr<std::string> resolve(ModuleOp planned, StringRef level) {
  if (level != "native")
    return level.str();
  std::string_view native = runtime::nativeLevel();
  if (native.empty())
    return emitError(UnknownLoc::get(planned.getContext()))
           << "cpu: this processor runs none of the instruction sets that there is code for: AVX2, FMA, F16C and BMI2 are the least (name those of another machine by --cpu-arch)";
  return std::string(native);
}

FailureOr<std::vector<CodeBlob>> generateCpu(ModuleOp planned, ArrayRef<std::string> levels) {
  std::vector<CodeBlob> objects;
  for (const std::string &named : levels) {
    FailureOr<std::string> level = resolve(planned, named);
    if (failed(level))
      return failure();
    if (llvm::any_of(objects, [&](const CodeBlob &object) { return object.level == *level; }))
      continue;
    FailureOr<std::string> object = cpu::compileObject(planned, *level);
    if (failed(object))
      return failure();
    objects.push_back({*level, std::move(*object)});
  }
  return objects;
}

FailureOr<std::vector<CodeBlob>>
generateHost(ModuleOp planned, const std::map<std::string, std::string> &host, ArrayRef<std::string> levels) {
  OwningOpRef<ModuleOp> some = planned.clone();
  for (auto kernel : llvm::make_early_inc_range(some->getOps<plan::KernelOp>()))
    if (!host.count(kernel.getSymName().str()))
      kernel.erase();
  return generateCpu(*some, levels);
}

FailureOr<std::string> generateLlvmText(ModuleOp planned, StringRef named) {
  FailureOr<std::string> level = resolve(planned, named);
  if (failed(level))
    return failure();
  return cpu::emitLlvmText(planned, *level, cpu::LlvmStage::Optimised);
}


/// A cubin for each architecture, two at a time. Empty after a complaint.
static std::string compileCubins(const runtime::Nvrtc &nvrtc, const std::string &source,
                                 std::vector<CodeBlob> &cubins) {
  std::vector<std::string> complaints(cubins.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < cubins.size();) {
      auto binary = nvrtc.compile(source, cubins[i].level);
      if (binary.ok())
        cubins[i].bytes.assign(binary.value().cubin.begin(), binary.value().cubin.end());
      else
        complaints[i] = std::string(binary.status().message());
    }
  };
  std::thread other(work);
  work();
  other.join();
  for (size_t i = 0; i < cubins.size(); ++i)
    if (!complaints[i].empty())
      return cubins[i].level + ": " + complaints[i];
  return {};
}

FailureOr<CudaCode> generateCuda(ModuleOp planned, ArrayRef<std::string> architectures,
                                 bool &missing) {
  cuda::CudaSource source = cuda::emitCudaSource(planned);
  CudaCode code;
  code.source = std::move(source.text);
  code.host = std::move(source.host);
  for (cuda::CudaKernel &kernel : source.kernels)
    code.geometry[kernel.name] = {{kernel.grid, 1, 1}, kernel.block, kernel.shared,
                                  kernel.work,         kernel.second, kernel.secondGrid, kernel.secondExtent};
  for (cuda::MergedLaunch &merged : source.merged) {
    MergedStep &step = code.merged.emplace_back();
    step.kernel = merged.kernel;
    step.hasPrologue = bool(merged.prologue);
    if (merged.prologue)
      step.launches.push_back(merged.prologue);
    step.launches.insert(step.launches.end(), merged.launches.begin(), merged.launches.end());
  }
  if (architectures.empty())
    return code;
  auto nvrtc = runtime::Nvrtc::open();
  if (!nvrtc.ok()) {
    missing = true;
    std::string message = nvrtc.status().message();
    if (message.ends_with(')'))
      message.insert(message.size() - 1, "; or leave cubins out with --cuda-arch=none");
    return emitError(UnknownLoc::get(planned.getContext())) << message;
  }
  for (const std::string &architecture : architectures)
    code.cubins.push_back({architecture, {}});
  std::string complaint = compileCubins(*nvrtc.value(), code.source, code.cubins);
  if (!complaint.empty())
    return emitError(UnknownLoc::get(planned.getContext())) << "cuda: " << complaint;
  return code;
}

} // namespace otf
