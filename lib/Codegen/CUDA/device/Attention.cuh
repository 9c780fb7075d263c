// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * q k^T, capped, masked) v over a cache. The query heads that share a key head are
// rows of the same problem ("row" = head in the group * queries + query), so K and V are read once
// for all of them. Few rows (decode): the warps of a block take blocks of keys, which meet in shared
// memory. Many rows (prefill): a block owns a set of rows and walks the keys through shared memory.
// AttentionBlocks.cuh has the arithmetic.

namespace otf {

/// Few rows: see the top of the file.
template <class S, class T, class Q, class Mask, class Sink, class F>
OTF_DEVICE void attentionDecode(float *shared, int batch, int kvHeads, int queries, int keys, Q q,
                                Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                                Sink sink, F f) {
  constexpr int R = S::kRows, DV = S::DV, kMine = (R * DV + kThreads - 1) / kThreads;
  const int warp = threadIdx.x >> 5, thread = threadIdx.x;
  const int rows = S::Group * queries, sets = divideUpInt(rows, R);
  float *qs = shared, *parts = qs + R * S::kQ, *tops = parts + kWarps * R * S::kPart;
  float *factors = tops + R;
  for (int item = blockIdx.x; item < batch * kvHeads * sets; item += gridDim.x) {
    const int set = item % sets, kvHead = item / sets % kvHeads, b = item / sets / kvHeads;
    const int rowBase = set * R, last = mask.reach(queries - 1, keys);
    __syncthreads();
    loadQueries<S>(qs, R, b, kvHead, rowBase, queries, q);
    if (thread < R)
      tops[thread] = nothing();
    float o[kMine], total[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i)
      o[i] = total[i] = 0;
    __syncthreads();
#pragma unroll 1
    for (int round = 0; round < last; round += kWarps * kKeyBlock) {
      attendPart<S>(qs, b, kvHead, rowBase, queries, round + warp * kKeyBlock, last, k, v, scale,
                    softcap, mask, parts + warp * R * S::kPart, S::kPart, R);
      __syncthreads();
      if (thread < R * kWarps) { // one thread a row and warp: a maximum has no order
        const int row = thread / kWarps, w = thread % kWarps;
        float before = tops[row];
        for (int u = 0; u < w; ++u)
          before = fmaxf(before, parts[(u * R + row) * S::kPart]);
        const Joined joined = join(before, parts[(w * R + row) * S::kPart]);
        factors[2 * (w * R + row)] = joined.old;
        factors[2 * (w * R + row) + 1] = joined.fresh;
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        const int at = thread + i * kThreads, row = at / DV, d = at % DV;
        if (at >= R * DV)
          break;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
          const float *part = parts + (w * R + row) * S::kPart;
          const float old = factors[2 * (w * R + row)], fresh = factors[2 * (w * R + row) + 1];
          total[i] = fmaf(total[i], old, part[1] * fresh);
          o[i] = fmaf(o[i], old, part[2 + d] * fresh);
        }
      }
      if (thread < R)
        for (int w = 0; w < kWarps; ++w)
          tops[thread] = fmaxf(tops[thread], parts[(w * R + thread) * S::kPart]);
      __syncthreads(); // before the parts are written again
    }
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int at = thread + i * kThreads, row = rowBase + at / DV, d = at % DV;
      if (at < R * DV && row < rows) {
        const int h = kvHead * S::Group + row / queries;
        f(b, h, row % queries, d, o[i] * sink(h, tops[at / DV], total[i]));
      }
    }
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
      const int key = base + lane;
      float p[R], blockTop[R], blockTotal[R], acc[R][S::kDims];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int row = rowBase + warp * R + r;
        float score = nothing();
        if (key < reach && row < rows)
          score = mask(b, kvHead * S::Group + row / queries, row % queries, key,
                       cap(s[r] * scale, softcap));
        p[r] = weigh(score, blockTop[r], blockTotal[r]);
#pragma unroll
        for (int d = 0; d < S::kDims; ++d)
          acc[r][d] = 0;
      }
#pragma unroll 1
      for (int from = 0; from < kKeyBlock; from += S::kKeys) {
        fill(v, DV, base + from);
#pragma unroll DV % 4 == 0 ? 2 : 1
        for (int j = 0; j < S::kKeys; ++j) {
          float w[R];
#pragma unroll
          for (int r = 0; r < R; ++r)
            w[r] = __shfl_sync(kAllLanes, p[r], from + j);
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

/// f(b, h, i, d, y) for every result. T: element of the cache, float or half_t. q(b, h, i, d): f32.
/// Grid: one block per batch * kvHeads * (row sets) fills the machine; any is right.
template <class S, class T, class Q, class Mask, class Sink, class F>
OTF_DEVICE void attention(int batch, int kvHeads, int queries, int keys, Q q, Heads<T> k,
                          Heads<T> v, float scale, float softcap, Mask mask, Sink sink, F f) {
  __shared__ __align__(16) float shared[S::kFloats];
  waitForInputs();
  if (S::Group * queries <= S::kFewRows)
    attentionDecode<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, sink,
                       f);
  else
    attentionPrefill<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, sink,
                        f);
}

} // namespace otf
