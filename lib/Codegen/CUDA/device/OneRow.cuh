// SPDX-License-Identifier: Apache-2.0
//
// What decoding runs: one row of activations times weights, from a record in shared memory (RowRecord.cuh), while whose making
// the weights come to the second-level cache: they are asked for before the kernel waits for its predecessor. Several contractions
// of one record share a launch. Blocks have `Threads` threads: as many as a multiprocessor takes where the launch fills the machine
// with that, since each block makes the record for itself. The bits are those of Linear.cuh.

namespace otf {

/// Threads a multiprocessor, for __launch_bounds__: 85 registers each.
constexpr int kOneRowThreads = 768;
/// Floats of shared memory in which warps that share tiles leave their terms.
template <int Threads> constexpr int kRowTermFloats = Threads > kThreads ? 8192 : kTermFloats;

template <class W> using OrderOf = typename W::Codec::Order;

/// Asks for the first tile of each warp, before the wait.
template <class W, int Split, int Threads> OTF_DEVICE void prefetchTiles(const void *weight, Blocks blocks) {
  const int64_t t = blocks.index * (Threads / 32 / Split) + int(threadIdx.x >> 5) / Split;
  if (blocks.index < 0 || blocks.index >= blocks.count || t >= W::kTiles)
    return;
  const uint8_t *tile = static_cast<const uint8_t *>(weight) + W::kIndexBytes + t * W::kTileBytes;
  for (int64_t at = int64_t(threadIdx.x) % (32 * Split) * 128; at < W::kTileBytes; at += 32 * Split * 128)
    prefetchLine(tile + at);
}

/// The chunks of one row of a tile that a lane has, turn after turn: c, c + Step, ... Addresses are worked out once where turns are
/// equally far from one another.
template <class W, int Step> struct LaneTurns {
  using C = typename W::Codec;
  static constexpr bool kSigns = hasSigns<C>(0), kOneScale = W::kPerGroup >= W::kChunks;
  static constexpr bool kIsEven =
      kOneScale || W::kPerGroup == 1 || (Step % W::kPerGroup == 0 && W::kChunks % W::kPerGroup == 0);
  static constexpr int kAdvance = Step * W::kChunkBytes + (kOneScale ? 0 : Step * W::kMetaBytes / W::kPerGroup);
  /// Turns whose loads are on their way together. More would take as many warps fewer: other warps hide what one waits for.
  static constexpr int kBatch = C::kWords <= 4 ? 4 : 2;

  const uint8_t *tile, *codes, *scales;
  const uint8_t *record; ///< in shared memory
  int c, row;
  typename C::Tables tables;
  float oneScale = 0, oneZero = 0;

  __device__ __forceinline__ LaneTurns(const uint8_t *tile, const uint8_t *record, int first, int row)
      : tile(tile), codes(tile + W::chunkOffset(first) + 4 * row), scales(tile + W::scaleOffset(first)), record(record), c(first), row(row) {
    if (kOneScale) {
      oneScale = W::scale(tile, 0, row);
      oneZero = W::zero(tile, 0, row);
    }
  }

  /// g(c, isThere, term) for the next `Count` turns, all of which are there or, if `IsPartial`, some.
  template <int Count, bool IsPartial, class G> __device__ __forceinline__ void take(G g) {
    uint32_t code[Count][C::kWords];
    float scale[Count], zero[Count];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      scale[i] = oneScale;
      zero[i] = oneZero;
      if (IsPartial && c + i * Step >= W::kChunks)
        continue;
      if (kIsEven) {
#pragma unroll
        for (int w = 0; w < C::kWords; ++w)
          code[i][w] = __ldcs(reinterpret_cast<const uint32_t *>(codes + i * kAdvance) + 8 * w);
        if (!kOneScale) {
          scale[i] = W::parameter(scales + i * kAdvance, row);
          zero[i] = C::kZero ? W::parameter(scales + i * kAdvance + W::kEightBytes, row) : 0.0f;
        }
      } else {
        W::load(tile, c + i * Step, row, code[i]);
        scale[i] = W::scale(tile, c + i * Step, row);
        zero[i] = W::zero(tile, c + i * Step, row);
      }
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const bool isThere = !IsPartial || c + i * Step < W::kChunks;
      g(c + i * Step, isThere, isThere ? term(c + i * Step, code[i], scale[i], zero[i]) : 0.0f);
    }
    c += Count * Step;
    codes += Count * kAdvance;
    scales += Count * kAdvance;
  }

  /// g(c, isThere, term) for the next `Turns` turns, which are there, and if `IsPartial` for one more, which only some lanes have.
  template <int Turns, bool IsPartial, class G> __device__ __forceinline__ void run(G g) {
#pragma unroll 1
    for (int batch = 0; batch < Turns / kBatch; ++batch)
      take<kBatch, false>(g);
    if constexpr (Turns % kBatch != 0)
      take<Turns % kBatch, false>(g);
    if constexpr (IsPartial)
      take<1, true>(g);
  }

