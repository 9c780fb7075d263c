// SPDX-License-Identifier: Apache-2.0
//
// Threads that walk through a program together. All of them run the same function and meet at
// barriers, so a step of a few microseconds costs one barrier and no hand-over of work. A waiting
// thread spins for the length of a short step and then sleeps in the kernel, so an idle session
// uses no processor.
#ifndef OTF_RUNTIME_THREADPOOL_H
#define OTF_RUNTIME_THREADPOOL_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace otf::runtime {

class ThreadPool {
public:
  static constexpr unsigned kMostThreads = 1024;
  /// Cores this process may use.
  static unsigned availableCores();

  /// `threads` counts the caller of run(); 0 means one for each available core.
  static Result<std::unique_ptr<ThreadPool>> create(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned size() const { return threads_; }

  /// Calls function(context, i) once on each thread i; the caller is thread 0. Returns when all
  /// have returned. One caller at a time.
  void run(void (*function)(void *context, unsigned thread), void *context);

  /// Inside run(): returns when every thread has come here. Writes before it are seen after it.
  void barrier();

private:
  explicit ThreadPool(unsigned threads);
  static void *threadMain(void *argument);
  void wait(std::atomic<uint32_t> &word, uint32_t old);
  void wakeAll(std::atomic<uint32_t> &word);

  struct Worker {
    ThreadPool *pool;
    unsigned index;
    pthread_t handle;
  };
  const unsigned threads_;
  const unsigned spins_;
  std::vector<Worker> workers_;
  void (*function_)(void *, unsigned) = nullptr;
  void *context_ = nullptr;
  bool stop_ = false;
  // Each on its own cache line: arrivals must not disturb the threads that spin.
  alignas(64) std::atomic<uint32_t> work_{0};
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  alignas(64) std::atomic<uint32_t> sleepers_{0};
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_THREADPOOL_H
