// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/CudaDevice.h"

#include "runtime/CUDA/CudaQueue.h"
#include "runtime/CUDA/JitCache.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

namespace otf::runtime {
namespace cuda {

constexpr size_t kUploadChunk = 16 << 20;
constexpr unsigned kSharedWithoutAsking = 48 * 1024;
constexpr int kMaxDynamicShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
// CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, in percent. The same for all kernels: between two that differ a multiprocessor
// has to drain.
constexpr int kPreferredCarveout = 9, kCarveout = 57;

/// A level is "sm_<major><minor>"; code of a lower minor version of the same major runs too.
/// Returns how well it fits, -1 if not at all. "sm_90a" runs on exactly that.
static int fit(std::string_view level, const Gpu &gpu) {
  if (!level.starts_with("sm_"))
    return -1;
  level.remove_prefix(3);
  int number = 0;
  auto [end, error] = std::from_chars(level.data(), level.data() + level.size(), number);
  const bool exact = end != level.data() + level.size();
  if (error != std::errc() || number / 10 != gpu.major() || number % 10 > gpu.minor() ||
      (exact && (*end != 'a' || number % 10 != gpu.minor())))
    return -1;
  return 2 * (number % 10) + exact;
}

CudaDevice::~CudaDevice() {
  Gpu::Current current(*gpu);
  if (module)
    gpu->driver().moduleUnload(module);
  if (weights)
    gpu->driver().memFree(weights);
}

Status CudaDevice::load() {
  Gpu::Current current(*gpu);
  OTF_TRY(loadCode());
  OTF_TRY(findKernels());
  if (std::any_of(steps.steps.begin(), steps.steps.end(), [](auto &s) { return !s.host.empty(); })) {
    Result<std::unique_ptr<Device>> made = makeHostDevice(plan, steps);
    if (!made.ok())
      return made.status();
    host = std::move(made.value());
  }
  return uploadWeights();
}

Status CudaDevice::loadCode() {
  const CodeInfo *best = nullptr;
  for (const CodeInfo &code : plan.cubins)
    if (fit(code.level, *gpu) > (best ? fit(best->level, *gpu) : -1))
      best = &code;
  if (best) {
    const char *bytes = reinterpret_cast<const char *>(best->bytes.data());
    Result<Module> loaded = gpu->load({bytes, best->bytes.size()});
    if (!loaded.ok())
      return loaded.status();
    module = loaded.value();
    return {};
  }
  Bytes source = plan.section(plan::SectionKind::cudaSource);
  if (source.empty())
    return deviceError("device 'cuda': the plan has no code for ", gpu->architecture(),
                       " and no source (compile with --cuda-arch=", gpu->architecture(), ")");
  JitCache cache;
  Result<std::vector<char>> cubin =
      cache.get(std::string(reinterpret_cast<const char *>(source.data()), source.size()),
                gpu->architecture(), {});
  if (!cubin.ok())
    return deviceError("device 'cuda': the plan has no code for ", gpu->architecture(),
                       ", and compiling it here failed: ", cubin.status().message());
  Result<Module> loaded = gpu->load(cubin.value());
  if (!loaded.ok())
    return loaded.status();
  module = loaded.value();
  compiledHere = true;
  return {};
}

Status CudaDevice::findKernels() {
  const Driver &d = gpu->driver();
  std::map<std::string_view, Function> known;
  for (const StepInfo &step : steps.steps) {
    if (step.kind != StepKind::launch || !step.host.empty()) {
      kernels.push_back(nullptr);
      continue;
    }
    Function &function = known[step.kernel];
    if (!function && d.moduleGetFunction(&function, module, step.kernel) != kSuccess)
      return badInput("kernel '", step.kernel, "': missing in the plan's code for ",
                      gpu->architecture(), " (compile the model again)");
    if (step.shared > kSharedWithoutAsking)
      OTF_TRY(d.check(d.funcSetAttribute(function, kMaxDynamicShared, int(step.shared)),
                      "cuFuncSetAttribute"));
    d.funcSetAttribute(function, kPreferredCarveout, kCarveout); // a wish; which GPUs grant is theirs to say
    kernels.push_back(function);
  }
  Pointer marker = 0;
  size_t size = 0;
  if (d.moduleGetFunction(&largest, module, "otf_largest") != kSuccess)
    largest = nullptr; // an older plan
  beginsEarly = gpu->major() >= 9 && d.moduleGetGlobal(&marker, &size, module, "otf_waits_for_inputs") == kSuccess;
  return {};
}

Status CudaDevice::uploadWeights() {
  const Driver &d = gpu->driver();
  Bytes bytes = plan.weightBytes();
  Result<Pointer> memory = gpu->allocate(bytes.size());
  if (!memory.ok())
    return memory.status();
  weights = memory.value();
  // Two pinned buffers: while one is on its way, the file's next pages are read into the other.
  struct Upload {
    const Driver &d;
    void *buffers[2] = {};
    Stream stream = nullptr;
    ~Upload() {
      if (stream)
        d.streamDestroy(stream);
      for (void *buffer : buffers)
        if (buffer)
          d.memFreeHost(buffer);
    }
  } upload{d};
  OTF_TRY(d.check(d.streamCreate(&upload.stream, kNonBlockingStream), "cuStreamCreate"));
  for (void *&buffer : upload.buffers) {
    Result<void *> pinned = gpu->allocateHost(std::min(bytes.size(), kUploadChunk));
    if (!pinned.ok())
      return pinned.status();
    buffer = pinned.value();
  }
  for (size_t at = 0, turn = 0; at < bytes.size(); at += kUploadChunk, ++turn) {
    const size_t size = std::min(kUploadChunk, bytes.size() - at);
    void *buffer = upload.buffers[turn & 1];
    std::memcpy(buffer, bytes.data() + at, size);
    OTF_TRY(d.check(d.streamSynchronize(upload.stream), "copying weights"));
    OTF_TRY(
        d.check(d.copyToDevice(weights + at, buffer, size, upload.stream), "copying weights"));
  }
  return d.check(d.streamSynchronize(upload.stream), "copying weights");
}

Result<std::unique_ptr<Queue>> CudaDevice::createQueue(unsigned threads) const {
  return makeCudaQueue(*this, threads);
}

} // namespace cuda

using namespace cuda;

Result<std::unique_ptr<Device>> makeCudaDevice(const PlanFile &plan, std::string_view argument) {
  const ProgramInfo *program = plan.program("cuda");
  if (!program)
    return deviceError("device 'cuda': the plan has no program for it (compile with "
                       "--target=cuda)");
  int ordinal = 0;
  if (!argument.empty()) {
    auto [end, error] =
        std::from_chars(argument.data(), argument.data() + argument.size(), ordinal);
    if (error != std::errc() || end != argument.data() + argument.size())
      return usageError("device 'cuda:", argument, "': expected a number, as in cuda:0");
  }
  Result<std::unique_ptr<Gpu>> gpu = Gpu::open(ordinal);
  if (!gpu.ok())
    return gpu.status();
  auto device = std::make_unique<CudaDevice>(plan, *program, std::move(gpu.value()));
  OTF_TRY(device->load());
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace otf::runtime
