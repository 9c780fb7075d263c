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

/// A row of a cache by one warp (lib/Encoding/CacheRow.h); a lane reads every 32nd element of x(i), and no other.
template <class X> OTF_DEVICE void writeRow(float *row, X x, int width) {
  for (int i = threadIdx.x & 31; i < width; i += 32)
    row[i] = x(i);
}
template <class X> OTF_DEVICE void writeRow(half_t *row, X x, int width) {
  constexpr float most = 65504.0f;
  for (int i = threadIdx.x & 31; i < width; i += 32) {
    const float value = x(i);
    row[i] = fromFloat<half_t>(value > most ? most : value < -most ? -most : value);
  }
}
template <class X> OTF_DEVICE void writeRow(int8_t *row, X x, int width) {
  uint32_t largest = 0; // as bits, which order infinity and NaN last
  for (int i = threadIdx.x & 31; i < width; i += 32)
    largest = larger(largest, __float_as_uint(x(i)) & 0x7fffffffu);
  largest = warpLargest(largest);
  float scale = __uint_as_float(largest) / 127.0f;
  scale = scale < 1.17549435e-38f ? 0.0f : __uint_as_float((__float_as_uint(scale) + 0xffu) & ~0xffu);
  if (largest >= 0x7f800000u)
    scale = __uint_as_float(0x7fc00000u);
  for (int i = threadIdx.x & 31; i < width; i += 32)
    row[i] = scale > 0 ? int8_t(__float2int_rn(x(i) / scale)) : int8_t(0);
  const int lane = threadIdx.x & 31;
  if (lane < 4)
    row[width + lane] = int8_t(__float_as_uint(scale) >> (8 * lane));
}

/// cache[o][first(o) + s] = the row x(o, s, i), i < width, for o < outer, s < added. A warp has a row, and lane l of it elements l,
/// l + 32, ...: as in otf::rope, so that rows of one launch may follow one another. T: float, half_t or int8_t.
template <class T, class X, class First>
OTF_DEVICE void append(T *cache, X x, int64_t outer, int64_t added, int width, int64_t past,
                       int64_t capacity, First first, Blocks blocks = allBlocks()) {
  waitForInputs();
  const int stride = rowElements<T>(width);
  for (int64_t at = blocks.index * kWarps + (threadIdx.x >> 5); at < outer * added; at += blocks.count * kWarps) {
    const int64_t s = at % added, o = at / added;
    const int64_t place = first(o, past) + s;
    // The runtime refuses a step that does not fit; never write past it.
    if (place >= 0 && place < past + added && place < capacity)
      writeRow(cache + (o * capacity + place) * stride, [=](int i) { return float(x(o, s, i)); }, width);
    // The place at the end that is s's own holds zeros, where no position of the step is written there.
    const int64_t local = place - 2 * s - past; // first - past - s
    if ((local > 0 || local <= -added) && past + s < capacity)
      for (int i = threadIdx.x & 31; i < stride; i += 32)
        cache[(o * capacity + past + s) * stride + i] = T{};
  }
}

} // namespace otf
