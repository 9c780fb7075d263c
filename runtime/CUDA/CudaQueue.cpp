// SPDX-License-Identifier: Apache-2.0
#include "runtime/CUDA/CudaQueue.h"

#include "runtime/CUDA/HostSteps.h"

#include <algorithm>
#include <cstring>

namespace otf::runtime::cuda {
namespace {

constexpr size_t kStaging = 1 << 20; // of inputs; a larger one is copied with a wait
constexpr size_t kGraphs = 4;        // shapes a queue remembers
constexpr unsigned kDefaultBlock = 256;
constexpr unsigned kLargestBlocks = 128; // that look for the largest of a row
constexpr unsigned kRecordExternal = 1; // CU_EVENT_RECORD_EXTERNAL: a node of a graph that is captured
constexpr int kCaptureThreadLocal = 1;

class CudaQueue final : public Queue {
public:
  explicit CudaQueue(const CudaDevice &device)
      : device(device), gpu(*device.gpu), d(gpu.driver()) {}

  ~CudaQueue() override {
    Gpu::Current current(gpu);
    if (stream)
      d.streamSynchronize(stream);
    for (Captured &graph : graphs)
      if (graph.exec)
        d.graphExecDestroy(graph.exec);
    for (Event event : events)
      d.eventDestroy(event);
    for (void *memory : allocations)
      d.memFree(asPointer(memory));
    if (dims)
      d.memFree(dims);
    if (dimsMirror)
      d.memFreeHost(dimsMirror);
    if (staging)
      d.memFreeHost(staging);
    if (keys)
      d.memFree(keys);
    if (keysMirror)
      d.memFreeHost(keysMirror);
    if (stream)
      d.streamDestroy(stream);
  }

  Status start(unsigned threads) {
    if (device.host) {
      Result<std::unique_ptr<Queue>> cpu = device.host->createQueue(threads);
      if (!cpu.ok())
        return cpu.status();
      host = std::make_unique<HostSteps>(device.steps, std::move(cpu.value()));
    }
    Gpu::Current current(gpu);
    OTF_TRY(d.check(d.streamCreate(&stream, kNonBlockingStream), "cuStreamCreate"));
    dimBytes = device.steps.dims.size() * sizeof(int64_t);
    Result<Pointer> table = gpu.allocate(dimBytes);
    if (!table.ok())
      return table.status();
    dims = table.value();
    for (auto [to, bytes] : {std::pair(&dimsMirror, dimBytes), std::pair(&staging, kStaging)}) {
      Result<void *> pinned = gpu.allocateHost(bytes);
      if (!pinned.ok())
        return pinned.status();
      *to = pinned.value();
    }
    return {};
  }

  Result<void *> allocate(uint64_t bytes) override {
    Gpu::Current current(gpu);
    Result<Pointer> memory = gpu.allocate(bytes);
    if (!memory.ok())
      return memory.status();
    allocations.push_back(asAddress(memory.value()));
    return allocations.back();
  }

  void release(void *memory) override {
    auto it = std::find(allocations.begin(), allocations.end(), memory);
    if (it == allocations.end())
      return;
    Gpu::Current current(gpu);
    d.streamSynchronize(stream);
    d.memFree(asPointer(memory));
    allocations.erase(it);
  }

  Status copyIn(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                uint64_t rows) override {
    if (!width || !rows)
      return {};
    Gpu::Current current(gpu);
    const uint64_t bytes = width * rows;
    if (bytes > kStaging) {
      OTF_TRY(copy(kMemoryDevice, to, toPitch, kMemoryHost, from, fromPitch, width, rows));
      return wait("copying to the GPU");
    }
    // The caller may reuse its memory at once, so small inputs go through ours.
    if (stagingUsed + bytes > kStaging)
      OTF_TRY(wait("copying to the GPU"));
    std::byte *mine = static_cast<std::byte *>(staging) + stagingUsed;
    for (uint64_t row = 0; row < rows; ++row)
      std::memcpy(mine + row * width, static_cast<const std::byte *>(from) + row * fromPitch,
                  width);
    stagingUsed += bytes;
    return copy(kMemoryDevice, to, toPitch, kMemoryHost, mine, width, width, rows);
  }

  Status copyOut(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                 uint64_t rows) override {
    if (!width || !rows)
      return {};
    Gpu::Current current(gpu);
    OTF_TRY(copy(kMemoryHost, to, toPitch, kMemoryDevice, from, fromPitch, width, rows));
    return wait("copying from the GPU");
  }

