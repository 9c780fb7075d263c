// SPDX-License-Identifier: Apache-2.0
//
// The record of the one row of a decoding step, which each block of a linear makes for itself in shared memory, so that norm, rotation
// and quantization take no launch of their own. A thread has the columns at Threads * turn + threadIdx.x: all of them, and their
// gammas, are on their way at once, and a warp has whole chunks. The bits are those of Record.cuh.

namespace otf {

/// Values of a row that a thread holds in registers; of a longer row it reads them twice.
constexpr int kMostHeld = 16;

template <bool Holds, int Turns> struct HeldRow {
  float x[Holds ? Turns : 1], gamma[Holds ? Turns : 1];

  /// Asks for all of a row(k) of `columns`, and for its gammas, ones where there are none.
  template <int Threads, class V> __device__ __forceinline__ void load(V row, const float *from, int columns) {
#pragma unroll
    for (int turn = 0; turn < Turns; ++turn) {
      const int k = Threads * turn + int(threadIdx.x);
      x[turn] = k < columns ? row(k) : 0.0f;
      gamma[turn] = from && k < columns ? from[k] : 1.0f;
    }
  }
};

/// The record of one row x(0, k), by every block for itself; bytes stand in `Order`. `record`, `scratch` (kWarps floats): shared.
/// `index`: as of otf::record.
template <class L, class Order, Normal Kind, int Threads, class X>
OTF_DEVICE void oneRecord(X x, float eps, const float *gamma, const float *beta, const void *index, const float *grid, uint8_t *record,
                          float *scratch) {
  constexpr int kTurns = int(divideUp(L::kPadded, Threads));
  constexpr bool kHolds = L::kOutliers == 0 && kTurns <= kMostHeld;
  waitForInputs();
  auto row = [&](int64_t k) { return float(x(0, k)); };
  HeldRow<kHolds, kTurns> held;
  if constexpr (kHolds)
    held.template load<Threads>(row, gamma, int(L::kColumns));
  const Moments stats = moments<Kind>(row, L::kColumns, eps, scratch);
  const uint32_t *columns = static_cast<const uint32_t *>(index);
  auto column = [&](int64_t i) { return L::kOutliers ? int64_t(__ldg(columns + i)) : i; };
  auto value = [&](int turn, int i) {
    if (i >= int(L::kBackground))
      return 0.0f;
    const int64_t k = column(i);
    if constexpr (kHolds)
      return normalised(stats, held.x[turn], k, held.gamma[turn], beta);
    else
      return normalised(stats, row(k), k, gamma, beta);
  };
  // Turns that all warps have together, then what is left.
  constexpr int kWhole = kHolds ? int(L::kPadded) / Threads : 0;
  if constexpr (kWhole > 0) {
    float v[kWhole];
#pragma unroll
    for (int turn = 0; turn < kWhole; ++turn)
      v[turn] = value(turn, Threads * turn + int(threadIdx.x));
    recordLanes<L, Order, Threads / 32>(int(threadIdx.x >> 5), v, grid, record);
  }
#pragma unroll(kHolds ? 1 : 2)
  for (int turn = kWhole; turn < kTurns; ++turn) {
    const int i = Threads * turn + int(threadIdx.x);
    if (i >= int(L::kPadded))
      break;
    const float v[1] = {value(kHolds ? kTurns - 1 : turn, i)};
    recordLanes<L, Order>(i >> 5, v, grid, record);
  }
  for (int64_t j = threadIdx.x; j < L::kOutliers; j += Threads) {
    const int64_t k = column(L::kBackground + j);
    reinterpret_cast<float *>(record + L::kRecordOutlierOffset)[j] = normalised(stats, row(k), k, gamma, beta);
  }
  __syncthreads();
}

/// The same of a row that is rotated after the norm. `scratch`: kWarps + R::kAtOnce floats.
template <class L, class Order, Normal Kind, class R, int Threads, class X>
OTF_DEVICE void oneRecordRotated(X x, float eps, const float *gamma, const float *beta, const float *matrix, uint8_t *record,
                                 float *scratch) {
  static_assert(R::kColumns == L::kColumns && L::kOutliers == 0, "every column is rotated");
  constexpr int kTurns = int(divideUp(R::kAtOnce, Threads));
  constexpr bool kHolds = R::kAtOnce >= R::kColumns && kTurns <= kMostHeld;
  float *values = scratch + kWarps;
  const int warp = int(threadIdx.x & ~31u);
  auto row = [&](int64_t k) { return float(x(0, k)); };
  if constexpr (kHolds) {
    const TurnSigns<R> signs(warp, Threads);
    waitForInputs();
    HeldRow<true, kTurns> held;
    held.template load<Threads>(row, gamma, int(L::kColumns));
    const Moments stats = moments<Kind>(row, L::kColumns, eps, scratch);
    rotated<R, Threads, kTurns>(
        [&](int turn, int k) {
          return signs.apply(turn, k < int(L::kColumns) ? normalised(stats, held.x[turn], k, held.gamma[turn], beta) : 0.0f);
        },
        int(L::kColumns), matrix, values, RotatedRecord<L, Order>{record, 0});
  } else {
    waitForInputs();
    const Moments stats = moments<Kind>(row, L::kColumns, eps, scratch);
#pragma unroll 1
    for (int64_t first = 0; first < L::kColumns; first += R::kAtOnce) {
      const int count = int(smaller<int64_t>(R::kAtOnce, L::kColumns - first));
      const TurnSigns<R> signs(first + warp, Threads);
      __syncthreads(); // the last reader of `values` is done
      rotated<R, Threads, kTurns>(
          [&](int turn, int k) {
            return signs.apply(turn, k < count ? normalised(stats, row(first + k), first + k, gamma, beta) : 0.0f);
          },
          count, matrix, values, RotatedRecord<L, Order>{record, first});
    }
  }
  __syncthreads();
}

// Of a row that is so wide that making all of its record takes a block longer than a launch does, each block makes a part, in device
// memory; it is not normalised.

/// Chunks of a part, by kThreads threads.
constexpr int kRecordPart = kThreads / 32 * 4;
template <class L, class Order, class X>
OTF_DEVICE void oneRecordPart(X x, const void *index, const float *grid, uint8_t *record, Blocks blocks) {
  const uint32_t *columns = static_cast<const uint32_t *>(index);
  auto value = [&](int64_t i) { return float(x(0, L::kOutliers ? int64_t(__ldg(columns + i)) : i)); };
  for (int part = int(blocks.index); part * kRecordPart < L::kChunks; part += int(blocks.count))
#pragma unroll
    for (int turn = 0; turn < kRecordPart * 32 / kThreads; ++turn) {
      const int i = part * kRecordPart * 32 + turn * kThreads + int(threadIdx.x);
      const float v[1] = {i < int(L::kBackground) ? value(i) : 0.0f};
      if (i < int(L::kPadded))
        recordLanes<L, Order>(i >> 5, v, grid, record);
    }
  for (int64_t j = threadIdx.x; blocks.index == 0 && j < L::kOutliers; j += kThreads)
    reinterpret_cast<float *>(record + L::kRecordOutlierOffset)[j] = value(L::kBackground + j);
}

/// The same of what is rotated: a part is as wide as the blocks of the rotation, and the first step of all of a segment is done for each part.
template <class L, class Order, class R, int Threads, class X>
OTF_DEVICE void oneRecordPartRotated(X x, const float *matrix, uint8_t *record, Blocks blocks) {
  static_assert(R::kColumns == L::kColumns && R::kBlock % 32 == 0, "parts are whole chunks");
  constexpr int kTurns = int(divideUp(R::kSegment, Threads));
  __shared__ float values[R::kSegment];
  for (int part = int(blocks.index); part < int(R::kColumns / R::kBlock); part += int(blocks.count)) {
    const int64_t first = part / R::kFactor * R::kSegment;
    const TurnSigns<R> signs(first + int(threadIdx.x & ~31u), Threads);
    float held[kTurns <= kMostHeld ? kTurns : 1];
    if constexpr (kTurns <= kMostHeld)
#pragma unroll
      for (int turn = 0; turn < kTurns; ++turn) {
        const int k = Threads * turn + int(threadIdx.x);
        held[turn] = k < R::kSegment ? float(x(0, first + k)) : 0.0f;
      }
    __syncthreads(); // the last reader of `values` is done
    rotated<R, Threads, kTurns>(
        [&](int turn, int k) {
          if constexpr (kTurns <= kMostHeld)
            return signs.apply(turn, held[turn]);
          else
            return signs.apply(turn, k < R::kSegment ? float(x(0, first + k)) : 0.0f);
        },
        R::kSegment, matrix, values, RotatedRecord<L, Order>{record, first}, part % R::kFactor);
  }
}

/// A record that another launch has made, into shared memory.
template <int Threads> OTF_DEVICE void copyRecord(const void *from, int bytes, uint8_t *record) {
#pragma unroll 4
  for (int at = 16 * int(threadIdx.x); at < bytes; at += 16 * Threads)
    *reinterpret_cast<uint4 *>(record + at) = *reinterpret_cast<const uint4 *>(static_cast<const uint8_t *>(from) + at);
  __syncthreads();
}

} // namespace otf
