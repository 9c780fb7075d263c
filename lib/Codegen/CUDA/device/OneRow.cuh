// SPDX-License-Identifier: Apache-2.0
//
// What decoding runs: one row of activations. Each block makes the row's record for itself, in shared memory, so that norm, rotation
// and quantization take no launch of their own; while it does, its weights come to the second-level cache, asked for before the
// kernel waits for its predecessor. Several contractions of one record share a launch. The bits are those of Linear.cuh.

namespace otf {

/// The record of one row x(0, k), by every block for itself. As otf::record; bytes stand in `Order`. `record`, `scratch`: shared.
template <class L, class Order, Normal Kind, class X>
OTF_DEVICE void oneRecord(X x, float eps, const float *gamma, const float *beta, const void *index, const float *grid, uint8_t *record,
                          float *scratch) {
  constexpr int kSets = kThreads / 8, kPasses = int(divideUp(L::kChunks, kSets));
  constexpr bool kInRegisters = L::kOutliers == 0 && kPasses <= 4; // then all of the row is on its way at once
  auto row = [&](int64_t k) { return float(x(0, k)); };
  float x4[kInRegisters ? kPasses : 1][4];
  if constexpr (kInRegisters)
#pragma unroll
    for (int p = 0; p < kPasses; ++p)
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int k = 32 * (p * kSets + int(threadIdx.x >> 3)) + 4 * (threadIdx.x & 7) + b;
        x4[p][b] = k < int(L::kColumns) ? row(k) : 0.0f;
      }
  const Moments stats = moments<Kind>(row, L::kColumns, eps, scratch);
  auto value = [&](int64_t k) { return normalised(stats, row(k), k, gamma, beta); };
  const uint32_t *columns = static_cast<const uint32_t *>(index);
  auto column = [&](int64_t i) { return L::kOutliers ? int64_t(__ldg(columns + i)) : i; };
  if constexpr (kInRegisters) {
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      const int c = p * kSets + int(threadIdx.x >> 3);
      float v[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int k = 32 * c + 4 * (threadIdx.x & 7) + b;
        v[b] = k < int(L::kColumns) ? normalised(stats, x4[p][b], k, gamma, beta) : 0.0f;
      }
      recordChunk<L, Order>(c, c < L::kChunks, v, grid, record);
    }
  } else {
    recordChunks<L, Order>(0, L::kChunks, [&](int64_t i) { return value(column(i)); }, grid, record);
  }
  for (int64_t j = threadIdx.x; j < L::kOutliers; j += kThreads)
    reinterpret_cast<float *>(record + L::kRecordOutlierOffset)[j] = value(column(L::kBackground + j));
  __syncthreads();
}

/// A part of the record of one row, which is neither normalised nor rotated, by each block: kRecordPart chunks, and by the first the
/// outliers. For rows so wide that making all of it takes a block longer than a launch does.
constexpr int kRecordPart = kThreads / 8;
template <class L, class Order, class X>
OTF_DEVICE void oneRecordPart(X x, const void *index, const float *grid, uint8_t *record, Blocks blocks) {
  const uint32_t *columns = static_cast<const uint32_t *>(index);
  auto value = [&](int64_t i) { return float(x(0, L::kOutliers ? int64_t(__ldg(columns + i)) : i)); };
  for (int c = int(blocks.index) * kRecordPart; c < L::kChunks; c += int(blocks.count) * kRecordPart)
    recordChunks<L, Order>(c, smaller(c + kRecordPart, L::kChunks), value, grid, record);
  for (int64_t j = threadIdx.x; blocks.index == 0 && j < L::kOutliers; j += kThreads)
    reinterpret_cast<float *>(record + L::kRecordOutlierOffset)[j] = value(L::kBackground + j);
}

/// A record that another launch has made, into shared memory.
OTF_DEVICE void copyRecord(const void *from, int bytes, uint8_t *record) {
#pragma unroll 4
  for (int at = 16 * int(threadIdx.x); at < bytes; at += 16 * kThreads)
    *reinterpret_cast<uint4 *>(record + at) = *reinterpret_cast<const uint4 *>(static_cast<const uint8_t *>(from) + at);
  __syncthreads();
}

