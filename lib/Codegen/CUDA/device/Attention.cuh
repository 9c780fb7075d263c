// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * q k^T, capped, masked) v over a cache. The query heads that share a key head are
// rows of the same problem ("row" = head in the group * queries + query), so that K and V can be read once
// for several. Few rows (decode): the warps of a block take blocks of keys, which meet in shared
// memory; of many keys, AttentionParts.cuh. Many rows (prefill): a block owns a set of rows and walks the keys through shared memory.
// AttentionBlocks.cuh has the arithmetic.

namespace otf {

/// Few rows: see the top of the file. A block of threads for each.
template <class S, class T, class Q, class Mask, class Sink, class F>
OTF_DEVICE void attentionWhole(float *shared, int batch, int kvHeads, int queries, int keys, Q q, Heads<T> k, Heads<T> v, float scale,
                               float softcap, Mask mask, Sink sink, F f) {
  constexpr int DV = S::DV, kMine = (DV + kThreads - 1) / kThreads, kRound = kWarps * kKeyBlock;
  const int warp = threadIdx.x >> 5, thread = threadIdx.x, rows = S::Group * queries;
  float *qs = shared, *factors = qs + S::kQ, *stages = factors + 2 * kWarps, *stage = stages + warp * S::kStage;
  const int mine = warp * kKeyBlock;
  KeyWalk<S, T, 1> walk;
  {
    const int problem = blockIdx.x / rows, last = mask.reach(int(blockIdx.x) % rows % queries, keys);
    if (problem < batch * kvHeads && mine < last)
      prefetchBlock(problem / kvHeads, problem % kvHeads, mine, last, k, v);
  }
  waitForInputs();
#pragma unroll 1
  for (int item = blockIdx.x; item < batch * kvHeads * rows; item += gridDim.x) {
    const int row = item % rows, kvHead = item / rows % kvHeads, b = item / rows / kvHeads;
    const RowOf rowOf(row, queries);
    const int h = kvHead * S::Group + rowOf.head, last = mask.reach(rowOf.position, keys);
    float top = nothing(), o[kMine], total = 0;
#pragma unroll
    for (int i = 0; i < kMine; ++i)
      o[i] = 0;
#pragma unroll 1
    for (int round = 0; round < last; round += kRound) {
      const int base = round + mine;
      walk.begin(b, kvHead, base, last, k, v);
      if (round == 0) // while keys and values are on their way
        for (int d = thread; d < S::kQ; d += kThreads)
          qs[d] = d < S::D ? q(b, h, rowOf.position, d) : 0.0f;
      __syncthreads(); // and the last readers of the stages are done
      auto give = [&](int, float blockTop, float blockTotal) {
        stage[0] = blockTop;
        stage[1] = blockTotal;
      };
      if (base < last)
        walk.attend(qs, stage, b, kvHead, rowOf, queries, base, last, k, v, scale, softcap, mask, give,
                    [&](int, int d, float value) { stage[2 + d] = value; });
      else if ((thread & 31) == 0)
        give(0, nothing(), 0.0f);
      __syncthreads();
      const int parts = smaller(kWarps, divideUpInt(last - round, kKeyBlock));
      if (thread < parts) { // a maximum has no order
        float before = top;
        for (int u = 0; u < thread; ++u)
          before = fmaxf(before, stages[u * S::kStage]);
        const Joined joined = join(before, stages[thread * S::kStage]);
        factors[2 * thread] = joined.old;
        factors[2 * thread + 1] = joined.fresh;
      }
      __syncthreads();
      for (int w = 0; w < parts; ++w) {
        const float *part = stages + w * S::kStage;
        const float old = factors[2 * w], fresh = factors[2 * w + 1];
        top = fmaxf(top, part[0]);
        total = fmaf(total, old, part[1] * fresh);
#pragma unroll
        for (int i = 0; i < kMine; ++i)
          if (thread + i * kThreads < DV)
            o[i] = fmaf(o[i], old, part[2 + thread + i * kThreads] * fresh);
      }
    }
    const float share = sink(h, top, total);
#pragma unroll
    for (int i = 0; i < kMine; ++i)
      if (thread + i * kThreads < DV)
        f(b, h, rowOf.position, thread + i * kThreads, o[i] * share);
  }
}

/// Many rows: see the top of the file.
template <class S, class T, class Q, class Mask, class Sink, class F>
OTF_DEVICE void attentionPrefill(float *shared, int batch, int kvHeads, int queries, int keys, Q q,
                                 Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                                 Sink sink, F f) {
  constexpr int R = S::kWarpRows, D = S::D, DV = S::DV, kBlockRows = kWarps * R;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int rows = S::Group * queries, sets = divideUpInt(rows, kBlockRows);
  float *qs = shared, *stage = shared + kBlockRows * S::kQ;
  waitForInputs();
  for (int item = blockIdx.x; item < batch * kvHeads * sets; item += gridDim.x) {
    const int set = item % sets, kvHead = item / sets % kvHeads, b = item / sets / kvHeads;
    const int rowBase = set * kBlockRows;
    // The last query of the set bounds the keys; a set that spans heads has them all.
    const int lastRow = smaller(rowBase + kBlockRows, rows) - 1;
    const bool oneHead = rowBase / queries == lastRow / queries;
    const int reach = mask.reach(oneHead ? lastRow % queries : queries - 1, keys);
    __syncthreads();
    loadQueries<S>(qs, kBlockRows, b, kvHead, rowBase, queries, q);
    float top[R], total[R], sum[R][S::kDims];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      top[r] = nothing();
      total[r] = 0;
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        sum[r][d] = 0;
    }
    auto fill = [&](Heads<T> from, int size, int base) {
      const int padded = (size + 7) / 8 * 8;
      __syncthreads();
#pragma unroll 1
      for (int at = threadIdx.x; at < S::kKeys * padded; at += kThreads) {
        const int j = at / padded, d = at % padded;
        stage[j * S::kStride + d] =
            base + j < reach && d < size ? toFloat(from.at(b, kvHead, base + j)[d]) : 0.0f;
      }
      __syncthreads();
    };
#pragma unroll 1
    for (int base = 0; base < reach; base += kKeyBlock) {
      float s[R];
#pragma unroll
      for (int r = 0; r < R; ++r)
        s[r] = 0;
#pragma unroll 1
      for (int from = 0; from < kKeyBlock; from += S::kKeys) {
        fill(k, D, base + from);
        const float *mine = stage + lane % S::kKeys * S::kStride;
        float score[R];
#pragma unroll
        for (int r = 0; r < R; ++r)
          score[r] = 0;
        // Partial sums 0 to 3, then 4 to 7: all eight at once want too many registers.
#pragma unroll 1
        for (int h = 0; h < 8; h += 4) {
          float dot[R][4];
#pragma unroll
          for (int r = 0; r < R; ++r)
#pragma unroll
            for (int i = 0; i < 4; ++i)
              dot[r][i] = 0;
#pragma unroll 2
          for (int d = h; d < S::kQ; d += 8) {
            const float4 kv = *reinterpret_cast<const float4 *>(mine + d);
#pragma unroll
            for (int r = 0; r < R; ++r) {
              const float4 qv = *reinterpret_cast<const float4 *>(qs + (warp * R + r) * S::kQ + d);
              dot[r][0] = fmaf(qv.x, kv.x, dot[r][0]);
              dot[r][1] = fmaf(qv.y, kv.y, dot[r][1]);
              dot[r][2] = fmaf(qv.z, kv.z, dot[r][2]);
              dot[r][3] = fmaf(qv.w, kv.w, dot[r][3]);
            }
          }
#pragma unroll
          for (int r = 0; r < R; ++r)
            score[r] += (dot[r][0] + dot[r][1]) + (dot[r][2] + dot[r][3]);
        }
#pragma unroll
        for (int r = 0; r < R; ++r)
          s[r] = lane / S::kKeys * S::kKeys == from ? score[r] : s[r];
      }
      const int mine = smaller(base + lane, reach - 1);
      float blockTop[R], blockTotal[R], acc[R][S::kDims];
      weighKeys<S, T, R>(s, rowScale<D>(k.at(b, kvHead, mine)), rowScale<DV>(v.at(b, kvHead, mine)), b, kvHead,
                         RowOf(rowBase + warp * R, queries), queries, base + lane, reach, scale, softcap, mask, blockTop, blockTotal);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int d = 0; d < S::kDims; ++d)
          acc[r][d] = 0;
#pragma unroll 1
      for (int from = 0; from < kKeyBlock; from += S::kKeys) {
        fill(v, DV, base + from);
#pragma unroll DV % 4 == 0 ? 2 : 1
        for (int j = 0; j < S::kKeys; ++j) {
          float w[R];
#pragma unroll
          for (int r = 0; r < R; ++r)
            w[r] = __shfl_sync(kAllLanes, s[r], from + j);
#pragma unroll
          for (int d = 0; d < S::kDims; ++d) {
            const float vv = lane + 32 * d < DV ? stage[j * S::kStride + lane + 32 * d] : 0.0f;
#pragma unroll
            for (int r = 0; r < R; ++r)
              acc[r][d] = fmaf(w[r], vv, acc[r][d]);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const Joined joined = join(top[r], blockTop[r]);
        top[r] = joined.top;
        total[r] = fmaf(total[r], joined.old, blockTotal[r] * joined.fresh);
#pragma unroll
        for (int d = 0; d < S::kDims; ++d)
          sum[r][d] = fmaf(sum[r][d], joined.old, acc[r][d] * joined.fresh);
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int row = rowBase + warp * R + r;
      if (row >= rows)
        continue;
      const float share = sink(kvHead * S::Group + row / queries, top[r], total[r]);
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        if (lane + 32 * d < DV)
          f(b, kvHead * S::Group + row / queries, row % queries, lane + 32 * d, sum[r][d] * share);
    }
  }
}

/// f(b, h, i, d, y) for every result. T: element of the cache, float, half_t or int8_t. q(b, h, i, d): f32. `work`: of attentionParts,
/// with attentionCombine after it, or null to do without.
/// Grid: one block per batch * kvHeads * (row sets) fills the machine; any is right.
template <class S, class T, class Q, class Mask, class Sink, class F>
OTF_DEVICE void attention(int batch, int kvHeads, int queries, int keys, Q q, Heads<T> k,
                          Heads<T> v, float scale, float softcap, Mask mask, Sink sink, float *work, F f) {
  __shared__ __align__(16) float shared[S::kFloats];
  if (S::Group * queries > S::kFewRows)
    attentionPrefill<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, sink,
                        f);
  else if (work && keys > kWholeKeys)
    attentionParts<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, work);
  else
    attentionWhole<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, sink, f);
}

} // namespace otf
