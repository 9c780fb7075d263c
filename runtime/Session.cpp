// SPDX-License-Identifier: Apache-2.0
#include "runtime/Session.h"
#include "runtime/StateRows.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace otf::runtime {

// Room for a cache when the model does not say how long its context is, and at most without being
// asked: the caches of models with a context of 128 Ki would not fit on many machines.
static constexpr int64_t kDefaultCapacity = 4096;
static constexpr size_t kAlignment = 64;

std::optional<int64_t> byteCount(ElementType type, std::span<const int64_t> shape) {
  int64_t bytes = int64_t(elementSize(type));
  // A zero anywhere makes the product zero, however large the other extents are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    bytes = 0;
  for (int64_t extent : shape)
    if (extent < 0 || !multiply(bytes, extent, bytes))
      return std::nullopt;
  return bytes;
}

std::byte *Session::Input::data() {
  if (lent)
    return lent;
  auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (kAlignment - at % kAlignment) % kAlignment;
}

/// Whether steps are done out of order, or sizes found on the way: memory may then grow while it is in use.
static bool hasControl(const ProgramInfo &program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const StepInfo &step) { return step.kind != StepKind::launch; });
}

Session::Session(const PlanFile &plan, const Device &device, std::unique_ptr<Queue> q)
    : plan(plan), device(device), program(device.program()), queue(std::move(q)),
      blocks(*queue, true, hasControl(program)), stateBlocks(*queue, false), binding(plan.symbols),
      inputs(plan.inputs.size() + plan.states.size()), outputShapes(plan.outputs.size()),
      outputBytes(plan.outputs.size()) {}

Result<std::unique_ptr<Session>> Session::create(const PlanFile &plan, const Device &device,
                                                 const SessionOptions &options) {
  Result<std::unique_ptr<Queue>> queue = device.createQueue(options.threads);
  if (!queue.ok())
    return queue.status();
  if (options.capacity < 0 || options.capacity > kMostItems)
    return usageError("capacity: ", options.capacity, " is not a number of positions");
  std::unique_ptr<Session> session(new Session(plan, device, std::move(queue.value())));
  session->iterations = options.iterations;
  session->capacity = options.capacity;
  if (session->capacity == 0) {
    session->capacity = kDefaultCapacity;
    auto json = nlohmann::json::parse(plan.generation, nullptr, false);
    if (json.is_object() && json.contains("context") && json["context"].is_number_unsigned())
      if (uint64_t context = json["context"].get<uint64_t>(); context > 0)
        session->capacity = int64_t(std::min<uint64_t>(context, kDefaultCapacity));
  }
  return session;
}

static std::string nameList(const PlanFile &plan) {
  std::string names;
  for (const TensorInfo &t : plan.inputs)
    names += cat(names.empty() ? "" : ", ", t.name);
  if (!plan.states.empty())
    names += cat(names.empty() ? "" : ", ", plan.states[0].input,
                 plan.states.size() > 1 ? " and other states" : "");
  return names.empty() ? "none" : names;
}

/// Kernels take what such an input picks without asking whether it is there.
template <typename Int>
static Status checkLimit(const TensorInfo &input, const void *data, int64_t bytes) {
  for (int64_t i = 0; i < bytes / int64_t(sizeof(Int)); ++i) {
    Int value; // the caller's array need not be aligned
    std::memcpy(&value, static_cast<const std::byte *>(data) + i * int64_t(sizeof(Int)), sizeof value);
    if (value < -input.limit || value >= input.limit)
      return badInput("input '", input.name, "': the index ", value, " at position ", i,
                      " is out of bounds (expected ", -input.limit, " to ", input.limit - 1, ")");
  }
  return {};
}

/// Which input it is.
Result<size_t> Session::checkInput(std::string_view name, const TensorView &value, int64_t &size) const {
  size_t index = 0;
  for (; index < inputs.size(); ++index)
    if (const StateInfo *state = stateOfInput(index); name == (state ? state->input : plan.inputs[index].name))
      break;
  if (index == inputs.size())
    return badInput("input '", name, "': the model has none of this name (it has ", nameList(plan),
                    ")");
  const StateInfo *state = stateOfInput(index);
  ElementType type = state ? callersType(*state) : plan.inputs[index].type;
  const std::vector<SizeId> &shape = state ? state->shape : plan.inputs[index].shape;
  if (value.type != type)
    return badInput("input '", name, "': expected elements of type ", elementName(type), ", found ",
                    elementName(value.type));
  // One number may be given as a list of one, as ONNX Runtime lets it.
  bool isNumber = shape.empty() && value.shape.size() == 1 && value.shape[0] == 1;
  if (value.shape.size() != shape.size() && !isNumber) {
    std::string expected;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      expected += cat(expected.empty() ? "" : ", ",
                      state && state->width != 0 && axis + 1 == shape.size() ? cat(state->width)
                                                                             : binding.text(plan.sizes[shape[axis]]));
    return badInput("input '", name, "': expected ", shape.size(), " axes [", expected, "], found ",
                    value.shape.size());
  }
  std::optional<int64_t> bytes = byteCount(type, value.shape);
  if (!bytes)
    return badInput("input '", name, "': its shape is negative or too large");
  if (state && state->width != 0 && value.shape.back() != state->width)
    return badInput("input '", name, "': expected ", state->width, " on axis ", shape.size() - 1, ", found ", value.shape.back());
  if (!state && plan.inputs[index].limit != 0)
    OTF_TRY(type == ElementType::i64
                ? checkLimit<int64_t>(plan.inputs[index], value.data, *bytes)
                : checkLimit<int32_t>(plan.inputs[index], value.data, *bytes));
  size = *bytes;
  return index;
}