/// The same of a row that is rotated after the norm. `scratch`: kWarps + R::kAtOnce floats.
template <class L, class Order, Normal Kind, class R, class X>
OTF_DEVICE void oneRecordRotated(X x, float eps, const float *gamma, const float *beta, const float *matrix, uint8_t *record,
                                 float *scratch) {
  static_assert(R::kColumns == L::kColumns && L::kOutliers == 0, "every column is rotated");
  float *rotated = scratch + kWarps;
  auto row = [&](int64_t k) { return float(x(0, k)); };
  const Moments stats = moments<Kind>(row, L::kColumns, eps, scratch);
  for (int64_t first = 0; first < L::kColumns; first += R::kAtOnce) {
    const int count = int(smaller<int64_t>(R::kAtOnce, L::kColumns - first));
    __syncthreads(); // the last reader of `rotated` is done
    rotateInto<R>([&](int64_t k) { return normalised(stats, row(k), k, gamma, beta); }, first, count, matrix, rotated);
    recordChunks<L, Order>(int(first / 32), int(divideUp(first + count, 32)), [&](int64_t i) { return rotated[i - first]; }, nullptr,
                           record);
  }
  __syncthreads();
}

/// Blocks a multiprocessor, for __launch_bounds__.
constexpr int kOneRowBlocks = 3;

template <class W> using OrderOf = typename W::Codec::Order;

/// Asks for the first tile of each warp, before the wait.
template <class W, int Split> OTF_DEVICE void prefetchTiles(const void *weight, Blocks blocks) {
  const int64_t t = blocks.index * (kWarps / Split) + int(threadIdx.x >> 5) / Split;
  if (blocks.index < 0 || blocks.index >= blocks.count || t >= W::kTiles)
    return;
  const uint8_t *tile = static_cast<const uint8_t *>(weight) + W::kIndexBytes + t * W::kTileBytes;
  for (int64_t at = int64_t(threadIdx.x) % (32 * Split) * 128; at < W::kTileBytes; at += 32 * Split * 128)
    prefetchLine(tile + at);
}

/// Codes and scales of `Count` chunks that a lane takes one after another: c, c + Step, ...
template <class W, int Count, int Step> struct ChunkBatch {
  using C = typename W::Codec;
  uint32_t code[Count][C::kWords];
  float scale[Count], zero[Count];

  __device__ __forceinline__ void load(const uint8_t *tile, int c, int end, int row) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
      if (c + i * Step < end) {
        W::load(tile, c + i * Step, row, code[i]);
        scale[i] = W::scale(tile, c + i * Step, row);
        zero[i] = W::zero(tile, c + i * Step, row);
      }
  }
  /// The term of chunk c, whose codes are number i: as in gemvInteger. `record` is in shared memory.
  __device__ __forceinline__ float term(int i, const uint8_t *record, int c) const {
    constexpr bool kSigns = hasSigns<C>(0);
    const uint4 *at = reinterpret_cast<const uint4 *>(record) + 2 * c;
    const uint4 a = at[0], b = at[1];
    const float xScale = *reinterpret_cast<const float *>(record + W::kScaleOffset + 4 * c);
    uint32_t bytes[8];
    C::unpack(code[i], bytes);
    int sum = 0;
    if (C::kOffset || (C::kZero && !kSigns))
      sum = *reinterpret_cast<const int32_t *>(record + W::kSumOffset + 4 * c);
    uint32_t signs[kSigns ? 8 : 1];
    if constexpr (kSigns)
      C::signs(code[i], signs);
    return chunkTerm<C>(bytes, signs, a, b, xScale, sum, scale[i], zero[i]);
  }
};

/// The terms of four lanes of a row, added in the order of the steps.
OTF_DEVICE float addSteps(float acc, float term, int row) {
#pragma unroll
  for (int step = 0; step < 4; ++step)
    acc += __shfl_sync(kAllLanes, term, row + 8 * step);
  return acc;
}

