// SPDX-License-Identifier: Apache-2.0
//
// Steps of a GPU's program that the host runs, because the compiler found no CUDA form of their kernels. The host
// has a mirror of each buffer that they use: contents come before such steps and what they may have written goes
// back after them, so nothing but the time they take tells them apart.
#ifndef OTF_RUNTIME_CUDA_HOSTSTEPS_H
#define OTF_RUNTIME_CUDA_HOSTSTEPS_H

#include "runtime/Device.h"

#include <array>
#include <vector>

namespace otf::runtime {

class HostSteps {
public:
  /// `cpu`: of makeHostDevice.
  HostSteps(const ProgramInfo &program, std::unique_ptr<Queue> cpu);
  ~HostSteps();

  /// The launch's steps; its pointers are those of `gpu`.
  Status run(const Launch &launch, Queue &gpu);

private:
  struct Mirror {
    void *memory = nullptr;
    uint64_t room = 0;
    uint64_t fetched = 0, returned = 0; // the last run that copied it here, and back
  };
  static constexpr size_t kSpaces = size_t(Space::state) + 1; // weights lie in the plan's mapping and have none

  Status fetch(const BufferInfo &buffer, const Launch &launch, Queue &gpu);
  Status giveBack(const BufferInfo &buffer, const Launch &launch, Queue &gpu);

  const ProgramInfo &program;
  std::unique_ptr<Queue> cpu;
  std::array<std::vector<Mirror>, kSpaces> mirrors;
  std::array<std::vector<void *>, kSpaces> pointers;
  uint64_t runs = 0, moves = 0;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_CUDA_HOSTSTEPS_H