Status Session::setInput(std::string_view name, const TensorView &value) {
  int64_t bytes = 0;
  Result<size_t> index = checkInput(name, value, bytes);
  if (!index.ok())
    return index.status();
  Input &input = inputs[index.value()];
  const StateInfo *state = stateOfInput(index.value());
  const size_t rank = state ? state->shape.size() : plan.inputs[index.value()].shape.size();
  input.shape.assign(value.shape.begin(), value.shape.begin() + ptrdiff_t(rank));
  input.lent = nullptr;
  const int64_t given = bytes;
  if (state) // held as steps will read it
    bytes = heldBytes(*state, input.shape, given);
  if (input.bytes.size() < size_t(bytes) + kAlignment)
    input.bytes.resize(size_t(bytes) + kAlignment);
  if (state && isConverted(*state))
    holdRows(*state, value.data, given / int64_t(sizeof(float)), input.data());
  else if (bytes)
    std::memcpy(input.data(), value.data, size_t(bytes));
  input.size = bytes;
  input.given = true;
  return {};
}

void Session::reserveInput(size_t input, size_t bytes) {
  inputs[input].bytes.reserve(bytes + kAlignment);
}

Status Session::lendInput(std::string_view name, const TensorView &value, void *memory) {
  int64_t bytes = 0;
  Result<size_t> index = checkInput(name, value, bytes);
  if (!index.ok())
    return index.status();
  if (!device.hostVisible() || index.value() >= plan.inputs.size())
    return usageError("input '", name, "': only memory that a CPU reads can be lent, and no state");
  Input &input = inputs[index.value()];
  input.shape.assign(value.shape.begin(), value.shape.end());
  input.lent = static_cast<std::byte *>(memory);
  input.size = bytes;
  input.given = true;
  return {};
}

/// Values for all symbols and sizes, from the shapes of the inputs and the length of the states.
Status Session::bindSizes() {
  binding.clear();
  size_t given = 0, firstMissing = plan.states.size();
  for (size_t s = 0; s < plan.states.size(); ++s)
    if (inputs[plan.inputs.size() + s].given)
      ++given;
    else
      firstMissing = std::min(firstMissing, s);
  statesGiven = given != 0;
  if (statesGiven && firstMissing != plan.states.size())
    return badInput("input '", plan.states[firstMissing].input,
                    "': missing, while other states are given (give all states or none)");

  for (size_t i = 0; i < inputs.size(); ++i) {
    const StateInfo *state = stateOfInput(i);
    if (state && !statesGiven)
      break;
    std::string_view name = state ? state->input : plan.inputs[i].name;
    const std::vector<SizeId> &shape = state ? state->shape : plan.inputs[i].shape;
    if (!inputs[i].given)
      return badInput("input '", name, "': missing (the model needs ", nameList(plan), ")");
    for (size_t axis = 0; axis < shape.size(); ++axis)
      binding.require(plan.sizes[shape[axis]], inputs[i].shape[axis], "input", name, axis);
  }
  if (!plan.states.empty()) {
    binding.set(plan.capacity, capacity);
    if (!statesGiven)
      binding.set(plan.past, length);
  }
  OTF_TRY(binding.solve());
  if (plan.states.empty())
    return plan.sizes.evaluate(binding, plan.late, values);

  // A given state of batch 0 has no bytes whatever length it claims.
  const int64_t past = binding.value(plan.past);
  if (past < 0 || past > kMostItems)
    return badInput("context: states of ", past, " positions are not possible");
  std::optional<int64_t> appended;
  for (const StateInfo &state : plan.states) {
    Result<int64_t> size = binding.evaluate(plan.sizes[state.appended]);
    if (!size.ok())
      return size.status();
    if (size.value() < 0 || size.value() > kMostItems ||
        size.value() != appended.value_or(size.value()))
      return badInput("state '", state.name, "': a step appends ", size.value(),
                      " positions, to the others ", appended.value_or(0));
    appended = size.value();
  }
  int64_t needed = past + *appended; // each is at most kMostItems
  if (needed > capacity && statesGiven) {
    // All of the cache is replaced anyway, so it may as well become larger.
    capacity = needed;
    binding.set(plan.capacity, capacity);
  }
  if (needed > capacity)
    return badInput("context: ", past, " positions and ", *appended, " more do not fit in ",
                    capacity, " (ask for a larger context, or start anew)");
  return plan.sizes.evaluate(binding, plan.late, values);
}

