/* SPDX-License-Identifier: Apache-2.0
 *
 * How the runtime calls a kernel of a plan. There is one signature for every kernel, so the
 * runtime knows no operator: a step of a plan names a kernel, pointers, sizes and an extent.
 */
#ifndef OTF_KERNELABI_H
#define OTF_KERNELABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CPU. `buffers` and `dims` are those of the step, in order. The call does work items
 * [begin, end) of the step's extent; begin is a multiple of the step's grain, and end too unless
 * it is the extent. Calls for disjoint ranges run at once on several threads. `scratch` is private
 * to the calling thread, 64-byte aligned, OTF_KERNEL_SCRATCH bytes; behind these lies a struct
 * otf_kernel_shared. A kernel allocates nothing, reads and writes only its buffers and these, and
 * cannot fail. */
typedef void (*otf_kernel)(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                           void *scratch);

#define OTF_KERNEL_SCRATCH (256 * 1024 - 64)

/* Memory that all calls of a step share, for what threads leave one another. Its first
 * OTF_KERNEL_COUNTERS bytes are 0 when a step begins, and a kernel leaves them so; the rest holds
 * anything. `memory` is null where one thread runs alone or there is none: a kernel can do without. */
struct otf_kernel_shared {
  void *memory;
  int64_t bytes;
};

#define OTF_KERNEL_COUNTERS (16 * 1024)

/* CUDA. A kernel takes one struct by value:
 *     struct { void *buffers[N]; const long long *dims; };
 * `dims` is in device memory, so that a captured graph stays valid while sizes such as the length
 * of the cache change; the grid is that of the largest sizes, and kernels check against dims. */

#ifdef __cplusplus
}
#endif

#endif /* OTF_KERNELABI_H */
