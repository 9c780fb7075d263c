// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/HostSteps.h"

namespace otf::runtime {
namespace {

/// A buffer of a launch: where the GPU has it, and its contents in bytes.
struct Place {
  void *memory;
  uint64_t bytes;
};

Place placeOf(const BufferInfo &buffer, const Launch &launch) {
  switch (buffer.space) {
  case Space::input:
    return {launch.inputs[buffer.index], uint64_t(launch.inputBytes[buffer.index])};
  case Space::output:
    return {launch.outputs[buffer.index], uint64_t(launch.outputBytes[buffer.index])};
  case Space::slot:
    return {launch.slots[buffer.index], uint64_t(launch.slotBytes[buffer.index])};
  case Space::state:
    return {launch.states[buffer.index], uint64_t(launch.stateBytes[buffer.index])};
  case Space::weight:
    break;
  }
  return {nullptr, 0};
}

} // namespace

HostSteps::HostSteps(const ProgramInfo &program, std::unique_ptr<Queue> cpu)
    : program(program), cpu(std::move(cpu)) {}

HostSteps::~HostSteps() {
  for (std::vector<Mirror> &space : mirrors)
    for (Mirror &mirror : space)
      cpu->release(mirror.memory);
}

Status HostSteps::fetch(const BufferInfo &buffer, const Launch &launch, Queue &gpu) {
  if (buffer.space == Space::weight)
    return {};
  Mirror &mirror = mirrors[size_t(buffer.space)][buffer.index];
  if (mirror.fetched == runs)
    return {};
  mirror.fetched = runs;
  const Place place = placeOf(buffer, launch);
  if (mirror.room < place.bytes || !mirror.memory) {
    cpu->release(mirror.memory);
    mirror = {nullptr, 0, runs, mirror.returned};
    Result<void *> memory = cpu->allocate(place.bytes ? place.bytes : 1);
    if (!memory.ok())
      return memory.status();
    mirror.memory = pointers[size_t(buffer.space)][buffer.index] = memory.value();
    mirror.room = place.bytes;
    ++moves;
  }
  // What a step writes comes too: it may write a part, and the rest has to be what it was.
  return gpu.copyOut(mirror.memory, place.bytes, place.memory, place.bytes, place.bytes, 1);
}

Status HostSteps::giveBack(const BufferInfo &buffer, const Launch &launch, Queue &gpu) {
  if (buffer.space == Space::weight)
    return {};
  Mirror &mirror = mirrors[size_t(buffer.space)][buffer.index];
  if (mirror.returned == runs)
    return {};
  mirror.returned = runs;
  const Place place = placeOf(buffer, launch);
  return gpu.copyIn(place.memory, place.bytes, mirror.memory, place.bytes, place.bytes, 1);
}

Status HostSteps::run(const Launch &launch, Queue &gpu) {
  static_assert(size_t(Space::slot) == 2 && size_t(Space::weight) == 3 && size_t(Space::state) == 4);
  const size_t sizes[kSpaces] = {launch.inputs.size(), launch.outputs.size(), launch.slots.size(), 0,
                                 launch.states.size()};
  for (size_t space = 0; space < kSpaces; ++space) {
    mirrors[space].resize(sizes[space]);
    pointers[space].resize(sizes[space]);
  }
  ++runs;
  auto buffersOf = [&](size_t step) {
    const StepInfo &info = program.steps[step];
    return std::span<const BufferInfo>(program.buffers).subspan(info.firstBuffer, info.bufferCount);
  };
  for (size_t s = launch.first; s < launch.last; ++s)
    if (launch.extents[s] > 0)
      for (const BufferInfo &buffer : buffersOf(s))
        OTF_TRY(fetch(buffer, launch, gpu));

  Launch here = launch;
  here.inputs = pointers[size_t(Space::input)];
  here.outputs = pointers[size_t(Space::output)];
  here.slots = pointers[size_t(Space::slot)];
  here.states = pointers[size_t(Space::state)];
  here.clocks = {}; // a GPU says nothing of its steps, so a profile would be of these alone
  here.shape = launch.shape + moves; // equal shapes promise equal pointers
  OTF_TRY(cpu->run(here));
  OTF_TRY(cpu->synchronize());

  for (size_t s = launch.first; s < launch.last; ++s) {
    if (launch.extents[s] <= 0)
      continue;
    std::span<const BufferInfo> buffers = buffersOf(s);
    const size_t written = buffers.size() - program.steps[s].written;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (i >= written || buffers[i].space == Space::state)
        OTF_TRY(giveBack(buffers[i], launch, gpu));
  }
  return {};
}

} // namespace otf::runtime
