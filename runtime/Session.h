// SPDX-License-Identifier: Apache-2.0
//
// One conversation with a plan: its inputs, its scratch memory, and its states (the cache of keys
// and values), which grow from run to run. Several sessions share one Device. A run whose sizes
// were seen before allocates nothing.
//
// A state may also be handed in as an ordinary input under its ONNX name, in f32 whatever the session holds it in. All states of the plan
// are then given, they replace what the session holds, and their length is the past of the next
// run; the run after that continues from the session again.
#ifndef OTF_RUNTIME_SESSION_H
#define OTF_RUNTIME_SESSION_H

#include "runtime/Arena.h"
#include "runtime/Device.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace otf::runtime {

/// A dense row-major array in host memory, owned by somebody else.
struct TensorView {
  ElementType type;
  std::span<const int64_t> shape;
  const void *data;
};

/// Elements times element size, or nothing when a dimension is negative or the product wraps.
std::optional<int64_t> byteCount(ElementType type, std::span<const int64_t> shape);

// Bounds what a device multiplies: items by grain, blocks by threads.
inline constexpr int64_t kMostItems = int64_t(1) << 48;

struct SessionOptions {
  unsigned threads = 0; // 0: one for each available core
  int64_t capacity = 0; // positions a state has room for; 0: the model's context, at most 4096
  int64_t iterations = int64_t(1) << 20; // that all loops of a run may do together
};

/// What a step has just written, in memory of this process: a dense row-major array. It may be
/// changed before later steps read it.
struct StepValue {
  size_t step;
  const TensorInfo &info; // its node, type and sizes
  std::span<const int64_t> shape;
  void *data;
};

/// One execution of a step.
struct StepEvent {
  size_t step;
  StepClock clock;
};

class StepObserver {
public:
  virtual ~StepObserver() = default;
  /// Hears of every value in the order of the run. A failure ends the run.
  virtual Status see(const StepValue &value) = 0;
};

class Session {
public:
  /// `plan` and `device` outlive the session.
  static Result<std::unique_ptr<Session>> create(const PlanFile &plan, const Device &device,
                                                 const SessionOptions &options);

  /// Copies `value`. It stays the value of this input until it is set again (a state's until the
  /// next run). Name, type and number of axes are checked here, extents when run() knows them all.
  Status setInput(std::string_view name, const TensorView &value);

  /// Takes room for values of so many bytes, so that setInput() allocates nothing up to there. `input`: of the plan's.
  void reserveInput(size_t input, size_t bytes);

  /// Makes the caller's memory this input, which the plan then reads and writes where it lies: statistics that `otf.observe` adds
  /// to. `value` is as for setInput, and stays valid as long as the session. Only where hostVisible().
  Status lendInput(std::string_view name, const TensorView &value, void *memory);

  /// Runs the program once and waits for it. After a failure there are no outputs; states are as
  /// before, unless new ones were given or the device failed: then they are empty.
  Status run();
  /// The same for the states alone: there are no outputs afterwards, and steps whose results only they need are left out (the head of
  /// a language model, and most of its last layer), if the program has no branches.
  Status runForStates();

  /// Outputs of the last run, in the plan's order, then the states under their output names. The
  /// view is valid until the next call of a member that is not const.
  size_t outputCount() const { return plan.outputs.size() + plan.states.size(); }
  std::string_view outputName(size_t index) const;
  std::optional<size_t> findOutput(std::string_view name) const;
  Result<TensorView> output(size_t index);
  /// Shape alone, without moving data. For the plan's own outputs only.
  std::span<const int64_t> outputShape(size_t index) const { return outputShapes[index]; }
  /// Copies a part of an output of the plan: the last row of logits.
  Status readOutput(size_t index, uint64_t offset, uint64_t bytes, void *to);

