// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a device. Weights are used where the plan is mapped. A launch is one run of a team of
// threads, which take pieces of one step after another.
#include "include/otf/KernelABI.h"
#include "runtime/CPU/Levels.h"
#include "runtime/CPU/SharedObject.h"
#include "runtime/CPU/Team.h"
#include "runtime/Device.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace otf::runtime {
namespace {

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
    for (std::string_view level : kCpuLevels)
      for (const CodeInfo &c : plan.objects)
        if (c.level == level && !code && (wanted.empty() ? supportsLevel(level) : level == wanted))
          code = &c;
    for (const CodeInfo &c : plan.objects)
      levels += cat(levels.empty() ? "" : ", ", c.level);
    if (levels.empty())
      levels = "nothing";
    if (!code && !wanted.empty())
      return deviceError("device 'cpu:", wanted, "': the plan has code for ", levels, ", not for '",
                         wanted, "' (device 'cpu' takes what the processor runs best; compile the model again for other code)");
    if (!code)
      return deviceError("device 'cpu': the plan has code for ", levels,
                         ", and this processor runs none of it: AVX2, FMA, F16C and BMI2 are the least (use another machine)");
    if (!supportsLevel(code->level))
      return deviceError("device 'cpu:", wanted, "': this processor has no ", code->level, " (device 'cpu' takes what it runs best)");
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

/// From one thread's scratch memory to the next one's.
constexpr size_t kScratchStride = OTF_KERNEL_SCRATCH + 64;
static_assert(sizeof(otf_kernel_shared) <= 64 && kScratchStride % 64 == 0);
/// What the blocks of keys of a row give: 130,000 positions of 32 heads of 128.
constexpr int64_t kSharedBytes = int64_t(64) << 20;

class CpuQueue final : public Queue, private Jobs {
public:
  CpuQueue(const CpuDevice &device, std::unique_ptr<Team> team)
      : device(device), team(std::move(team)), pointers(device.steps.buffers.size()) {}

  ~CpuQueue() override {
    release(scratch);
    for (auto [memory, bytes] : mappings)
      munmap(memory, bytes);
  }

  Status start() {
    Result<void *> memory = allocate(uint64_t(team->size()) * kScratchStride);
    if (!memory.ok())
      return memory.status();
    scratch = static_cast<std::byte *>(memory.value());
    if (team->size() == 1)
      return {};
    Result<void *> common = allocate(kSharedBytes); // of which only what is used becomes memory
    if (!common.ok())
      return common.status();
    for (unsigned thread = 0; thread < team->size(); ++thread)
      new (scratch + thread * kScratchStride + OTF_KERNEL_SCRATCH) otf_kernel_shared{common.value(), kSharedBytes};
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
    at = l.first;
    running = l.last;
    team->run(*this);
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

  /// The step after those that are done. A step lasts until the next one begins.
  bool next(Job &job) override {
    while (at < launch->last && launch->extents[at] <= 0)
      ++at;
    if (!launch->clocks.empty()) {
      const uint64_t now = nanoseconds();
      if (running != launch->last)
        launch->clocks[running].end = now;
      if (at < launch->last)
        launch->clocks[at].begin = now;
      running = at;
    }
    if (at == launch->last)
      return false;
    job = {at, launch->extents[at], device.steps.steps[at].grain};
    ++at;
    return true;
  }

  void work(unsigned thread, const Job &job, int64_t begin, int64_t end) override {
    const StepInfo &step = device.steps.steps[job.id];
    const uint64_t began = launch->clocks.empty() ? 0 : nanoseconds();
    device.kernels[job.id](pointers.data() + step.firstBuffer, launch->dims.data() + step.firstDim, begin, end,
                           scratch + size_t(thread) * kScratchStride);
    if (!launch->clocks.empty())
      std::atomic_ref(launch->clocks[job.id].busy).fetch_add(nanoseconds() - began, std::memory_order_relaxed);
  }

  const CpuDevice &device;
  std::unique_ptr<Team> team;
  std::byte *scratch = nullptr;
  const Launch *launch = nullptr;
  size_t at = 0;      // the first step that nobody has begun
  size_t running = 0; // the step that the team is in, when steps are timed
  uint64_t shape = 0;
  bool pointersValid = false;
  std::vector<void *> pointers; // of all steps' buffers
  std::vector<std::pair<void *, uint64_t>> mappings;
};

Result<std::unique_ptr<Queue>> CpuDevice::createQueue(unsigned threads) const {
  Result<std::unique_ptr<Team>> team = Team::create(threads);
  if (!team.ok())
    return team.status();
  auto queue = std::make_unique<CpuQueue>(*this, std::move(team.value()));
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