  Status run(const Launch &launch) override {
    if (!device.steps.steps[launch.first].host.empty())
      return host->run(launch, *this);
    Gpu::Current current(gpu);
    if (running) // the table's mirror may still be read
      OTF_TRY(wait("running the plan"));
    if (dimBytes)
      std::memcpy(dimsMirror, launch.dims.data(), dimBytes);
    running = true;
    if (!launch.clocks.empty())
      return timed(launch);

    auto known = std::find_if(graphs.begin(), graphs.end(),
                              [&](const Captured &g) { return g.shape == launch.shape; });
    if (known == graphs.end()) {
      // Perhaps a prompt that never comes again: launch it, and remember that it was seen.
      if (graphs.size() == kGraphs)
        forgetOldest();
      graphs.push_back({launch.shape, nullptr, ++clock});
      return enqueue(launch);
    }
    known->used = ++clock;
    if (!known->exec)
      OTF_TRY(capture(launch, known->exec));
    return d.check(d.graphLaunch(known->exec, stream), "cuGraphLaunch");
  }

  bool findsLargest() const override { return device.largest != nullptr; }
  Status largest(const void *values, uint64_t count, int64_t &index) override {
    Gpu::Current current(gpu);
    index = -1;
    if (count == 0 || count > UINT32_MAX)
      return count ? usageError("largest: too many values") : Status();
    if (!keys) {
      Result<Pointer> memory = gpu.allocate(kLargestBlocks * sizeof(uint64_t));
      if (!memory.ok())
        return memory.status();
      keys = memory.value();
    }
    if (!keysMirror) {
      Result<void *> pinned = gpu.allocateHost(kLargestBlocks * sizeof(uint64_t));
      if (!pinned.ok())
        return pinned.status();
      keysMirror = static_cast<uint64_t *>(pinned.value());
    }
    const unsigned blocks = unsigned(std::min<uint64_t>((count + kDefaultBlock - 1) / kDefaultBlock, kLargestBlocks));
    Pointer from = asPointer(values);
    uint32_t number = uint32_t(count);
    void *parameters[] = {&from, &number, &keys};
    OTF_TRY(d.check(d.launchKernel(device.largest, blocks, 1, 1, kDefaultBlock, 1, 1, 0, stream, parameters, nullptr), "kernel 'otf_largest'"));
    OTF_TRY(d.check(d.copyToHost(keysMirror, keys, blocks * sizeof(uint64_t), stream), "copying"));
    OTF_TRY(wait("running the plan"));
    const uint64_t top = *std::max_element(keysMirror, keysMirror + blocks);
    if (top)
      index = int64_t(UINT32_MAX - uint32_t(top));
    return {};
  }

  Status synchronize() override {
    Gpu::Current current(gpu);
    return wait("running the plan");
  }

private:
  struct Captured {
    uint64_t shape;
    GraphExec exec; // null until the shape came twice
    uint64_t used;
  };

  Status wait(const char *what) {
    OTF_TRY(d.check(d.streamSynchronize(stream), what));
    running = false;
    stagingUsed = 0;
    return {};
  }

  Status copy(unsigned toType, void *to, uint64_t toPitch, unsigned fromType, const void *from,
              uint64_t fromPitch, uint64_t width, uint64_t rows) {
    if (rows == 1)
      toPitch = fromPitch = width;
    if (toPitch == width && fromPitch == width)
      return d.check(toType == kMemoryDevice
                         ? d.copyToDevice(asPointer(to), from, width * rows, stream)
                         : d.copyToHost(to, asPointer(from), width * rows, stream),
                     "copying");
    Copy2D c = {};
    c.srcType = fromType;
    c.dstType = toType;
    if (fromType == kMemoryHost)
      c.srcHost = from;
    else
      c.srcDevice = asPointer(from);
    if (toType == kMemoryHost)
      c.dstHost = to;
    else
      c.dstDevice = asPointer(to);
    c.srcPitch = fromPitch;
    c.dstPitch = toPitch;
    c.widthInBytes = width;
    c.height = rows;
    return d.check(d.copy2D(&c, stream), "copying");
  }

  Pointer address(const BufferInfo &b, const Launch &launch) const {
    switch (b.space) {
    case Space::input:
      return asPointer(launch.inputs[b.index]);
    case Space::output:
      return asPointer(launch.outputs[b.index]);
    case Space::slot:
      return asPointer(launch.slots[b.index]);
    case Space::state:
      return asPointer(launch.states[b.index]);
    case Space::weight:
      break;
    }
    return device.weights + b.offset;
  }

