// SPDX-License-Identifier: Apache-2.0
//
// What stands between a session and the machine that computes. A `Device` is a plan made ready on
// one machine: weights where kernels read them, kernels looked up. It does not change after it was
// made, and sessions share it. A `Queue` is what one session adds: memory, an order of execution,
// and whatever makes a repeated step cheap (a thread pool, a captured graph).
//
// Ownership: a Device borrows the PlanFile, a Queue borrows its Device. Pointers from allocate()
// belong to the queue's owner, who gives them back with release() before the queue goes.
//
// Threads: a Device may be used from several threads at once, a Queue from one at a time.
#ifndef OTF_RUNTIME_DEVICE_H
#define OTF_RUNTIME_DEVICE_H

#include "runtime/PlanFile.h"
#include "runtime/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace otf::runtime {

/// When a step ran, in nanoseconds of a clock that only the device knows. Zeros: it cannot tell.
struct StepClock {
  uint64_t begin = 0, end = 0;
  uint64_t busy = 0; // of the host's threads together, inside kernels; 0 on a GPU
};

/// One execution of a program: its sizes as numbers, its buffers as pointers of the device. All
/// arrays belong to the session and are valid during the call.
struct Launch {
  /// The steps [first, last), all of them launches, and either all or none of them the host's.
  size_t first, last;
  /// Dims of all steps, one after another; step s has [firstDim, firstDim + dimCount). The layout
  /// is the same in every launch, so a device keeps one table and overwrites it.
  std::span<const int64_t> dims;
  /// Work items, one a step. 0 means that the step has nothing to do.
  std::span<const int64_t> extents;
  /// Blocks in x, y, z, three a step; 1 where the plan gives none, and 0 never.
  std::span<const uint32_t> grids;
  /// By index of BufferInfo. Weights are the device's own: base of the section plus offset.
  std::span<void *const> inputs, outputs, slots, states;
  /// Their contents in bytes, for who moves them: steps of a GPU's program that the host runs.
  std::span<const int64_t> inputBytes, outputBytes, slotBytes, stateBytes;
  /// Two launches of a queue with the same `shape` have equal pointers and grids, and the same
  /// steps with an extent of 0; only dims (and other extents) differ. So a graph captured for a
  /// shape may be replayed after the dims table was updated. Shapes come back (a long prompt, then
  /// single tokens, then a prompt again), so a queue may keep a few.
  uint64_t shape;
  /// One a step of the program, zeros when the launch begins. A device that can tell writes those of the
  /// launch's steps, at the latest when synchronize() returns. Empty when nobody asks.
  std::span<StepClock> clocks;
};

class Queue {
public:
  virtual ~Queue() = default;

  /// Device memory at a multiple of 64 (CUDA: 256) bytes, not zeroed. Fails with Code::device and
  /// the number of bytes. `release(nullptr)` does nothing; release waits for work that uses it.
  virtual Result<void *> allocate(uint64_t bytes) = 0;
  virtual void release(void *memory) = 0;

  /// Copies `rows` runs of `width` bytes, whose starts lie `fromPitch` and `toPitch` bytes apart:
  /// a cache is dense outside and has room for its capacity inside. In order with launches. The
  /// host memory may be reused when the call returns, and holds the data when copyOut returns.
  virtual Status copyIn(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch,
                        uint64_t width, uint64_t rows) = 0;
  virtual Status copyOut(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch,
                         uint64_t width, uint64_t rows) = 0;

  /// Whether largest() works here.
  virtual bool findsLargest() const { return false; }
  /// The index of the largest of `count` f32 values in device memory, the first of equal ones; -1 where all are NaN or -inf. Waits.
  virtual Status largest(const void *values, uint64_t count, int64_t &index) {
    index = -1;
    return usageError("this device does not look for the largest value");
  }

  /// Runs the launch's steps in order. May return before the work is done.
  virtual Status run(const Launch &launch) = 0;
  /// Waits, and reports what went wrong since the last call.
  virtual Status synchronize() = 0;
};

class Device {
public:
  virtual ~Device() = default;
  /// One line for people: "cpu (avx512vnni)", "NVIDIA H200 (sm_90)".
  virtual std::string description() const = 0;
  /// The program that queues of this device run.
  virtual const ProgramInfo &program() const = 0;
  /// Host code may read and write memory from allocate(): copies are then left out.
  virtual bool hostVisible() const = 0;
  /// `threads`: of the host, 0 for all available cores; on a GPU, for what the host runs.
  virtual Result<std::unique_ptr<Queue>> createQueue(unsigned threads) const = 0;
};

/// `name` is "cpu", "cpu:<level>" to insist on the code of one instruction set, "cuda" or
/// "cuda:<ordinal>".
Result<std::unique_ptr<Device>> makeDevice(const PlanFile &plan, std::string_view name);

/// The two makers behind makeDevice; `argument` is what follows the colon, or empty.
/// runtime/CPU/CpuDevice.cpp and runtime/CUDA/CudaDevice.cpp define them.
Result<std::unique_ptr<Device>> makeCpuDevice(const PlanFile &plan, std::string_view argument);
Result<std::unique_ptr<Device>> makeCudaDevice(const PlanFile &plan, std::string_view argument);


/// The CPU as the helper of a GPU: it runs only those steps of `program` that are the host's.
Result<std::unique_ptr<Device>> makeHostDevice(const PlanFile &plan, const ProgramInfo &program);

} // namespace otf::runtime

#endif // OTF_RUNTIME_DEVICE_H
