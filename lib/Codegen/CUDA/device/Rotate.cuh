// SPDX-License-Identifier: Apache-2.0
//
// Rows multiplied by an orthogonal matrix (lib/Encoding/Rotation.h), alone and on their way into a record (Record.cuh). A block owns
// a row, or whole segments of it. Values at distances below 32 meet by shuffles, the others in registers, up to eight of them, between
// which they go through shared memory. The order of operations is canonical, so that a record has the bits of the CPU's.

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

/// The signs of 32 columns that start at a multiple of 32, for each of the 32 columns that lanes have in turn: lane j works out
/// those of turn j, once. `first`: the column of the warp's first turn; one turn is `step` columns after the other.
template <class R> struct TurnSigns {
  uint32_t mine;
  int64_t first;
  int step;

  __device__ __forceinline__ TurnSigns(int64_t first, int step)
      : mine(R::kSeed ? rotationSigns(R::kSeed, uint64_t(first + int64_t(threadIdx.x & 31) * step) / 32) : 0), first(first), step(step) {}
  __device__ __forceinline__ float apply(int turn, float v) const {
    if constexpr (R::kSeed == 0)
      return v;
    const uint32_t word = turn < 32 ? __shfl_sync(kAllLanes, mine, turn) : rotationSigns(R::kSeed, uint64_t(first + int64_t(turn) * step) / 32);
    return __uint_as_float(__float_as_uint(v) ^ word >> (threadIdx.x & 31) << 31);
  }
};

/// a + b in the lane of a, and a - b in that of b.
template <class R> OTF_DEVICE float rotateLanes(float v) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int distance = 1; distance < 32 && distance < R::kBlock; distance *= 2)
    v = fmaf(v, lane & distance ? -1.0f : 1.0f, __shfl_xor_sync(kAllLanes, v, distance));
  return v;
}

/// Distances from `Distance` on, in `row`. The last values go to f, times `scale`, and not back.
template <class R, int Threads, int Distance, class F> OTF_DEVICE void rotateFar(int count, float scale, float *row, F f) {
  if constexpr (Distance < R::kBlock) {
    constexpr int kLeft = R::kBlock / Distance, kRadix = kLeft == 16 ? 4 : smaller(kLeft, 8);
    constexpr bool kIsLast = kLeft == kRadix && R::kFactor == 1;
    __syncthreads();
#pragma unroll 1
    for (int set = threadIdx.x; set < count / kRadix; set += Threads) {
      const int at = set / Distance * (Distance * kRadix) + set % Distance;
      float x[kRadix];
#pragma unroll
      for (int i = 0; i < kRadix; ++i)
        x[i] = row[at + i * Distance];
#pragma unroll
      for (int distance = 1; distance < kRadix; distance *= 2)
#pragma unroll
        for (int i = 0; i < kRadix; ++i)
          if (!(i & distance)) {
            const float a = x[i], b = x[i + distance];
            x[i] = a + b;
            x[i + distance] = a - b;
          }
#pragma unroll
      for (int i = 0; i < kRadix; ++i)
        if (kIsLast)
          x[i] *= scale;
        else
          row[at + i * Distance] = x[i];
      if constexpr (kIsLast)
        f.template take<Distance>(at, x);
    }
    rotateFar<R, Threads, Distance * kRadix>(count, scale, row, f);
  }
}

/// Which of the rotated values are wanted: those of one row of the factor, or all.
constexpr int kAllParts = -1;

/// `count` rotated values of a row to f, up to a multiple of 32 with zeros behind: f.take<Distance>(k, y) has values k, k + Distance, ...,
/// and is called by whole warps, a lane for each k of 32. value(turn, k): those with signs, 0 from `count` on, where k is Threads * turn +
/// threadIdx.x. `count` is whole segments. `matrix`: rotationFactor32(). `row`: count floats of shared memory, of which the last
/// reader is done. `part`: of one segment, only the values that row `part` of the factor gives. By the whole block.
template <class R, int Threads, int Turns, class V, class F>
OTF_DEVICE void rotated(V value, int count, const float *matrix, float *row, F f, int part = kAllParts) {
  constexpr bool kIsNear = R::kBlock <= 32 && R::kFactor == 1;
  const float scale = __ldg(matrix); // of a factor of order 1
  const int padded = int(roundUp(count, 32));
  // All turns, there or not: without branches their shuffles go beside each other.
#pragma unroll(Turns <= 16 ? Turns : 1)
  for (int turn = 0; turn < Turns; ++turn) {
    const int k = Threads * turn + int(threadIdx.x);
    const float v = rotateLanes<R>(value(turn, k));
    if constexpr (kIsNear) {
      const float y[1] = {scale * v};
      if (k < padded)
        f.template take<32>(k, y);
    } else if (k < count) {
      row[k] = v;
    }
  }
  rotateFar<R, Threads, 32>(count, scale, row, f);
  if constexpr (R::kFactor > 1) {
    __syncthreads();
    const int first = part == kAllParts ? 0 : part * R::kBlock, end = part == kAllParts ? padded : first + R::kBlock;
#pragma unroll 1
    for (int k = first + int(threadIdx.x); k < end; k += Threads) {
      float sum = 0;
      if (k < count) {
        const float *x = row + k / R::kSegment * R::kSegment + k % R::kBlock;
        const float *factor = matrix + k % R::kSegment / R::kBlock * R::kFactor;
        sum = __ldg(factor) * x[0];
#pragma unroll
        for (int n = 1; n < R::kFactor; ++n)
          sum = fmaf(__ldg(factor + n), x[n * R::kBlock], sum);
      }
      const float y[1] = {sum};
      f.template take<32>(k, y);
    }
  }
}

/// The same of a whole row x(k), a window after another, whose first column f.first is.
template <class R, class X, class F> OTF_DEVICE void rotatedRow(X x, const float *matrix, float *row, F f) {
#pragma unroll 1
  for (int64_t first = 0; first < R::kColumns; first += R::kAtOnce) {
    const int count = int(smaller<int64_t>(R::kAtOnce, R::kColumns - first));
    const TurnSigns<R> signs(first + int(threadIdx.x & ~31u), kThreads);
    f.first = first;
    __syncthreads(); // the last reader of `row` is done
    rotated<R, kThreads, int(divideUp(R::kAtOnce, kThreads))>(
        [&](int turn, int k) { return signs.apply(turn, k < count ? x(first + k) : 0.0f); }, count, matrix, row, f);
  }
  __syncthreads();
}

/// Rotated values of row m to f(m, k, y).
template <class F> struct RotatedValues {
  F &f;
  int64_t m, columns, first;
  template <int Distance, int Count> __device__ __forceinline__ void take(int k, const float (&v)[Count]) const {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      if (first + k + i * Distance < columns)
        f(m, first + k + i * Distance, v[i]);
  }
};

/// f(m, k, y) for every value of `rows` rotated rows of values x(m, k). A block owns a row.
template <class R, class X, class F>
OTF_DEVICE void rotate(X x, int64_t rows, const float *matrix, F f) {
  __shared__ float row[R::kAtOnce];
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x)
    rotatedRow<R>([&](int64_t k) { return float(x(m, k)); }, matrix, row, RotatedValues<F>{f, m, R::kColumns, 0});
}

} // namespace otf