  /// The dims table and all steps, into the stream or the graph being captured from it. `timed`: with an event before and after each.
  Status enqueue(const Launch &launch, bool timed = false) {
    bool follows = false; // whether the last thing enqueued is a kernel
    if (dimBytes)
      OTF_TRY(d.check(d.copyToDevice(dims, dimsMirror, dimBytes, stream), "copying sizes"));
    for (size_t s = launch.first; s < launch.last; ++s) {
      const StepInfo &step = device.steps.steps[s];
      if (launch.extents[s] <= 0)
        continue;
      // The one parameter: pointers, then the address of this step's sizes (KernelABI.h).
      parameters.clear();
      for (uint32_t i = 0; i < step.bufferCount; ++i)
        parameters.push_back(address(device.steps.buffers[step.firstBuffer + i], launch));
      parameters.push_back(dims + step.firstDim * sizeof(int64_t));
      void *parameter = parameters.data();
      const uint32_t *grid = launch.grids.data() + 3 * s;
      const unsigned block = step.block ? step.block : kDefaultBlock;
      if (timed)
        OTF_TRY(recordEvent());
      int code;
      if (device.beginsEarly && follows && !timed) {
        LaunchAttribute early = {};
        early.id = kProgrammaticSerialization;
        early.flag = 1;
        const LaunchConfig config = {{grid[0], grid[1], grid[2]}, {block, 1, 1}, step.shared, stream, &early, 1};
        code = d.launchKernelEx(&config, device.kernels[s], &parameter, nullptr);
      } else {
        code = d.launchKernel(device.kernels[s], grid[0], grid[1], grid[2], block, 1, 1, step.shared, stream,
                              &parameter, nullptr);
      }
      follows = true;
      if (code != kSuccess)
        return d.error(code, cat("kernel '", step.kernel, "' of ", step.label).c_str());
      if (timed)
        OTF_TRY(recordEvent());
    }
    return {};
  }

  Status recordEvent() {
    if (usedEvents == events.size()) {
      Event event;
      OTF_TRY(d.check(d.eventCreate(&event, 0), "cuEventCreate"));
      events.push_back(event);
    }
    return d.check(d.eventRecordWithFlags(events[usedEvents++], stream, kRecordExternal), "cuEventRecordWithFlags");
  }

  /// What each step takes by itself: a graph in which events stand between kernels, so that none begins before the last has ended and the
  /// host's pace does not count. Less what two events take that have nothing between them.
  Status timed(const Launch &launch) {
    usedEvents = 0;
    GraphExec exec = nullptr;
    OTF_TRY(capture(launch, exec, true));
    Status status = d.check(d.graphLaunch(exec, stream), "cuGraphLaunch");
    if (status.ok())
      status = wait("running the plan");
    d.graphExecDestroy(exec);
    OTF_TRY(std::move(status));
    auto between = [&](size_t first, float &milliseconds) {
      return d.check(d.eventElapsedTime(&milliseconds, events[first], events[first + 1]), "cuEventElapsedTime");
    };
    float nothing = 0, each = 0;
    OTF_TRY(between(0, nothing));
    size_t at = 2;
    uint64_t now = 1; // 0 is that it cannot tell
    for (size_t s = launch.first; s < launch.last; ++s) {
      if (launch.extents[s] <= 0)
        continue;
      OTF_TRY(between(at, each));
      const uint64_t took = uint64_t(std::max(each - nothing, 0.0f) * 1e6f);
      launch.clocks[s] = {now, now + took, 0};
      now += took;
      at += 2;
    }
    return {};
  }

  Status capture(const Launch &launch, GraphExec &exec, bool timed = false) {
    OTF_TRY(d.check(d.streamBeginCapture(stream, kCaptureThreadLocal), "cuStreamBeginCapture"));
    Status status;
    for (int i = 0; timed && i < 2 && status.ok(); ++i)
      status = recordEvent();
    if (status.ok())
      status = enqueue(launch, timed);
    Graph graph = nullptr;
    const int ended = d.streamEndCapture(stream, &graph); // also after a failure
    if (status.ok())
      status = d.check(ended, "cuStreamEndCapture");
    if (status.ok())
      status = d.check(d.graphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    if (graph)
      d.graphDestroy(graph);
    return status;
  }

  void forgetOldest() {
    auto oldest = std::min_element(graphs.begin(), graphs.end(),
                                   [](auto &a, auto &b) { return a.used < b.used; });
    if (oldest->exec)
      d.graphExecDestroy(oldest->exec); // idle: run() waited
    graphs.erase(oldest);
  }

  const CudaDevice &device;
  const Gpu &gpu;
  const Driver &d;
  Stream stream = nullptr;
  Pointer dims = 0; // device copy of Launch::dims
  size_t dimBytes = 0;
  void *dimsMirror = nullptr;
  void *staging = nullptr;
  size_t stagingUsed = 0;
  Pointer keys = 0; // of otf_largest, one a block
  uint64_t *keysMirror = nullptr;
  bool running = false; // something was enqueued since the last wait
  uint64_t clock = 0;
  std::vector<Captured> graphs;
  std::vector<Event> events; // of timed runs
  size_t usedEvents = 0;
  std::vector<void *> allocations;
  std::vector<Pointer> parameters;
  std::unique_ptr<HostSteps> host;
};

} // namespace

Result<std::unique_ptr<Queue>> makeCudaQueue(const CudaDevice &device, unsigned threads) {
  auto queue = std::make_unique<CudaQueue>(device);
  OTF_TRY(queue->start(threads));
  return std::unique_ptr<Queue>(std::move(queue));
}

} // namespace otf::runtime::cuda
