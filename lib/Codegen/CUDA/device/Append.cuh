// SPDX-License-Identifier: Apache-2.0
//
// A step's keys or values go to the end of a cache. The cache is [outer, capacity, inner] with
// `past` rows filled; what is there stays where it is.

namespace otf {

/// cache[o][past + s][i] = x(o, s, i) for o < outer, s < added, i < inner. T: f32 or f16 cache.
template <class T, class X>
OTF_DEVICE void append(T *cache, X x, int64_t outer, int64_t added, int64_t inner, int64_t past,
                       int64_t capacity) {
  waitForInputs();
  const int64_t total = outer * added * inner;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < total;
       at += int64_t(gridDim.x) * kThreads) {
    const int64_t i = at % inner, s = at / inner % added, o = at / inner / added;
    if (past + s < capacity) // the runtime refuses a step that does not fit; never write past it
      cache[(o * capacity + past + s) * inner + i] = fromFloat<T>(x(o, s, i));
  }
  releaseDependents();
}

} // namespace otf
