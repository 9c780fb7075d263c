// SPDX-License-Identifier: Apache-2.0
//
// A step's keys or values go to the end of a cache. The cache is [outer, capacity, inner] with
// `past` rows filled; what is there stays where it is.

namespace otf {

/// Where the new positions of row o begin: at the end, or where the caller says for o's batch entry.
struct AtEnd {
  __device__ __forceinline__ int64_t operator()(int64_t, int64_t past) const { return past; }
};
struct AtPlaces {
  const int64_t *places; // one a batch entry
  int64_t heads;
  __device__ __forceinline__ int64_t operator()(int64_t o, int64_t) const { return places[o / heads]; }
};

/// cache[o][first(o) + s][i] = x(o, s, i) for o < outer, s < added, i < inner. T: f32 or f16 cache.
template <class T, class X, class First>
OTF_DEVICE void append(T *cache, X x, int64_t outer, int64_t added, int64_t inner, int64_t past,
                       int64_t capacity, First first, Blocks blocks = allBlocks()) {
  waitForInputs();
  const int64_t total = outer * added * inner;
  for (int64_t at = blocks.index * kThreads + threadIdx.x; at < total; at += blocks.count * kThreads) {
    const int64_t i = at % inner, s = at / inner % added, o = at / inner / added;
    const int64_t place = first(o, past) + s;
    // The runtime refuses a step that does not fit; never write past it.
    if (place >= 0 && place < past + added && place < capacity)
      cache[(o * capacity + place) * inner + i] = fromFloat<T>(x(o, s, i));
    // The place at the end that is s's own holds zeros, where no position of the step is written there.
    const int64_t local = place - 2 * s - past; // first - past - s
    if ((local > 0 || local <= -added) && past + s < capacity)
      cache[(o * capacity + past + s) * inner + i] = fromFloat<T>(0.0f);
  }
}

} // namespace otf