  /// Whether largest() works for an output.
  bool findsLargest(size_t index) const {
    return index < plan.outputs.size() && plan.outputs[index].type == ElementType::f32 && queue->findsLargest();
  }
  /// The index of the largest of the last `count` values of an output of the plan, as Queue::largest.
  Status largest(size_t index, uint64_t count, int64_t &at);

  /// Positions the states hold, and how many they have room for.
  int64_t stateLength() const { return length; }
  int64_t stateCapacity() const { return capacity; }
  /// Bytes of the positions that a state holds.
  int64_t stateBytesHeld(size_t state) const {
    return state < stateBytes.size() && capacity > 0 ? stateBytes[state] / capacity * length : 0;
  }
  /// Forgets the positions from `newLength` on; 0 starts anew. Not more than stateLength().
  Status truncateStates(int64_t newLength);

  /// From the next run on, appends to `events` each step that ran, in order; null: no longer. A device that
  /// cannot tell when adds nothing. Launches are then waited for one by one.
  void timeSteps(std::vector<StepEvent> *events) { stepEvents = events; }
  const ProgramInfo &steps() const { return program; }

  /// From the next run on, shows `observer` what each step writes; null: nobody. Steps are then done
  /// one by one. Fails where memory is the device's own, and where the plan does not name its values.
  Status observe(StepObserver *observer);

  /// Whether scratch and outputs are memory of this process.
  bool hostVisible() const { return device.hostVisible(); }

  const PlanFile &plan;

private:
  struct Input {
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes; // aligned by hand, see data()
    int64_t size = 0;
    bool given = false;
    std::byte *lent = nullptr; // instead of bytes
    std::byte *data();
  };

  Session(const PlanFile &plan, const Device &device, std::unique_ptr<Queue> queue);
  /// Inputs of the plan come first, then its states; null for the former.
  const StateInfo *stateOfInput(size_t index) const {
    return index < plan.inputs.size() ? nullptr : &plan.states[index - plan.inputs.size()];
  }
  Result<size_t> checkInput(std::string_view name, const TensorView &value, int64_t &bytes) const;
  Status bindSizes();
  Status prepareStates();

  // Execution.cpp
  Status runWanting(bool outputs);
  Status execute();
  Status prepareBlocks();
  Status growForLongestPast();
  bool cannotGrow = false; // growing for the longest past was tried in vain
  Status copyInputs();
  Status launchSteps(size_t first, size_t last);
  void leaveOutOutputs();
  Status bindSymbols(const StepInfo &step);
  Status show(size_t step);
  Status readControl(const StepInfo &step, uint64_t bytes, void *to);
  /// Bytes of state `s` in memory, and how it is cut: `rows` runs of `inner` bytes a position.
  Status stateLayout(size_t s, int64_t &bytes, int64_t &rows, int64_t &inner) const;

  const Device &device;
  const ProgramInfo &program;
  std::unique_ptr<Queue> queue;
  Arena blocks, stateBlocks; // of the device; blocks: slots, outputs, and inputs if it needs them
  Binding binding;
  std::vector<Input> inputs; // the plan's, then its states
  int64_t length = 0, capacity = 0, iterations = 0;
  StepObserver *observer = nullptr;
  std::vector<StepEvent> *stepEvents = nullptr;
  bool statesGiven = false, hasRun = false;
  bool leavesOut = false; // the current run

  // Of the current run; kept to reuse their memory.
  std::vector<int64_t> values, longest, found, dims, extents, blockBytes, blockBytesNow, stateBytes, newStateBytes;
  std::vector<uint32_t> grids;
  std::vector<bool> leftOut, slotNeeded, outputTouched; // leftOut: one a step, if leavesOut; outputTouched: by a step that runs
  std::vector<void *> inputPointers;
  std::vector<std::vector<int64_t>> outputShapes;
  std::vector<int64_t> inputBytes, outputBytes;
  std::vector<StepClock> clocks;
  std::vector<std::byte> staging;
  std::vector<float> stateFloats; // of a state that is held in another type
  std::vector<int64_t> stateShape;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_SESSION_H
