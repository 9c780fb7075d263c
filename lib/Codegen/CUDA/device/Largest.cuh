// SPDX-License-Identifier: Apache-2.0
//
// The most likely token, found where the logits are: a token then costs the host a kilobyte and not a row of the vocabulary.

/// keys[block] = the largest of the block's values, as (value in an order of unsigned integers) << 32 | ~index, so that the larger key
/// is the larger value or the earlier of equal ones; 0 for nothing but NaN and -inf. Buffers: f32 [count], u64 [blocks]. Dims: none;
/// `count` is a parameter since no plan knows it.
extern "C" __global__ void __launch_bounds__(otf::kThreads) otf_largest(const float *values, otf::uint32_t count, otf::uint64_t *keys) {
  using namespace otf;
  __shared__ uint64_t tops[kWarps];
  releaseDependents();
  waitForInputs();
  uint64_t top = 0;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    const float value = values[i];
    const uint32_t bits = __float_as_uint(value);
    const uint32_t order = bits >> 31 ? ~bits : bits | 0x80000000u;
    if (value > __int_as_float(0xff800000))
      top = larger(top, uint64_t(order) << 32 | (0xffffffffu - i));
  }
#pragma unroll
  for (int o = 16; o; o >>= 1)
    top = larger(top, uint64_t(__shfl_xor_sync(kAllLanes, top, o)));
  if ((threadIdx.x & 31) == 0)
    tops[threadIdx.x >> 5] = top;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; ++w)
      top = larger(top, tops[w]);
    keys[blockIdx.x] = top;
  }
}
