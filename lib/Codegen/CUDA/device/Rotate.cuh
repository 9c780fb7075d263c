// SPDX-License-Identifier: Apache-2.0
//
// Rows multiplied by an orthogonal matrix (lib/Encoding/Rotation.h), alone and on their way into a record (Record.cuh). A block owns
// a row and has whole segments of it in shared memory: distances below 32 meet by shuffles, the others and the dense factor there.
// The order of operations is canonical, so that a record has the bits of the CPU's.

namespace otf {

/// Bit j: column 32 * word + j changes its sign.
OTF_DEVICE uint32_t rotationSigns(uint64_t seed, uint64_t word) {
  uint64_t z = seed + (word + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return uint32_t((z ^ z >> 31) >> 32);
}

/// Of rows of K columns.
template <int64_t K, int Block, int Factor, uint64_t Seed> struct Rotation {
  static constexpr int64_t kColumns = K;
  static constexpr int kBlock = Block;
  static constexpr int kFactor = Factor;
  static constexpr uint64_t kSeed = Seed;
  static constexpr int kSegment = Block * Factor;
  static_assert(Block > 0 && (Block & (Block - 1)) == 0 && K % kSegment == 0, "segments divide a row");
  static constexpr int kMost = 11264; ///< floats of shared memory
  /// Whole segments and whole chunks of 32 columns.
  static constexpr int kUnit = Block < 32 ? 32 * Factor : kSegment;
  static_assert(kUnit <= kMost, "a segment lies in shared memory");
  /// Columns that are rotated at once.
  static constexpr int kAtOnce = int(smaller<int64_t>(roundUp(K, kUnit), kMost / kUnit * kUnit));
};

/// Rotates `count` values of a row, value(k) from k = first on, into row[0 ... count). R: a Rotation, whose window begins at `first`.
/// `matrix`: rotationFactor32(). By the whole block; others may read `row` when it returns.
template <class R, class V>
OTF_DEVICE void rotateInto(V value, int64_t first, int count, const float *matrix, float *row) {
  // The bound is rounded so that whole warps take part in the shuffles.
  for (int k = threadIdx.x; k < int(roundUp(count, 32)); k += kThreads) {
    float v = k < count ? value(first + k) : 0.0f;
    if (R::kSeed != 0 && rotationSigns(R::kSeed, uint64_t(first + k) / 32) >> (uint32_t(first + k) & 31) & 1)
      v = -v;
#pragma unroll
    for (int distance = 1; distance < 32 && distance < R::kBlock; distance *= 2) {
      const float other = __shfl_xor_sync(kAllLanes, v, distance);
      v = k & distance ? other - v : v + other;
    }
    if (k < count)
      row[k] = v;
  }
#pragma unroll 1
  for (int distance = 32; distance < R::kBlock; distance *= 2) {
    __syncthreads();
    for (int pair = threadIdx.x; pair < count / 2; pair += kThreads) {
      const int k = pair / distance * 2 * distance + pair % distance;
      const float a = row[k], b = row[k + distance];
      row[k] = a + b;
      row[k + distance] = a - b;
    }
  }
  __syncthreads();
  // A thread owns a column of a segment: what the factor mixes.
  for (int column = threadIdx.x; column < count / R::kFactor; column += kThreads) {
    float *at = row + column / R::kBlock * R::kSegment + column % R::kBlock, x[R::kFactor];
#pragma unroll
    for (int i = 0; i < R::kFactor; ++i)
      x[i] = at[i * R::kBlock];
#pragma unroll 1
    for (int i = 0; i < R::kFactor; ++i) {
      const float *f = matrix + i * R::kFactor;
      float sum = __ldg(f) * x[0];
#pragma unroll
      for (int n = 1; n < R::kFactor; ++n)
        sum = fmaf(__ldg(f + n), x[n], sum);
      at[i * R::kBlock] = sum;
    }
  }
  __syncthreads();
}

/// f(m, k, y) for every value of `rows` rotated rows of values x(m, k). A block owns a row.
template <class R, class X, class F>
OTF_DEVICE void rotate(X x, int64_t rows, const float *matrix, F f) {
  __shared__ float row[R::kAtOnce];
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x)
    for (int64_t first = 0; first < R::kColumns; first += R::kAtOnce) {
      const int count = int(smaller<int64_t>(R::kAtOnce, R::kColumns - first));
      __syncthreads(); // the last reader of `row` is done
      rotateInto<R>([&](int64_t k) { return float(x(m, k)); }, first, count, matrix, row);
      for (int k = threadIdx.x; k < count; k += kThreads)
        f(m, first + k, row[k]);
    }
}

} // namespace otf