Status Session::stateLayout(size_t s, int64_t &bytes, int64_t &rows, int64_t &inner) const {
  const StateInfo &state = plan.states[s];
  rows = 1, inner = int64_t(elementSize(state.type));
  int64_t run; // of one row: also where a size is 0, copies step by it
  bool fits = true;
  for (size_t axis = 0; axis < state.shape.size(); ++axis) {
    int64_t extent = values[state.shape[axis]];
    if (axis == state.axis)
      continue;
    int64_t &side = axis < state.axis ? rows : inner;
    fits = fits && extent >= 0 && multiply(side, extent, side);
  }
  if (!fits || !multiply(inner, capacity, run) || !multiply(rows, run, bytes))
    return badInput("state '", state.name, "': its size is negative or too large");
  return {};
}

Status Session::prepareStates() {
  newStateBytes.resize(plan.states.size());
  int64_t rows, inner;
  for (size_t s = 0; s < plan.states.size(); ++s)
    OTF_TRY(stateLayout(s, newStateBytes[s], rows, inner));
  if (!statesGiven && length > 0 && newStateBytes != stateBytes)
    return badInput("context: the states hold ", length,
                    " positions for inputs of another shape, such as another batch size "
                    "(start anew)");
  bool moved;
  OTF_TRY(stateBlocks.reserve(newStateBytes, moved));
  stateBytes = newStateBytes;
  if (!statesGiven)
    return {};
  for (size_t s = 0; s < plan.states.size(); ++s) {
    int64_t bytes, past = binding.value(plan.past);
    OTF_TRY(stateLayout(s, bytes, rows, inner));
    OTF_TRY(queue->copyIn(stateBlocks.blocks()[s], uint64_t(capacity * inner),
                          inputs[plan.inputs.size() + s].data(), uint64_t(past * inner),
                          uint64_t(past * inner), uint64_t(rows)));
  }
  return {};
}

std::string_view Session::outputName(size_t index) const {
  return index < plan.outputs.size() ? plan.outputs[index].name
                                     : plan.states[index - plan.outputs.size()].output;
}

std::optional<size_t> Session::findOutput(std::string_view name) const {
  for (size_t i = 0; i < outputCount(); ++i)
    if (outputName(i) == name)
      return i;
  return std::nullopt;
}

Result<TensorView> Session::output(size_t index) {
  if (!hasRun)
    return usageError("output '", outputName(index), "': there is none before a run");
  if (index < plan.outputs.size()) {
    const void *data = blocks.blocks()[program.slots.size() + index];
    if (!device.hostVisible()) {
      staging.resize(size_t(outputBytes[index]));
      OTF_TRY(readOutput(index, 0, uint64_t(outputBytes[index]), staging.data()));
      data = staging.data();
    }
    return TensorView{plan.outputs[index].type, outputShapes[index], data};
  }
  const size_t s = index - plan.outputs.size();
  int64_t bytes, rows, inner;
  OTF_TRY(stateLayout(s, bytes, rows, inner));
  staging.resize(size_t(rows * inner * length)); // at most what the state takes
  OTF_TRY(queue->copyOut(staging.data(), uint64_t(length * inner), stateBlocks.blocks()[s],
                         uint64_t(capacity * inner), uint64_t(length * inner), uint64_t(rows)));
  stateShape.clear();
  for (SizeId id : plan.states[s].shape)
    stateShape.push_back(values[id]);
  stateShape[plan.states[s].axis] = length;
  const StateInfo &state = plan.states[s];
  if (!isConverted(state))
    return TensorView{state.type, stateShape, staging.data()};
  giveRows(state, staging, stateShape, stateFloats);
  return TensorView{ElementType::f32, stateShape, stateFloats.data()};
}

Status Session::readOutput(size_t index, uint64_t offset, uint64_t bytes, void *to) {
  if (!hasRun || index >= plan.outputs.size() || offset > uint64_t(outputBytes[index]) ||
      bytes > uint64_t(outputBytes[index]) - offset)
    return usageError("output ", index, ": there are no such bytes");
  auto *from = static_cast<const std::byte *>(blocks.blocks()[program.slots.size() + index]);
  return queue->copyOut(to, bytes, from + offset, bytes, bytes, 1);
}

Status Session::largest(size_t index, uint64_t count, int64_t &at) {
  if (!hasRun || index >= plan.outputs.size() || count > uint64_t(outputBytes[index]) / 4)
    return usageError("output ", index, ": there are no such values");
  auto *from = static_cast<const std::byte *>(blocks.blocks()[program.slots.size() + index]);
  return queue->largest(from + outputBytes[index] - int64_t(4 * count), count, at);
}

Status Session::observe(StepObserver *who) {
  if (who && !device.hostVisible())
    return usageError("device: what steps write stays in its own memory (use --device=cpu)");
  if (who && program.results.empty())
    return badInput("the plan does not name what its steps write (compile the model again)");
  observer = who;
  return {};
}

Status Session::truncateStates(int64_t newLength) {
  if (newLength < 0 || newLength > length)
    return usageError("states: they hold ", length, " positions and cannot be cut to ", newLength);
  length = newLength;
  return {};
}

} // namespace otf::runtime