/// f(0, n, acc) for n < N. A warp has a tile for itself: its terms meet in registers, chunk after chunk.
template <class W, class F> OTF_DEVICE void oneRowWide(const uint8_t *tiles, const uint8_t *record, Blocks blocks, F &f) {
  using C = typename W::Codec;
  // Two blocks of loads a warp would take twice the registers, and as many warps fewer: other warps hide what one waits for.
  constexpr int kBatch = C::kWords <= 4 ? 4 : 2;
  constexpr bool kWhole = W::kChunks % (4 * kBatch) == 0;
  const int lane = threadIdx.x & 31, row = lane & 7, step = lane >> 3;
  for (int64_t t = blocks.index * kWarps + int(threadIdx.x >> 5); t < W::kTiles; t += blocks.count * kWarps) {
    const uint8_t *tile = tiles + t * W::kTileBytes;
    float acc = 0;
#pragma unroll 1
    for (int c = step; c < W::kChunks + step; c += 4 * kBatch) {
      ChunkBatch<W, kBatch, 4> batch;
      batch.load(tile, c, kWhole ? W::kChunks + 4 * kBatch : W::kChunks, row);
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        acc = addSteps(acc, kWhole || c + 4 * i < W::kChunks ? batch.term(i, record, c + 4 * i) : 0.0f, row);
    }
    for (int j = 0; j < int(W::kOutliers); j += 4)
      acc = addSteps(acc,
                     j + step < int(W::kOutliers)
                         ? W::outlier(tile, j + step, row) * reinterpret_cast<const float *>(record + W::kRecordOutlierOffset)[j + step]
                         : 0.0f,
                     row);
    if (lane < 8 && t * 8 + row < W::kRows)
      f(int64_t(0), t * 8 + row, acc);
  }
}

/// The same where `Split` warps divide a tile's columns: terms meet in shared memory, and one lane a result adds them. `terms`:
/// kTermFloats.
template <class W, int Split, class F>
OTF_DEVICE void oneRowSplit(const uint8_t *tiles, const uint8_t *record, float *shared, Blocks blocks, F &f) {
  using C = typename W::Codec;
  constexpr int kAtOnce = kWarps / Split, kTeam = 32 * Split;
  constexpr int kTerms = W::kChunks + int(W::kOutliers), kStep = 4 * Split;
  constexpr int kRoom = kTermFloats / (kAtOnce * 8);
  constexpr int kWindow = termWindow(kRoom, kStep, kTerms), kStride = termStride(kWindow);
  static_assert(kStride <= kRoom, "a window fits");
  constexpr int kBatch = C::kWords <= 4 ? 4 : 2;
  const int lane = threadIdx.x & 31, row = lane & 7, mine = int(threadIdx.x) % kTeam;
  const int first = mine / 32 * 4 + (lane >> 3);
  float *terms = shared + int(threadIdx.x) / kTeam * (8 * kStride);
  for (int64_t base = blocks.index * kAtOnce; base < W::kTiles; base += blocks.count * kAtOnce) {
    const int64_t t = base + int(threadIdx.x) / kTeam;
    const uint8_t *tile = tiles + t * W::kTileBytes;
    float acc = 0;
#pragma unroll 1
    for (int from = 0; from < kTerms; from += kWindow) {
      const int end = t < W::kTiles ? smaller(from + kWindow, kTerms) : 0, chunks = smaller(end, int(W::kChunks));
      float *to = terms + row * kStride - from;
#pragma unroll 1
      for (int c = from + first; c < chunks; c += kBatch * kStep) {
        ChunkBatch<W, kBatch, kStep> batch;
        batch.load(tile, c, chunks, row);
#pragma unroll
        for (int i = 0; i < kBatch; ++i)
          if (c + i * kStep < chunks)
            to[c + i * kStep] = batch.term(i, record, c + i * kStep);
      }
      // Outlier columns, and zeros up to a multiple of four, which is what is read.
      const int padded = from + int(roundUp(end - from, 4));
#pragma unroll 1
      for (int c = from + first; c < padded; c += kStep)
        if (c >= W::kChunks) {
          const int j = c - W::kChunks;
          to[c] = j < int(W::kOutliers)
                      ? W::outlier(tile, j, row) * reinterpret_cast<const float *>(record + W::kRecordOutlierOffset)[j]
                      : 0.0f;
        }
      __syncthreads();
      if (mine < 8)
        for (int i = 0; i < end - from; i += 4) {
          const float4 four = *reinterpret_cast<const float4 *>(terms + mine * kStride + i);
          acc = acc + four.x + four.y + four.z + four.w;
        }
      __syncthreads(); // before the terms are written again
    }
    if (mine < 8 && t * 8 + mine < W::kRows)
      f(int64_t(0), t * 8 + mine, acc);
  }
}

/// y = W x for one record in shared memory, whose bytes stand in the codec's order.
template <class W, int Split, class F>
OTF_DEVICE void oneRow(const void *weight, const uint8_t *record, float *scratch, F f, Blocks blocks) {
  const uint8_t *tiles = static_cast<const uint8_t *>(weight) + W::kIndexBytes;
  if constexpr (Split == 1)
    oneRowWide<W>(tiles, record, blocks, f);
  else
    oneRowSplit<W, Split>(tiles, record, scratch, blocks, f);
}

} // namespace otf
