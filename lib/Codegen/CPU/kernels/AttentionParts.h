// SPDX-License-Identifier: Apache-2.0
//
// One row's attention to many keys, divided into parts that several threads do at once. What a block
// of keys gives is written down, and whoever does the last part of a head joins all blocks in order.
// So the arithmetic is that of one thread, to the bit, and nobody waits for anybody.
#ifndef OTF_CODEGEN_CPU_ATTENTIONPARTS_H
#define OTF_CODEGEN_CPU_ATTENTIONPARTS_H

#include "../../../../include/otf/KernelABI.h"
#include "AttentionTask.h"

namespace otf::cpu {

struct AttentionParts {
  static constexpr int64_t kCounters = OTF_KERNEL_COUNTERS / 4; ///< problems there is a counter for
  static constexpr int64_t kFewestBlocks = 16; ///< of keys; with fewer, joining costs more than it gives

  uint32_t *done; ///< parts of this problem; 0 before and after
  float *sums;    ///< [blocks][heads][dv sums, largest score, sum of weights]
  int64_t count;  ///< of parts

  /// Adds to what is done. Whether that is all, which every thread's sums are then seen of.
  bool finish(int64_t parts) const {
    if (int64_t(__atomic_fetch_add(done, uint32_t(parts), __ATOMIC_ACQ_REL)) + parts != count)
      return false;
    __atomic_store_n(done, 0u, __ATOMIC_RELAXED);
    return true;
  }

  static const otf_kernel_shared &shared(const void *scratch) {
    return *reinterpret_cast<const otf_kernel_shared *>(static_cast<const char *>(scratch) + OTF_KERNEL_SCRATCH);
  }
  static int64_t blocksOf(int64_t keys) { return (keys + kBlock - 1) / kBlock; }

  /// How many parts each of `problems` has, at most `most`; 0 where it stays whole.
  static int64_t of(const void *scratch, int64_t problems, int64_t heads, int64_t keys, int64_t dv, int64_t most) {
    const otf_kernel_shared &memory = shared(scratch);
    int64_t blocks = blocksOf(keys), bytes;
    if (!memory.memory || blocks < kFewestBlocks || problems > kCounters ||
        __builtin_mul_overflow(problems * heads * (dv + 2) * 4, blocks, &bytes) || bytes > memory.bytes - OTF_KERNEL_COUNTERS)
      return 0;
    return most;
  }

  static AttentionParts at(const void *scratch, int64_t problem, int64_t parts, int64_t heads, int64_t keys, int64_t dv) {
    char *memory = static_cast<char *>(shared(scratch).memory);
    return {reinterpret_cast<uint32_t *>(memory) + problem,
            reinterpret_cast<float *>(memory + OTF_KERNEL_COUNTERS) + problem * blocksOf(keys) * heads * (dv + 2), parts};
  }
};

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_ATTENTIONPARTS_H
