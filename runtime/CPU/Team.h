// SPDX-License-Identifier: Apache-2.0
//
// Threads that do jobs in order, each job cut into pieces. A job is over when its pieces are done, and
// not when all threads have come by: who is not running (another process has its core) holds up nobody
// unless it is inside a piece, and takes part again where the others are by then. So there is no
// barrier. The thread that finishes a job takes the next one; jobs of one piece it does itself, without
// telling anybody.
//
// A thread without a piece spins for the length of a few short jobs and then sleeps in the kernel, so an
// idle team uses no processor. Where spinning has been in vain it spins less the next time: then there
// are more threads than cores, and the one waited for may need this one.
#ifndef OTF_RUNTIME_CPU_TEAM_H
#define OTF_RUNTIME_CPU_TEAM_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace otf::runtime {

/// `extent` items, above 0, handed out in multiples of `grain` (the last piece ends at the extent).
struct Job {
  size_t id;
  int64_t extent, grain;
};

class Jobs {
public:
  /// The next job, or false when there is none. Called by one thread at a time, after all of the previous job is
  /// done; what that wrote is seen.
  virtual bool next(Job &job) = 0;
  /// Does a part of it, on several threads at once.
  virtual void work(unsigned thread, const Job &job, int64_t begin, int64_t end) = 0;

protected:
  ~Jobs() = default;
};

class Team {
public:
  static constexpr unsigned kMostThreads = 1024;

  /// `threads` counts the caller of run(); 0 means one for each available core. An error where there are more than
  /// kMostThreads, or more than the system gives.
  static Result<std::unique_ptr<Team>> create(unsigned threads);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  unsigned size() const { return threads; }
  /// Returns when next() has said false. The caller works as thread 0; which thread calls next() is open.
  /// One caller at a time.
  void run(Jobs &jobs);
  /// One job: calls function(part) once for each part from 0 to below `parts`, on several threads at once.
  template <typename Function> void run(int64_t parts, const Function &function);

private:
  explicit Team(unsigned threads);
  static void *threadMain(void *argument);
  void take(unsigned thread, unsigned &spins, bool isCaller);
  void advance(unsigned thread);
  void publish(uint32_t units);
  void wake();
  bool sleepWhile(uint32_t seen, unsigned &spins);

  struct Worker {
    Team *team;
    unsigned index;
    pthread_t handle;
  };
  const unsigned threads, mostSpins;
  std::vector<Worker> workers;
  std::atomic<bool> stop{false};

  // The current job. Written by the one thread that advances, before it is published; whoever has taken a
  // piece may read them, since the job cannot end before that piece does. Relaxed atomics, because others look
  // too before they find that there is nothing to take.
  std::atomic<Jobs *> jobs{nullptr};
  Job job{};
  std::atomic<int64_t> unit{1};   // items of one unit: a multiple of the grain
  std::atomic<uint32_t> total{0}, least{1}; // units of the job, and of its smallest piece

  // Each on its own cache line: who finishes a piece must not disturb those that spin.
  // claim: number of the job << 32 | units not yet taken. The number makes a late compare-exchange fail.
  alignas(64) std::atomic<uint64_t> claim{0};
  alignas(64) std::atomic<uint32_t> undone{0}; // units not yet done
  alignas(64) std::atomic<uint32_t> turn{0};   // changes with each job; slept on
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> finished{0}; // runs
  uint32_t runs = 0;                 // the caller's count of them
  unsigned callerSpins;
};

template <typename Function> void Team::run(int64_t parts, const Function &function) {
  struct Parts final : Jobs {
    Parts(int64_t parts, const Function &function) : left(parts), function(function) {}
    bool next(Job &job) override {
      job = {0, left, 1};
      left = 0;
      return job.extent > 0;
    }
    void work(unsigned, const Job &, int64_t begin, int64_t end) override {
      for (int64_t part = begin; part < end; ++part)
        function(part);
    }
    int64_t left;
    const Function &function;
  } list(parts, function);
  run(list);
}

} // namespace otf::runtime

#endif // OTF_RUNTIME_CPU_TEAM_H
