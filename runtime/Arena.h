// SPDX-License-Identifier: Apache-2.0
//
// Blocks of device memory that a session reuses for every step: one allocation, laid out again
// only when a block outgrows the room it has. Contents survive that only where they are kept.
#ifndef OTF_RUNTIME_ARENA_H
#define OTF_RUNTIME_ARENA_H

#include "runtime/Device.h"

namespace otf::runtime {

class Arena {
public:
  /// With `slack` a block that grows again gets a quarter more than it asks for: scratch that
  /// follows the length of the cache moves a logarithmic number of times, not at every token.
  /// With `keep` blocks that move take their contents along.
  Arena(Queue &queue, bool slack, bool keep = false) : queue(queue), slack(slack), keep(keep) {}
  ~Arena() { queue.release(base); }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Makes room for blocks of these sizes, which are not negative. Their number is the same in
  /// every call. Sets `moved` when the blocks have new addresses.
  Status reserve(std::span<const int64_t> bytes, bool &moved);
  /// Whether reserve() would leave everything as it is.
  bool fits(std::span<const int64_t> bytes) const;
  /// Addresses in the order of the sizes, multiples of 64.
  std::span<void *const> blocks() const { return pointers; }
  uint64_t size() const { return total; }

private:
  Queue &queue;
  const bool slack, keep;
  void *base = nullptr;
  uint64_t total = 0;
  std::vector<uint64_t> rooms;
  std::vector<void *> pointers;
};

} // namespace otf::runtime

#endif // OTF_RUNTIME_ARENA_H