  /// The term of chunk `at` (Linear.cuh).
  __device__ __forceinline__ float term(int at, const uint32_t (&code)[C::kWords], float scale, float zero) const {
    const uint4 *x = reinterpret_cast<const uint4 *>(record) + 2 * at;
    const uint4 a = x[0], b = x[1];
    const float xScale = *reinterpret_cast<const float *>(record + W::kScaleOffset + 4 * at);
    uint32_t bytes[8];
    C::unpack(code, bytes, tables);
    int sum = 0;
    if (C::kOffset || (C::kZero && !kSigns))
      sum = *reinterpret_cast<const int32_t *>(record + W::kSumOffset + 4 * at);
    uint32_t signs[kSigns ? 8 : 1];
    if constexpr (kSigns)
      C::signs(code, signs);
    return chunkTerm<C>(bytes, signs, a, b, xScale, sum, scale, zero);
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
template <class W, int Threads, class F> OTF_DEVICE void oneRowWide(const uint8_t *tiles, const uint8_t *record, Blocks blocks, F &f) {
  const int lane = threadIdx.x & 31, row = lane & 7, step = lane >> 3;
  for (int t = int(blocks.index) * (Threads / 32) + int(threadIdx.x >> 5); t < int(W::kTiles); t += int(blocks.count) * (Threads / 32)) {
    const uint8_t *tile = tiles + t * W::kTileBytes;
    float acc = 0;
    LaneTurns<W, 4> turns(tile, record, step, row);
    turns.template run<W::kChunks / 4, W::kChunks % 4 != 0>([&](int, bool, float term) { acc = addSteps(acc, term, row); });
    for (int j = 0; j < int(W::kOutliers); j += 4)
      acc = addSteps(acc,
                     j + step < int(W::kOutliers)
                         ? W::outlier(tile, j + step, row) * reinterpret_cast<const float *>(record + W::kRecordOutlierOffset)[j + step]
                         : 0.0f,
                     row);
    if (lane < 8 && t * 8 + row < W::kRows)
      f(int64_t(0), int64_t(t) * 8 + row, acc);
  }
}

/// `Split` warps of a block wait for one another. Barrier 0 is the block's.
template <int Split, int Threads> OTF_DEVICE void meetTeam(int team) {
  if (32 * Split == Threads) {
    __syncthreads();
  } else {
    __syncwarp(); // the barrier is of whole warps
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(32 * Split) : "memory");
  }
}

/// The same where `Split` warps divide a tile's columns: terms meet in shared memory, and one lane a result adds them. `shared`:
/// kRowTermFloats.
template <class W, int Split, int Threads, class F>
OTF_DEVICE void oneRowSplit(const uint8_t *tiles, const uint8_t *record, float *shared, Blocks blocks, F &f) {
  constexpr int kAtOnce = Threads / 32 / Split, kTeam = 32 * Split, kStep = 4 * Split;
  static_assert(Threads % kTeam == 0, "teams are whole");
  static_assert(kAtOnce < 16, "a multiprocessor has sixteen barriers");
  constexpr int kRoom = kRowTermFloats<Threads> / (kAtOnce * 8);
  constexpr int kWindow = termWindow(kRoom, kStep, larger(W::kChunks, int(W::kOutliers))), kStride = termStride(kWindow);
  static_assert(kStride <= kRoom, "a window fits");
  const int lane = threadIdx.x & 31, row = lane & 7, team = int(threadIdx.x) / kTeam, mine = int(threadIdx.x) % kTeam;
  const int first = mine / 32 * 4 + (lane >> 3);
  float *terms = shared + team * (8 * kStride), *own = terms + row * kStride;
  for (int t = int(blocks.index) * kAtOnce + team; t < int(W::kTiles); t += int(blocks.count) * kAtOnce) {
    const uint8_t *tile = tiles + t * W::kTileBytes;
    float acc = 0;
    // Adds `count` terms of each row, and zeros up to a multiple of four, which is what is read.
    auto meet = [&](int count) {
      if (mine < 32)
        for (int i = count + (lane >> 3); i < int(roundUp(count, 4)); i += 4)
          own[i] = 0;
      meetTeam<Split, Threads>(team);
      if (mine < 8)
#pragma unroll 8
        for (int i = 0; i < count; i += 4) {
          const float4 four = *reinterpret_cast<const float4 *>(own + i);
          acc = acc + four.x + four.y + four.z + four.w;
        }
      meetTeam<Split, Threads>(team); // before the terms are written again
    };
    LaneTurns<W, kStep> turns(tile, record, first, row);
#pragma unroll 1
    for (int from = 0; from + kWindow <= W::kChunks; from += kWindow) {
      turns.template run<kWindow / kStep, false>([&](int c, bool, float term) { own[c - from] = term; });
      meet(kWindow);
    }
    constexpr int kRest = W::kChunks % kWindow, kFrom = W::kChunks - kRest;
    if constexpr (kRest > 0) {
      turns.template run<kRest / kStep, kRest % kStep != 0>([&](int c, bool isThere, float term) {
        if (isThere)
          own[c - kFrom] = term;
      });
      meet(kRest);
    }
    for (int from = 0; from < int(W::kOutliers); from += kWindow) {
      const int end = smaller(from + kWindow, int(W::kOutliers));
      for (int j = from + first; j < end; j += kStep)
        own[j - from] = W::outlier(tile, j, row) * reinterpret_cast<const float *>(record + W::kRecordOutlierOffset)[j];
      meet(end - from);
    }
    if (mine < 8 && t * 8 + mine < W::kRows)
      f(int64_t(0), int64_t(t) * 8 + mine, acc);
  }
}

/// y = W x for one record in shared memory, whose bytes stand in the codec's order.
template <class W, int Split, int Threads, class F>
OTF_DEVICE void oneRow(const void *weight, const uint8_t *record, float *scratch, F f, Blocks blocks) {
  const uint8_t *tiles = static_cast<const uint8_t *>(weight) + W::kIndexBytes;
  if constexpr (Split == 1)
    oneRowWide<W, Threads>(tiles, record, blocks, f);
  else
    oneRowSplit<W, Split, Threads>(tiles, record, scratch, blocks, f);
}

} // namespace otf
