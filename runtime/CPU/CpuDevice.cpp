// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a device. Weights are used where the plan is mapped. A launch is one run of the
// thread pool: all threads walk through the steps, take pieces of each from a counter, and meet at
// a barrier between two steps, except where both steps are one piece and stay on the first thread.
#include "include/otf/KernelABI.h"
#include "runtime/CPU/SharedObject.h"
#include "runtime/Device.h"
#include "runtime/ThreadPool.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>

namespace otf::runtime {
namespace {

// Pieces of a step become smaller as less is left of it, so that threads end together whatever
// their speed: each is a part of the rest, and none smaller than a part of the whole, since each
// costs one atomic exchange.
constexpr int64_t kPartOfRest = 2, kPartOfWhole = 16;

bool supports(std::string_view level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  if (level == "avx2")
    return avx2;
  if (level == "avx512vnni")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
#endif
  return false;
}

uint64_t nanoseconds() {
  return uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

class CpuDevice final : public Device {
public:
  /// `helper`: of a GPU, for the steps that it leaves to the host.
  CpuDevice(const PlanFile &plan, const ProgramInfo &program, bool helper = false)
      : plan(plan), steps(program), helper(helper) {}

  Status load(std::string_view wanted) {
    const CodeInfo *code = nullptr;
    std::string levels;
    for (std::string_view level : {"avx512vnni", "avx2"})
      for (const CodeInfo &c : plan.objects)
        if (c.level == level && !code && (wanted.empty() ? supports(level) : level == wanted))
          code = &c;
    for (const CodeInfo &c : plan.objects)
      levels += cat(levels.empty() ? "" : ", ", c.level);
    if (levels.empty())
      levels = "nothing";
    if (!code && !wanted.empty())
      return deviceError("device 'cpu:", wanted, "': the plan has code for ", levels, ", not for '",
                         wanted, "' (device 'cpu' takes what the processor runs best)");
    if (!code)
      return deviceError("device 'cpu': the plan has code for ", levels,
                         ", and this processor runs none of it (use another machine)");
    if (!supports(code->level))
      return deviceError("device 'cpu': this processor has no ", code->level);
    level = code->level;
    OTF_TRY(object.load(code->bytes));
    for (const StepInfo &step : steps.steps) {
      if (step.kind != StepKind::launch || (helper && step.host.empty())) {
        kernels.push_back(nullptr);
        continue;
      }
      kernels.push_back(reinterpret_cast<otf_kernel>(object.find(step.kernel)));
      if (!kernels.back())
        return badInput("kernel '", step.kernel, "': missing in the plan's code for ", level,
                        " (compile the model again)");
    }
    return {};
  }

  std::string description() const override { return cat("cpu (", level, ")"); }
  const ProgramInfo &program() const override { return steps; }
  bool hostVisible() const override { return true; }
  Result<std::unique_ptr<Queue>> createQueue(unsigned threads) const override;

  const PlanFile &plan;
  const ProgramInfo &steps;
  const bool helper;
  std::vector<otf_kernel> kernels; // one a step

private:
  std::string_view level;
  SharedObject object;
};

class CpuQueue final : public Queue {
public:
  CpuQueue(const CpuDevice &device, std::unique_ptr<ThreadPool> pool)
      : device(device), pool(std::move(pool)), next(device.steps.steps.size()),
        pointers(device.steps.buffers.size()) {}

  ~CpuQueue() override {
    release(scratch);
    for (auto [memory, bytes] : mappings)
      munmap(memory, bytes);
  }

  Status start() {
    Result<void *> memory = allocate(uint64_t(pool->size()) * OTF_KERNEL_SCRATCH);
    if (!memory.ok())
      return memory.status();
    scratch = static_cast<std::byte *>(memory.value());
    return {};
  }

  // Fresh pages cost nothing until they are touched: a cache takes the memory that it fills.
  Result<void *> allocate(uint64_t bytes) override {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return deviceError("memory: ", bytes, " bytes cannot be had (", std::strerror(errno),
                         "; give shorter inputs or a smaller context)");
    mappings.push_back({memory, bytes});
    return memory;
  }

  void release(void *memory) override {
    auto it =
        std::find_if(mappings.begin(), mappings.end(), [&](auto &m) { return m.first == memory; });
    if (it == mappings.end())
      return;
    munmap(it->first, it->second);
    mappings.erase(it);
  }

  Status copyIn(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                uint64_t rows) override {
    if (width)
      for (uint64_t row = 0; row < rows; ++row)
        std::memcpy(static_cast<std::byte *>(to) + row * toPitch,
                    static_cast<const std::byte *>(from) + row * fromPitch, width);
    return {};
  }
  Status copyOut(void *to, uint64_t toPitch, const void *from, uint64_t fromPitch, uint64_t width,
                 uint64_t rows) override {
    return copyIn(to, toPitch, from, fromPitch, width, rows);
  }

  Status run(const Launch &l) override {
    launch = &l;
    if (!pointersValid || l.shape != shape) {
      for (size_t i = 0; i < pointers.size(); ++i)
        pointers[i] = address(device.steps.buffers[i]);
      shape = l.shape;
      pointersValid = true;
    }
    for (size_t s = l.first; s < l.last; ++s)
      next[s].store(0, std::memory_order_relaxed);
    running = l.last;
    pool->run([](void *self, unsigned thread) { static_cast<CpuQueue *>(self)->work(thread); },
              this);
    if (!l.clocks.empty() && running != l.last)
      l.clocks[running].end = nanoseconds();
    return {};
  }
  Status synchronize() override { return {}; }

private:
  void *address(const BufferInfo &b) const {
    switch (b.space) {
    case Space::input:
      return launch->inputs[b.index];
    case Space::output:
      return launch->outputs[b.index];
    case Space::slot:
      return launch->slots[b.index];
    case Space::state:
      return launch->states[b.index];
    case Space::weight:
      break;
    }
    return const_cast<std::byte *>(device.plan.weightBytes().data() + b.offset);
  }

  void work(unsigned thread) {
    void *mine = scratch + size_t(thread) * OTF_KERNEL_SCRATCH;
    bool first = true, previousShared = false;
    const bool timed = !launch->clocks.empty();
    for (size_t s = launch->first; s < launch->last; ++s) {
      const StepInfo &step = device.steps.steps[s];
      const int64_t extent = launch->extents[s], grain = step.grain;
      if (extent <= 0)
        continue;
      const int64_t grains = (extent + grain - 1) / grain;
      const bool shared = grains > 1 && pool->size() > 1;
      if (!first && (shared || previousShared))
        pool->barrier();
      first = false;
      previousShared = shared;
      const uint64_t began = timed ? nanoseconds() : 0;
      if (timed && thread == 0) {
        // A step lasts until the next one begins, so waiting for other threads counts too.
        if (running != launch->last)
          launch->clocks[running].end = began;
        launch->clocks[s].begin = began;
        running = s;
      }
      auto note = [&] {
        if (timed)
          std::atomic_ref(launch->clocks[s].busy).fetch_add(nanoseconds() - began, std::memory_order_relaxed);
      };
      void *const *buffers = pointers.data() + step.firstBuffer;
      const int64_t *dims = launch->dims.data() + step.firstDim;
      if (!shared) {
        if (thread == 0) {
          device.kernels[s](buffers, dims, 0, extent, mine);
          note();
        }
        continue;
      }
      const int64_t threads = pool->size(), least = grains / (threads * kPartOfWhole);
      int64_t begin = next[s].load(std::memory_order_relaxed);
      while (begin < extent) {
        const int64_t rest = (extent - begin + grain - 1) / grain;
        const int64_t piece = grain * std::max({rest / (threads * kPartOfRest), least, int64_t(1)});
        const int64_t end = std::min(begin + piece, extent);
        if (!next[s].compare_exchange_weak(begin, end, std::memory_order_relaxed))
          continue;
        device.kernels[s](buffers, dims, begin, end, mine);
        begin = next[s].load(std::memory_order_relaxed);
      }
      note();
    }
  }

  const CpuDevice &device;
  std::unique_ptr<ThreadPool> pool;
  std::byte *scratch = nullptr;
  const Launch *launch = nullptr;
  size_t running = 0; // the step that thread 0 is in, when steps are timed
  uint64_t shape = 0;
  bool pointersValid = false;
  std::vector<std::atomic<int64_t>> next; // first work item not yet taken, one a step
  std::vector<void *> pointers;           // of all steps' buffers
  std::vector<std::pair<void *, uint64_t>> mappings;
};

Result<std::unique_ptr<Queue>> CpuDevice::createQueue(unsigned threads) const {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
  if (!pool.ok())
    return pool.status();
  auto queue = std::make_unique<CpuQueue>(*this, std::move(pool.value()));
  OTF_TRY(queue->start());
  return std::unique_ptr<Queue>(std::move(queue));
}

} // namespace

Result<std::unique_ptr<Device>> makeCpuDevice(const PlanFile &plan, std::string_view argument) {
  const ProgramInfo *program = plan.program("cpu");
  if (!program)
    return deviceError("device 'cpu': the plan has no program for it (compile with --target=cpu)");
  auto device = std::make_unique<CpuDevice>(plan, *program);
  OTF_TRY(device->load(argument));
  return std::unique_ptr<Device>(std::move(device));
}

Result<std::unique_ptr<Device>> makeHostDevice(const PlanFile &plan, const ProgramInfo &program) {
  auto device = std::make_unique<CpuDevice>(plan, program, /*helper=*/true);
  OTF_TRY(device->load({}));
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace otf::runtime
