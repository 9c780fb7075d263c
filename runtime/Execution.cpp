// SPDX-License-Identifier: Apache-2.0
//
// One run of a session. Steps that are launches go to the device in runs as long as possible; what
// stands between them is done here: finding sizes in data, branching, jumping back. A plan without
// such steps is one launch.
#include "runtime/Session.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace otf::runtime {

/// Where a step comes from, for people.
static std::string_view nameOf(const StepInfo &step) {
  return step.label.empty() ? std::string_view(step.kernel) : step.label;
}

/// Blocks whose size follows the cache grow with each token. Where they must grow anyway they get what a full cache will ask for,
/// so that decoding takes no memory; pages cost nothing before they are touched.
Status Session::growForLongestPast() {
  const int64_t past = binding.value(plan.past);
  const int64_t appended = values[plan.states[0].appended];
  if (capacity - appended <= past)
    return {};
  binding.set(plan.past, capacity - appended);
  const Status status = plan.sizes.evaluate(binding, plan.late, longest);
  binding.set(plan.past, past);
  if (!status.ok()) // too large to be counted, and not needed yet
    return {};
  for (size_t i = 0; i < program.slots.size(); ++i)
    for (SizeId id : program.slots[i])
      blockBytes[i] = std::max(blockBytes[i], longest[id]);
  bool moved;
  return blocks.reserve(blockBytes, moved);
}

/// Which steps only the outputs need, from the last step to the first. A step that does something writes its results whole, so what it
/// writes is needed by nobody before it. What has a state or no result at all is needed. Once a symbol is bound, more is known.
void Session::leaveOutOutputs() {
  for (const StepInfo &step : program.steps)
    if (step.kind == StepKind::branch || step.kind == StepKind::jump)
      return; // which steps follow is not known yet
  leavesOut = true;
  leftOut.assign(program.steps.size(), false);
  slotNeeded.assign(program.slots.size(), false);
  outputTouched.assign(plan.outputs.size(), false);
  for (size_t s = program.steps.size(); s-- > 0;) {
    const StepInfo &step = program.steps[s];
    const bool launch = step.kind == StepKind::launch, known = launch && values[step.extent] != kUnknown;
    if (known && values[step.extent] <= 0)
      continue;
    const auto buffers = std::span(program.buffers).subspan(step.firstBuffer, step.bufferCount);
    const auto results = buffers.last(launch ? step.written : 0);
    bool needed = results.empty();
    for (const BufferInfo &b : buffers)
      needed = needed || b.space == Space::state;
    for (const BufferInfo &b : results)
      needed = needed || (b.space == Space::slot && slotNeeded[b.index]) || (b.space == Space::output && outputTouched[b.index]);
    leftOut[s] = !needed;
    if (!needed)
      continue;
    for (const BufferInfo &b : results)
      if (b.space == Space::slot && known)
        slotNeeded[b.index] = false;
    for (const BufferInfo &b : buffers.first(buffers.size() - results.size()))
      if (b.space == Space::slot)
        slotNeeded[b.index] = true;
    for (const BufferInfo &b : buffers)
      if (b.space == Space::output)
        outputTouched[b.index] = true;
  }
}

/// Memory for all whose sizes are known by now.
Status Session::prepareBlocks() {
  blockBytes.clear();
  for (const std::vector<SizeId> &slot : program.slots) {
    int64_t bytes = 0;
    for (SizeId id : slot)
      bytes = std::max(bytes, values[id]); // an unknown one is negative
    blockBytes.push_back(bytes);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    outputShapes[i].clear();
    bool known = true;
    for (SizeId id : plan.outputs[i].shape) {
      outputShapes[i].push_back(values[id]);
      known = known && values[id] != kUnknown;
    }
    std::optional<int64_t> bytes = known ? byteCount(plan.outputs[i].type, outputShapes[i]) : 0;
    if (!bytes)
      return badInput("output '", plan.outputs[i].name, "': its size is negative or too large");
    outputBytes[i] = leavesOut && !outputTouched[i] ? 0 : *bytes;
    blockBytes.push_back(outputBytes[i]);
  }
  if (!device.hostVisible())
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      blockBytes.push_back(inputs[i].size);
  // A prompt's own blocks may be as large as its rows times the context: only single rows are grown for.
  if (device.hostVisible() && !plan.states.empty() && !statesGiven && !cannotGrow &&
      values[plan.states[0].appended] == 1 && !blocks.fits(blockBytes)) {
    blockBytesNow = blockBytes;
    cannotGrow = !growForLongestPast().ok(); // if there is no such memory, what is needed now may still be had
    blockBytes = blockBytesNow;
  }
  bool moved;
  return blocks.reserve(blockBytes, moved);
}

