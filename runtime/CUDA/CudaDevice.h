// SPDX-License-Identifier: Apache-2.0
//
// An NVIDIA GPU as a device. Weights are copied to it once. Its code is the plan's cubin for the
// GPU's architecture, else the plan's source compiled here and kept in the user's cache.
#ifndef OTF_RUNTIME_CUDA_CUDADEVICE_H
#define OTF_RUNTIME_CUDA_CUDADEVICE_H

#include "runtime/CUDA/Driver.h"
#include "runtime/Device.h"

namespace otf::runtime::cuda {

inline Pointer asPointer(const void *p) { return Pointer(reinterpret_cast<uintptr_t>(p)); }
inline void *asAddress(Pointer p) { return reinterpret_cast<void *>(uintptr_t(p)); }

class CudaDevice final : public Device {
public:
  CudaDevice(const PlanFile &plan, const ProgramInfo &program, std::unique_ptr<Gpu> gpu)
      : plan(plan), steps(program), gpu(std::move(gpu)) {}
  ~CudaDevice() override;

  /// Code and weights to the GPU. Before anything else.
  Status load();

  std::string description() const override {
    return cat(gpu->name(), " (", gpu->architecture(), compiledHere ? ", compiled here)" : ")");
  }
  const ProgramInfo &program() const override { return steps; }
  bool hostVisible() const override { return false; }
  Result<std::unique_ptr<Queue>> createQueue(unsigned threads) const override;

  const PlanFile &plan;
  const ProgramInfo &steps;
  const std::unique_ptr<Gpu> gpu;
  Pointer weights = 0;
  std::vector<Function> kernels; // one a step
  std::unique_ptr<Device> host;  // for the steps that are the host's, if there are any
  Function largest = nullptr;    // of a row of logits
  bool beginsEarly = false;      // a kernel may begin while its predecessor runs

private:
  Status loadCode();
  Status findKernels();
  Status uploadWeights();

  Module module = nullptr;
  bool compiledHere = false;
};

} // namespace otf::runtime::cuda

#endif // OTF_RUNTIME_CUDA_CUDADEVICE_H
