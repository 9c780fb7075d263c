// SPDX-License-Identifier: Apache-2.0
//
// A queue of a GPU is a stream. It runs a list of steps as plain launches the first time and captures it as
// a graph when the same shape comes again, as it does at every token: a launch costs the host some
// microseconds, a graph one launch for all. Sizes that change from token to token live in a table
// in device memory, and the copy that refreshes it is the graph's first node. On GPUs that can (sm_90 and later) a kernel begins while
// its predecessor still runs, and waits for it itself (device/Prelude.cuh). Steps that the plan leaves to the
// host come as launches of their own (HostSteps.h).
#ifndef OTF_RUNTIME_CUDA_CUDAQUEUE_H
#define OTF_RUNTIME_CUDA_CUDAQUEUE_H

#include "runtime/CUDA/CudaDevice.h"

namespace otf::runtime::cuda {

/// `device` is loaded and must outlive the queue. `threads`: of the steps that are the host's.
Result<std::unique_ptr<Queue>> makeCudaQueue(const CudaDevice &device, unsigned threads);

} // namespace otf::runtime::cuda

#endif // OTF_RUNTIME_CUDA_CUDAQUEUE_H