/// Inputs to the device, where it cannot read them here.
Status Session::copyInputs() {
  if (device.hostVisible())
    return {};
  const size_t before = program.slots.size() + plan.outputs.size();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const uint64_t size = uint64_t(inputs[i].size);
    OTF_TRY(queue->copyIn(blocks.blocks()[before + i], size, inputs[i].data(), size, size, 1));
  }
  return {};
}

Status Session::launchSteps(size_t first, size_t last) {
  Launch launch;
  launch.first = first;
  launch.last = last;
  std::span<void *const> pointers = blocks.blocks();
  launch.slots = pointers.first(program.slots.size());
  launch.outputs = pointers.subspan(program.slots.size(), plan.outputs.size());
  launch.states = stateBlocks.blocks();
  inputPointers.resize(plan.inputs.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    inputPointers[i] = device.hostVisible()
                           ? inputs[i].data()
                           : pointers[program.slots.size() + plan.outputs.size() + i];
  launch.inputs = inputPointers;
  inputBytes.clear();
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    inputBytes.push_back(inputs[i].size);
  launch.inputBytes = inputBytes;
  launch.outputBytes = outputBytes;
  launch.slotBytes = std::span<const int64_t>(blockBytes).first(program.slots.size());
  launch.stateBytes = stateBytes;

  dims.resize(program.dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i] = values[program.dims[i]];
  extents.resize(program.steps.size());
  grids.resize(3 * program.steps.size());
  for (size_t s = first; s < last; ++s) {
    const StepInfo &step = program.steps[s];
    extents[s] = values[step.extent];
    if (program.target == "cuda" && step.host.empty()) // plan.fbs: at most 0 is nothing to do
      extents[s] = std::max<int64_t>(extents[s], 0);
    if (leavesOut && leftOut[s])
      extents[s] = 0;
    if (extents[s] < 0 || extents[s] > kMostItems)
      return badInput("step '", step.kernel, "': ", extents[s], " work items are not possible");
    for (int axis = 0; axis < 3; ++axis) {
      int64_t blocksOnAxis = std::max<int64_t>(values[step.grid[axis]], 1);
      if (blocksOnAxis > INT32_MAX)
        return badInput("step '", step.kernel, "': a grid of ", blocksOnAxis,
                        " blocks is not possible");
      grids[3 * s + size_t(axis)] = uint32_t(blocksOnAxis);
    }
  }
  launch.dims = dims;
  launch.extents = extents;
  launch.grids = grids;

  // Equal content is equal shape, so an address that comes back finds its graph again.
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  for (std::span<void *const> list : {launch.inputs, launch.outputs, launch.slots, launch.states})
    XXH3_64bits_update(&hash, list.data(), list.size_bytes());
  for (size_t bound : {first, last})
    XXH3_64bits_update(&hash, &bound, sizeof bound);
  XXH3_64bits_update(&hash, grids.data() + 3 * first, 3 * (last - first) * sizeof(uint32_t));
  for (size_t s = first; s < last; ++s)
    if (extents[s] == 0)
      XXH3_64bits_update(&hash, &s, sizeof s);
  launch.shape = XXH3_64bits_digest(&hash);
  if (!stepEvents)
    return queue->run(launch);
  clocks.assign(program.steps.size(), {});
  launch.clocks = clocks;
  OTF_TRY(queue->run(launch));
  OTF_TRY(queue->synchronize());
  for (size_t s = first; s < last; ++s)
    if (clocks[s].end != 0)
      stepEvents->push_back({s, clocks[s]});
  return {};
}

/// What a launch wrote, to the observer.
Status Session::show(size_t index) {
  const StepInfo &step = program.steps[index];
  if (extents[index] == 0)
    return {};
  OTF_TRY(queue->synchronize());
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < step.resultCount; ++i) {
    const TensorInfo &info = program.results[step.firstResult + i];
    const BufferInfo &buffer =
        program.buffers[step.firstBuffer + step.bufferCount - step.written + i];
    shape.clear();
    for (SizeId id : info.shape)
      shape.push_back(values[id]); // an unknown one is negative
    const std::optional<int64_t> bytes = byteCount(info.type, shape);
    const bool isSlot = buffer.space == Space::slot;
    if (!isSlot && buffer.space != Space::output)
      continue;
    const int64_t room = isSlot ? blockBytes[buffer.index] : outputBytes[buffer.index];
    if (!bytes || *bytes > room)
      return badInput("step '", nameOf(step), "': its value does not fit in its buffer (compile the "
                      "model again)");
    void *data = blocks.blocks()[isSlot ? buffer.index : program.slots.size() + buffer.index];
    OTF_TRY(observer->see({index, info, shape, data}));
  }
  return {};
}

