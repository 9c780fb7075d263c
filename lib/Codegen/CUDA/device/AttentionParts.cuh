// SPDX-License-Identifier: Apache-2.0
//
// Attention of few rows to a long cache: blocks of threads divide the keys and write down what each block of keys gives; a second
// kernel joins these in order, so the bits are those of one walk along the keys. To have the last block of the first kernel join
// takes no second launch, and as long as all the rest: what 32,768 keys give is half a megabyte for a query head of 128, for one multiprocessor.
// The second kernel divides rows and values instead. The plan launches it where there are so many keys (EmitOperators.cpp).

namespace otf {

/// Up to so many keys one block of threads walks along all of them, and no second launch is needed: two blocks of keys for each warp.
constexpr int kWholeKeys = 2 * kWarps * kKeyBlock;

/// What blocks of keys give, for each row (of all batch entries and heads): f32 [rows][blocks] of top and total, then [rows][blocks][DV].
struct PartialSums {
  float *memory;
  int64_t rows, blocks;
  __device__ __forceinline__ float *tops(int64_t row) const { return memory + 2 * row * blocks; }
  __device__ __forceinline__ float *sums(int64_t row, int width) const {
    return memory + roundUp(2 * rows * blocks, 4) + row * blocks * width;
  }
};

/// The first kernel. Each block of threads takes some rows that share a key head, and every teams-th of their blocks of keys.
template <class S, class T, class Q, class Mask>
OTF_DEVICE void attentionParts(float *shared, int batch, int kvHeads, int queries, int keys, Q q, Heads<T> k, Heads<T> v, float scale,
                               float softcap, Mask mask, float *work) {
  constexpr int R = S::kShared;
  const int warp = threadIdx.x >> 5, rows = S::Group * queries, sets = divideUpInt(rows, R), problems = batch * kvHeads * sets;
  const int teams = larger(int(gridDim.x) / problems, 1), last = mask.reach(queries - 1, keys), blocks = divideUpInt(keys, kKeyBlock);
  const PartialSums partial = {work, int64_t(batch) * kvHeads * rows, blocks};
  float *qs = shared, *stage = qs + R * S::kQ + warp * S::kStage;
  KeyWalk<S, T, R> walk;
  {
    const int problem = blockIdx.x / teams, base = (int(blockIdx.x) % teams * kWarps + warp) * kKeyBlock;
    if (problem < problems && base < last)
      prefetchBlock(problem / sets / kvHeads, problem / sets % kvHeads, base, last, k, v);
  }
  waitForInputs();
#pragma unroll 1
  for (int item = blockIdx.x; item < problems * teams; item += gridDim.x) {
    const int team = item % teams, set = item / teams % sets, kvHead = item / teams / sets % kvHeads, b = item / teams / sets / kvHeads;
    const int rowBase = set * R, first = team * kWarps + warp;
    __syncthreads(); // the last readers of queries are done
    loadQueries<S>(qs, R, b, kvHead, rowBase, queries, q);
    __syncthreads();
    const int64_t row = int64_t(b * kvHeads + kvHead) * rows + rowBase;
    const RowOf rowOf(rowBase, queries);
#pragma unroll 1
    for (int number = first; number < blocks; number += teams * kWarps) {
      const int base = number * kKeyBlock;
      auto give = [&](int r, float top, float total) {
        if (rowBase + r < rows)
          *reinterpret_cast<float2 *>(partial.tops(row + r) + 2 * number) = make_float2(top, total);
      };
      if (base >= last) { // no row sees it
        for (int r = 0; r < R && (threadIdx.x & 31) == 0; ++r)
          give(r, nothing(), 0.0f);
        continue;
      }
      walk.begin(b, kvHead, base, last, k, v);
      walk.attend(qs, stage, b, kvHead, rowOf, queries, base, last, k, v, scale, softcap, mask, give, [&](int r, int d, float o) {
        if (rowBase + r < rows)
          partial.sums(row + r, S::DV)[int64_t(number) * S::DV + d] = o;
      });
    }
  }
}

/// The second kernel: a block of threads for each row and 32 of its values. `work`, and all sizes, are those of the first.
template <class S, class Sink, class F>
OTF_DEVICE void attentionCombine(int batch, int kvHeads, int queries, int keys, const float *work, Sink sink, F f) {
  constexpr int DV = S::DV, kSlices = (DV + 31) / 32, kStageBlocks = 128, kLoads = kStageBlocks / kWarps, kTopWarps = kStageBlocks / 32;
  __shared__ float sums[kStageBlocks][32];
  __shared__ float old[kStageBlocks], fresh[kStageBlocks], totals[kStageBlocks], tops[kTopWarps], whole;
  waitForInputs();
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, thread = threadIdx.x, rows = S::Group * queries;
  if (rows > S::kFewRows || keys <= kWholeKeys)
    return;
  const int blocks = divideUpInt(keys, kKeyBlock), all = batch * kvHeads * rows;
  const PartialSums partial = {const_cast<float *>(work), all, blocks};
  for (int item = blockIdx.x; item < all * kSlices; item += gridDim.x) {
    const int row = item / kSlices, d = item % kSlices * 32 + lane;
    const float2 *given = reinterpret_cast<const float2 *>(partial.tops(row));
    const float *from = partial.sums(row, DV) + d;
    float x[kLoads];
    auto load = [&](int first) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int number = first + warp + kWarps * i;
        x[i] = number < blocks && d < DV ? from[int64_t(number) * DV] : 0.0f;
      }
    };
    load(0);
    float top = nothing(), sum = 0; // the sum of values in warp 0, of weights in warp 1
#pragma unroll 1
    for (int first = 0; first < blocks; first += kStageBlocks) {
      // The largest score before each block: a maximum has no order.
      float2 mine = make_float2(nothing(), 0.0f);
      if (thread < kStageBlocks && first + thread < blocks)
        mine = given[first + thread];
      float upTo = mine.x;
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        const float other = __shfl_up_sync(kAllLanes, upTo, o);
        upTo = lane >= o ? fmaxf(upTo, other) : upTo;
      }
      if (warp < kTopWarps && lane == 31)
        tops[warp] = upTo;
      const float previous = __shfl_up_sync(kAllLanes, upTo, 1);
      __syncthreads(); // and the last readers of this memory are done
      float before = lane > 0 ? fmaxf(top, previous) : top;
#pragma unroll
      for (int w = 0; w < kTopWarps; ++w) {
        before = w < warp ? fmaxf(before, tops[w]) : before;
        top = fmaxf(top, tops[w]);
      }
      if (thread < kStageBlocks) {
        const Joined joined = join(before, mine.x);
        old[thread] = joined.old;
        fresh[thread] = joined.fresh;
        totals[thread] = mine.y * joined.fresh;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        sums[warp + kWarps * i][lane] = x[i] * fresh[warp + kWarps * i];
      load(first + kStageBlocks);
      __syncthreads();
      const int count = smaller(kStageBlocks, blocks - first);
      if (warp == 0) {
#pragma unroll 8
        for (int i = 0; i < count; ++i)
          sum = fmaf(sum, old[i], sums[i][lane]);
      } else if (warp == 1) {
#pragma unroll 8
        for (int i = 0; i < count; ++i)
          sum = fmaf(sum, old[i], totals[i]);
      }
    }
    if (thread == 32)
      whole = sum;
    __syncthreads();
    if (warp == 0 && d < DV) {
      const int heads = kvHeads * S::Group, h = row / queries % heads;
      f(row / queries / heads, h, row % queries, d, sum * sink(h, top, whole));
    }
  }
}

} // namespace otf
