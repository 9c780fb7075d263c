// SPDX-License-Identifier: Apache-2.0
#include "runtime/ThreadPool.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace otf::runtime {

// About 0.3 ms of `pause` on current cores: longer than the imbalance of a step, also where another
// process delays a thread a little, and no longer than the pause between two runs. Being woken
// costs more than most steps. With more threads than cores the one we wait for may need our core.
static constexpr unsigned kSpins = 8000, kSpinsCrowded = 20;

static inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

unsigned ThreadPool::availableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return unsigned(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); // more than 1024 cores
}

ThreadPool::ThreadPool(unsigned threads)
    : threads_(threads), spins_(threads > availableCores() ? kSpinsCrowded : kSpins) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(unsigned threads) {
  if (threads == 0)
    threads = std::min(availableCores(), kMostThreads);
  if (threads > kMostThreads)
    return usageError("threads: ", threads, " is more than ", kMostThreads);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
  pool->workers_.reserve(threads - 1); // threads keep pointers to their entry
  for (unsigned i = 1; i < threads; ++i) {
    Worker &worker = pool->workers_.emplace_back(pool.get(), i, pthread_t());
    if (int error = pthread_create(&worker.handle, nullptr, threadMain, &worker)) {
      pool->workers_.pop_back();
      return deviceError("threads: thread ", i, " of ", threads, " cannot be started (",
                         std::strerror(error), "; give a smaller number)");
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  work_.fetch_add(1);
  wakeAll(work_);
  for (Worker &worker : workers_)
    pthread_join(worker.handle, nullptr);
}

void *ThreadPool::threadMain(void *argument) {
  auto &[pool, index, handle] = *static_cast<Worker *>(argument);
  for (uint32_t seen = 0;; ++seen) {
    pool->wait(pool->work_, seen);
    if (pool->stop_)
      return nullptr;
    pool->function_(pool->context_, index);
    pool->barrier();
  }
}

void ThreadPool::run(void (*function)(void *, unsigned), void *context) {
  function_ = function;
  context_ = context;
  if (threads_ > 1) {
    work_.fetch_add(1);
    wakeAll(work_);
  }
  function(context, 0);
  barrier();
}

void ThreadPool::barrier() {
  if (threads_ == 1)
    return;
  uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed); // nobody arrives before the phase changes
    phase_.store(phase + 1);
    wakeAll(phase_);
    return;
  }
  wait(phase_, phase);
}

void ThreadPool::wait(std::atomic<uint32_t> &word, uint32_t old) {
  for (unsigned i = 0; i < spins_; ++i) {
    if (word.load(std::memory_order_acquire) != old)
      return;
    relax();
  }
  // Announce first, look again, then sleep: wakeAll() changes the word first and looks for
  // sleepers then, so one of the two sees the other.
  sleepers_.fetch_add(1);
  while (word.load() == old)
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
  sleepers_.fetch_sub(1);
}

void ThreadPool::wakeAll(std::atomic<uint32_t> &word) {
  if (sleepers_.load() != 0)
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace otf::runtime