/// The first bytes of a control step's buffer.
Status Session::readControl(const StepInfo &step, uint64_t bytes, void *to) {
  const BufferInfo &buffer = program.buffers[step.firstBuffer];
  const void *from = nullptr;
  uint64_t room = 0;
  switch (buffer.space) {
  case Space::input:
    std::memcpy(to, inputs[buffer.index].data(),
                std::min(bytes, uint64_t(inputs[buffer.index].size)));
    return bytes <= uint64_t(inputs[buffer.index].size)
               ? Status()
               : badInput("step '", nameOf(step), "': its input is too small");
  case Space::output:
    from = blocks.blocks()[program.slots.size() + buffer.index];
    room = uint64_t(outputBytes[buffer.index]);
    break;
  case Space::slot:
    from = blocks.blocks()[buffer.index];
    room = uint64_t(blockBytes[buffer.index]);
    break;
  case Space::weight:
    room = plan.weightBytes().size() - buffer.offset;
    if (bytes <= room)
      std::memcpy(to, plan.weightBytes().data() + buffer.offset, bytes);
    return bytes <= room ? Status()
                         : badInput("step '", nameOf(step), "': its weight is too small");
  case Space::state:
    break;
  }
  if (bytes > room)
    return badInput("step '", nameOf(step), "': its buffer is too small (compile the model again)");
  return queue->copyOut(to, bytes, from, bytes, bytes, 1);
}

Status Session::bindSymbols(const StepInfo &step) {
  found.resize(step.symbolCount);
  OTF_TRY(readControl(step, step.symbolCount * sizeof(int64_t), found.data()));
  for (size_t i = 0; i < found.size(); ++i) {
    uint32_t symbol = program.symbols[step.firstSymbol + i];
    if (found[i] < 0 && !step.message.empty())
      return badInput("node '", nameOf(step), "': ", step.message, " (check the values and shapes of the inputs)");
    if (found[i] < 0 || found[i] > kMostItems)
      return badInput("node '", nameOf(step), "': its inputs give no possible size for '",
                      binding.name(symbol), "' (check their values and shapes)");
    binding.set(symbol, found[i]);
  }
  OTF_TRY(plan.sizes.evaluate(binding, plan.late, values));
  if (leavesOut)
    leaveOutOutputs();
  return {};
}

Status Session::execute() {
  int64_t left = iterations;
  for (size_t at = 0; at < program.steps.size();) {
    size_t last = at;
    while (last < program.steps.size() && program.steps[last].kind == StepKind::launch &&
           program.steps[last].host.empty() == program.steps[at].host.empty() &&
           (!observer || last == at))
      ++last;
    if (at != 0)
      OTF_TRY(prepareBlocks());
    if (last > at)
      OTF_TRY(launchSteps(at, last));
    if (observer && last > at)
      OTF_TRY(show(at));
    at = last;
    if (at == program.steps.size())
      break;
    if (program.steps[at].kind == StepKind::launch)
      continue; // on the other side, or one by one
    const StepInfo &step = program.steps[at];
    size_t next = at + 1;
    if (step.kind == StepKind::bind) {
      OTF_TRY(bindSymbols(step));
    } else if (step.kind == StepKind::jump) {
      next = step.target;
    } else {
      uint8_t holds = 0;
      OTF_TRY(readControl(step, 1, &holds));
      if (!holds)
        next = step.target;
    }
    if (next <= at && --left < 0)
      return badInput("node '", nameOf(step), "': its loop did not end within ", iterations,
                      " iterations (give more with --iterations, or check its condition)");
    at = next;
  }
  return {};
}

Status Session::run() { return runWanting(true); }

Status Session::runForStates() {
  Status status = runWanting(false);
  hasRun = false;
  return status;
}

Status Session::runWanting(bool outputs) {
  hasRun = leavesOut = false;
  OTF_TRY(bindSizes());
  if (!outputs)
    leaveOutOutputs();
  OTF_TRY(prepareBlocks());
  if (statesGiven)
    length = 0; // from here on the old contents may be overwritten
  OTF_TRY(prepareStates());
  OTF_TRY(copyInputs());
  const int64_t before = length;
  length = 0; // what a device that fails leaves behind cannot be relied on
  OTF_TRY(execute());
  OTF_TRY(prepareBlocks()); // outputs that nothing wrote, since they are empty
  OTF_TRY(queue->synchronize());
  hasRun = true;
  length = before;
  if (!plan.states.empty())
    length = binding.value(plan.past) + values[plan.states[0].appended];
  for (size_t s = 0; s < plan.states.size(); ++s)
    inputs[plan.inputs.size() + s].given = false;
  return {};
}

} // namespace otf::runtime
