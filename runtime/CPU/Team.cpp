// SPDX-License-Identifier: Apache-2.0
#include "runtime/CPU/Team.h"

#include "runtime/CPU/Cores.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace otf::runtime {

// Pieces become smaller as less is left, so that threads end together whatever their speed: each is a
// part of the rest, and none smaller than a part of the whole, since each costs two atomic operations.
static constexpr uint32_t kPartOfRest = 2, kPartOfWhole = 16;
// About 0.3 ms of `pause` on current cores: longer than a few short jobs, and than the pause between
// two runs. Being woken costs more than most jobs.
static constexpr unsigned kMostSpins = 8000, kLeastSpins = 20;
// Units of a job, so that they fit beside its number.
static constexpr int64_t kMostUnits = int64_t(1) << 30;

static inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

Team::Team(unsigned threads)
    : threads(threads), mostSpins(threads > availableCores() ? kLeastSpins : kMostSpins),
      callerSpins(mostSpins) {}

Result<std::unique_ptr<Team>> Team::create(unsigned threads) {
  if (threads == 0)
    threads = std::min(availableCores(), kMostThreads);
  if (threads > kMostThreads)
    return usageError("threads: ", threads, " is more than ", kMostThreads);
  std::unique_ptr<Team> team(new Team(threads));
  team->workers.reserve(threads - 1); // threads keep pointers to their entry
  for (unsigned i = 1; i < threads; ++i) {
    Worker &worker = team->workers.emplace_back(team.get(), i, pthread_t());
    if (int error = pthread_create(&worker.handle, nullptr, threadMain, &worker)) {
      team->workers.pop_back();
      return deviceError("threads: thread ", i, " of ", threads, " cannot be started (",
                         std::strerror(error), "; give a smaller number)");
    }
  }
  return team;
}

Team::~Team() {
  stop = true;
  wake();
  for (Worker &worker : workers)
    pthread_join(worker.handle, nullptr);
}

void *Team::threadMain(void *argument) {
  auto &[team, index, handle] = *static_cast<Worker *>(argument);
  unsigned spins = team->mostSpins;
  team->take(index, spins, false);
  return nullptr;
}

void Team::run(Jobs &list) {
  jobs.store(&list, std::memory_order_relaxed);
  const uint32_t end = runs + 1;
  advance(0);
  if (finished.load(std::memory_order_acquire) != end)
    take(0, callerSpins, true);
  runs = end;
}

/// A new number for the job, whose units can be taken from here on.
void Team::publish(uint32_t units) {
  const uint64_t number = (claim.load(std::memory_order_relaxed) >> 32) + 1;
  undone.store(units, std::memory_order_relaxed);
  claim.store(number << 32 | units, std::memory_order_release);
  wake();
}

/// Another turn: who waits looks again.
void Team::wake() {
  // Change first, then look for sleepers; who sleeps announces first and looks then. One sees the other.
  turn.fetch_add(1);
  if (sleepers.load() != 0)
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// Called by the thread that has just finished a job, when no other is inside one.
void Team::advance(unsigned thread) {
  Jobs &list = *jobs.load(std::memory_order_relaxed);
  while (list.next(job)) {
    const int64_t grains = (job.extent + job.grain - 1) / job.grain;
    if (grains == 1 || threads == 1) {
      list.work(thread, job, 0, job.extent);
      continue;
    }
    const int64_t together = (grains + kMostUnits - 1) / kMostUnits;
    const auto units = uint32_t((grains + together - 1) / together);
    unit.store(together * job.grain, std::memory_order_relaxed);
    total.store(units, std::memory_order_relaxed);
    least.store(std::max(1u, units / (threads * kPartOfWhole)), std::memory_order_relaxed);
    publish(units);
    return;
  }
  finished.fetch_add(1, std::memory_order_release);
  // The caller may wait for it, or may have seen it already and begun another run: nothing of a job may be touched from here on.
  if (threads > 1)
    wake();
}

/// Takes pieces until the run is over (the caller) or the team is (the others).
void Team::take(unsigned thread, unsigned &spins, bool isCaller) {
  for (;;) {
    const uint32_t seen = turn.load();
    if (isCaller ? finished.load(std::memory_order_acquire) != runs : stop.load(std::memory_order_acquire))
      return;
    uint64_t word = claim.load(std::memory_order_acquire);
    while (const auto left = uint32_t(word)) {
      const uint32_t piece = std::min(left, std::max({left / (threads * kPartOfRest), least.load(std::memory_order_relaxed), 1u}));
      if (!claim.compare_exchange_weak(word, word - piece, std::memory_order_acquire, std::memory_order_acquire))
        continue;
      const int64_t size = unit.load(std::memory_order_relaxed);
      const int64_t begin = int64_t(total.load(std::memory_order_relaxed) - left) * size;
      jobs.load(std::memory_order_relaxed)->work(thread, job, begin, std::min(begin + int64_t(piece) * size, job.extent));
      if (undone.fetch_sub(piece, std::memory_order_acq_rel) == piece)
        advance(thread);
      word = claim.load(std::memory_order_acquire);
    }
    if (sleepWhile(seen, spins))
      spins = std::max(kLeastSpins, spins / 2);
    else
      spins = std::min(mostSpins, 2 * spins);
  }
}

/// Waits until there is another turn. True if that took longer than spinning.
bool Team::sleepWhile(uint32_t seen, unsigned &spins) {
  for (unsigned i = 0; i < spins; ++i) {
    if (turn.load(std::memory_order_acquire) != seen)
      return false;
    relax();
  }
  sleepers.fetch_add(1);
  while (turn.load() == seen)
    syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  sleepers.fetch_sub(1);
  return true;
}

} // namespace otf::runtime
