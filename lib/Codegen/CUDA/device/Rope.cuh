// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding: the first `Rotary` values of a head are rotated in pairs, the rest
// pass. y[i] = x[i] * cos[i] + rot(x)[i] * sin[i].

namespace otf {

/// Which value is paired with i, and its sign in rot(x). Halves: (i, i + Rotary/2), the form of
/// Llama and its kin. Interleaved: (2j, 2j + 1), the form of GPT-J.
template <int Rotary, bool Interleaved> struct Pairing {
  static_assert(Rotary % 2 == 0 && Rotary > 0, "rotations act on pairs");
  static __device__ __forceinline__ int partner(int i) {
    if (Interleaved)
      return i ^ 1;
    return i < Rotary / 2 ? i + Rotary / 2 : i - Rotary / 2;
  }
  static __device__ __forceinline__ float sign(int i) {
    const bool first = Interleaved ? (i & 1) == 0 : i < Rotary / 2;
    return first ? -1.0f : 1.0f;
  }
};

/// f(r, i, y) for the D values of each of `rows` heads. x(r, i), and cosine(r, i), sine(r, i) for
/// i < Rotary, are functors: the generator knows how a row maps to a position. A warp has a row, as in otf::append.
template <int D, int Rotary, bool Interleaved, class X, class Cos, class Sin, class F>
OTF_DEVICE void rope(int64_t rows, X x, Cos cosine, Sin sine, F f, Blocks blocks = allBlocks()) {
  static_assert(Rotary <= D, "no more is rotated than there is");
  using P = Pairing<Rotary, Interleaved>;
  waitForInputs();
  for (int64_t r = blocks.index * kWarps + (threadIdx.x >> 5); r < rows; r += blocks.count * kWarps)
    for (int i = threadIdx.x & 31; i < D; i += 32) {
      float y = x(r, i);
      if (i < Rotary)
        y = fmaf(y, cosine(r, i), P::sign(i) * (float(x(r, P::partner(i))) * sine(r, i)));
      f(r, i, y);
    }
}

} // namespace otf
