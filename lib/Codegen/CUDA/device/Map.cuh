// SPDX-License-Identifier: Apache-2.0
//
// Everything that is a function from an output index to a scalar (tensor.generate): one thread an
// element. The body is printed by the compiler from arith, math and scf.

namespace otf {

/// f(i) for i < total.
template <class F> OTF_DEVICE void map(int64_t total, F f) {
  waitForInputs();
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += int64_t(gridDim.x) * kThreads)
    f(i);
}

} // namespace otf
