// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * q k^T, capped, masked) v over a cache. The query heads that share a key head are
// rows of the same problem ("row" = head in the group * queries + query), so K and V are read once
// for all of them. Few rows (decode): the warps of a block take blocks of keys, which meet in shared
// memory. Many rows (prefill): a block owns a set of rows and walks the keys through shared memory.
//
// Canonical arithmetic, the CPU kernel's (lib/Codegen/CPU/kernels/Attention.cpp): keys come in blocks
// of 32. A score is eight partial sums, value d in sum d mod 8, that meet at distances 1, 2, 4. A
// block gives its largest score, the sum of its weights relative to that, and its weighted sum of
// values, key by key. Blocks join in order (`Joined`). So neither the launch, nor the number of rows,
// nor a division of the keys changes a bit.
//
// A row whose keys are all masked gives 0, not NaN. Counts and indices are 32-bit (64-bit divisions
// took a third of the registers); strides are not.

namespace otf {

/// Row-major with free outer strides, in elements. Rows of keys and values are contiguous; when D
/// (DV) is a multiple of four, so is every stride, and the base is aligned to four elements.
template <class T> struct Heads {
  const T *data;
  int64_t batch, head, row;
  __device__ __forceinline__ const T *at(int b, int h, int r) const {
    return data + b * batch + h * head + r * row;
  }
};

// Masks: mask(b, h, i, j, s) is the score of query i for key j, and reach(i, keys) bounds the keys
// that queries up to i look at. Strides are in elements, 0 where the mask broadcasts.
struct MaskNone {
  __device__ __forceinline__ float operator()(int, int, int, int, float s) const { return s; }
  __device__ __forceinline__ int reach(int, int keys) const { return keys; }
};
/// f32, added to the score.
struct MaskAdd {
  const float *data;
  int64_t batch, head, query, key;
  __device__ __forceinline__ float operator()(int b, int h, int i, int j, float s) const {
    return s + data[b * batch + h * head + i * query + j * key];
  }
  __device__ __forceinline__ int reach(int, int keys) const { return keys; }
};
/// u8, nonzero where the key is seen.
struct MaskKeep {
  const uint8_t *data;
  int64_t batch, head, query, key;
  __device__ __forceinline__ float operator()(int b, int h, int i, int j, float s) const {
    return data[b * batch + h * head + i * query + j * key] ? s : __int_as_float(0xff800000);
  }
  __device__ __forceinline__ int reach(int, int keys) const { return keys; }
};
/// Query i sees keys 0 ... past + i; `Inner` may hide more of them.
template <class Inner> struct MaskCausal {
  Inner inner;
  int past;
  __device__ __forceinline__ float operator()(int b, int h, int i, int j, float s) const {
    return j <= past + i ? inner(b, h, i, j, s) : __int_as_float(0xff800000);
  }
  __device__ __forceinline__ int reach(int i, int keys) const {
    return inner.reach(i, smaller(keys, past + i + 1));
  }
};

/// Static facts of one attention. D, DV: sizes of a key and a value. Group: query heads that share
/// a key head.
template <int D_, int DV_, int Group_> struct AttentionShape {
  static constexpr int D = D_, DV = DV_, Group = Group_;
  static_assert(D > 0 && D <= 512 && DV > 0 && DV <= 512, "rows of a head fit in shared memory");
  static constexpr int kDims = (DV + 31) / 32; // values of a result row that a lane holds
  static constexpr int kMax = D > DV ? D : DV;
  // Decode: rows a block works on at once, and shared floats: q, then each warp's top, total and o,
  // the rows' tops so far, and each warp's two factors a row.
  // One each: with few rows a launch has few blocks, and more of them beat reading keys once for four rows (H200, eight heads of 128 that
  // share keys: 256 keys 6.5 us and 10.2, 1024 keys 22 and 35).
  static constexpr int kRows = 1;
  static constexpr int kFewRows = kMax <= 256 ? 16 : 4; // up to which it is decoding
  static constexpr int kPart = DV + 2;
  static constexpr int kQ = (D + 7) / 8 * 8;
  static constexpr int kDecodeFloats = kRows * (kQ + kWarps * kPart + 1 + 2 * kWarps);
  // Prefill: rows of a warp, and shared floats: q rows, then 32 keys or values. Four more floats
  // a row turn 16-byte reads down a column of keys conflict-free.
  static constexpr int kWarpRows = kMax <= 128 ? 4 : 1;
  static constexpr int kStride = (kMax + 7) / 8 * 8 + 4;
  static constexpr int kKeys = kMax <= 256 ? 32 : 16; // keys of a stage
  static constexpr int kPrefillFloats = kWarps * kWarpRows * kQ + kKeys * kStride;
  static constexpr int kFloats = kDecodeFloats > kPrefillFloats ? kDecodeFloats : kPrefillFloats;
  static_assert(kFloats * 4 <= 48 * 1024, "static shared memory");
};

OTF_DEVICE int divideUpInt(int value, int by) { return (value + by - 1) / by; }

constexpr int kKeyBlock = 32;
constexpr int kAhead = 8; // loads of keys and values that a lane has on their way: with few blocks, latency is all that counts

OTF_DEVICE float nothing() { return __int_as_float(0xff800000); } // the top of a block without keys

OTF_DEVICE float cap(float s, float softcap) {
  return softcap > 0 ? softcap * tanh(s / softcap) : s;
}

/// How a block joins the blocks before it: sums so far times `old`, plus its own times `fresh`.
/// `before` and `mine`: the largest scores.
struct Joined {
  float top, old, fresh;
};
OTF_DEVICE Joined join(float before, float mine) {
  const float top = fmaxf(before, mine);
  if (mine == nothing()) // -inf + inf would be NaN
    return {top, 1.0f, 0.0f};
  return {top, exp(before - top), exp(mine - top)};
}
OTF_DEVICE float inverse(float total) { return total == 0 ? 0.0f : 1.0f / total; }

/// The share of a row's sums in its result, where one more score joins last whose value is 0.
struct NoSink {
  __device__ __forceinline__ float operator()(int, float, float total) const { return inverse(total); }
};
struct HeadSink {
  const float *scores; // one a query head
  __device__ __forceinline__ float operator()(int h, float top, float total) const {
    if (total == 0)
      return 0.0f;
    const float extra = scores[h], both = fmaxf(top, extra), factor = exp(top - both);
    return factor / fmaf(total, factor, exp(extra - both));
  }
};

/// Weight of the lane's key in its block, whose largest score and sum of weights come out too.
OTF_DEVICE float weigh(float score, float &top, float &total) {
  top = warpMax(score);
  const float p = top == nothing() ? 0.0f : exp(score - top);
  total = warpSum(p);
  return p;
}

/// One block of keys from `base` (before `last`) for S::kRows rows from rowBase, by one warp.
/// `qs`: their queries, kQ floats each.
template <class S, class T, class Mask>
OTF_DEVICE void attendBlock(const float *qs, int b, int kvHead, int rowBase, int queries, int base,
                            int last, Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                            float (&top)[S::kRows], float (&total)[S::kRows],
                            float (&acc)[S::kRows][S::kDims]) {
  constexpr int R = S::kRows, D = S::D, DV = S::DV;
  const int lane = threadIdx.x & 31, rows = S::Group * queries;
  float s[R];
#pragma unroll
  for (int r = 0; r < R; ++r)
    s[r] = 0;
  // Two lanes share a key, so that sixteen keys go at once: the even lane has partial sums 0 to 3.
#pragma unroll 1
  for (int pass = 0; pass < 2; ++pass) {
    const T *kr = k.at(b, kvHead, smaller(base + 16 * pass + (lane >> 1), last - 1));
    float dot[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        dot[r][i] = 0;
#pragma unroll D % 4 == 0 ? kAhead : 1
    for (int d = 4 * (lane & 1); d < D; d += 8) {
      float4 kv;
      if constexpr (D % 4 == 0)
        kv = load4(kr + d);
      else
        kv = make_float4(toFloat(kr[d]), d + 1 < D ? toFloat(kr[d + 1]) : 0.0f,
                         d + 2 < D ? toFloat(kr[d + 2]) : 0.0f,
                         d + 3 < D ? toFloat(kr[d + 3]) : 0.0f);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const float4 qv = *reinterpret_cast<const float4 *>(qs + r * S::kQ + d);
        dot[r][0] = fmaf(qv.x, kv.x, dot[r][0]);
        dot[r][1] = fmaf(qv.y, kv.y, dot[r][1]);
        dot[r][2] = fmaf(qv.z, kv.z, dot[r][2]);
        dot[r][3] = fmaf(qv.w, kv.w, dot[r][3]);
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float sum = (dot[r][0] + dot[r][1]) + (dot[r][2] + dot[r][3]);
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum = __shfl_sync(kAllLanes, sum, 2 * (lane & 15));
      s[r] = lane >> 4 == pass ? sum : s[r];
    }
  }
  const int key = base + lane;
  float p[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int row = rowBase + r;
    float score = nothing();
    if (key < last && row < rows)
      score = mask(b, kvHead * S::Group + row / queries, row % queries, key,
                   cap(s[r] * scale, softcap));
    p[r] = weigh(score, top[r], total[r]);
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      acc[r][d] = 0;
  }
  const int here = smaller(kKeyBlock, last - base);
#pragma unroll DV % 4 == 0 ? kAhead : 1
  for (int j = 0; j < here; ++j) {
    const T *vr = v.at(b, kvHead, base + j);
    float vv[S::kDims];
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      vv[d] = lane + 32 * d < DV ? toFloat(vr[lane + 32 * d]) : 0.0f;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float w = __shfl_sync(kAllLanes, p[r], j);
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        acc[r][d] = fmaf(w, vv[d], acc[r][d]);
    }
  }
}

/// Queries of S::kRows rows from rowBase, zeros behind each and past the last row.
template <class S, class Q>
OTF_DEVICE void loadQueries(float *qs, int count, int b, int kvHead, int rowBase, int queries, Q q) {
  for (int at = threadIdx.x; at < count * S::kQ; at += kThreads) {
    const int row = rowBase + at / S::kQ, d = at % S::kQ;
    qs[at] = row < S::Group * queries && d < S::D
                 ? q(b, kvHead * S::Group + row / queries, row % queries, d)
                 : 0.0f;
  }
}

/// The warp's block of keys at `base`, or nothing if it begins past the last key, into `part`:
/// [row] of top, total, o[DV], `stride` floats from row to row.
template <class S, class T, class Mask>
OTF_DEVICE void attendPart(const float *qs, int b, int kvHead, int rowBase, int queries, int base,
                           int last, Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                           float *part, int64_t stride, int count) {
  constexpr int R = S::kRows;
  const int lane = threadIdx.x & 31;
  float top[R], total[R], acc[R][S::kDims];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    top[r] = nothing();
    total[r] = 0;
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      acc[r][d] = 0;
  }
  if (base < last)
    attendBlock<S>(qs, b, kvHead, rowBase, queries, base, last, k, v, scale, softcap, mask, top,
                   total, acc);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float *to = part + r * stride;
    if (r >= count)
      break;
    if (lane == 0) {
      to[0] = top[r];
      to[1] = total[r];
    }
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      if (lane + 32 * d < S::DV)
        to[2 + lane + 32 * d] = acc[r][d];
  }
}

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

// ---- long caches: keys divided over blocks, in two kernels -------------------------------------

/// Every block of keys by itself. `parts`: blocks there is room for, at least ceil(keys / kKeyBlock).
/// Partial results in `work`: f32 [batch * query heads * queries][parts][DV + 2] = top, total, o.
template <class S, class T, class Q, class Mask>
OTF_DEVICE void attentionParts(int batch, int kvHeads, int queries, int keys, int parts, Q q,
                               Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                               float *work) {
  __shared__ __align__(16) float qs[S::kRows * S::kQ];
  waitForInputs();
  const int rows = S::Group * queries, sets = divideUpInt(rows, S::kRows);
  const int reach = mask.reach(queries - 1, keys), teams = divideUpInt(parts, kWarps);
  for (int item = blockIdx.x; item < batch * kvHeads * sets * teams; item += gridDim.x) {
    const int team = item % teams, set = item / teams % sets;
    const int kvHead = item / teams / sets % kvHeads, b = item / teams / sets / kvHeads;
    const int rowBase = set * S::kRows, part = team * kWarps + int(threadIdx.x >> 5);
    __syncthreads();
    loadQueries<S>(qs, S::kRows, b, kvHead, rowBase, queries, q);
    __syncthreads();
    const int64_t at = int64_t((b * kvHeads + kvHead) * rows + rowBase) * parts + part;
    if (part < parts)
      attendPart<S>(qs, b, kvHead, rowBase, queries, part * kKeyBlock, reach, k, v, scale, softcap,
                    mask, work + at * S::kPart, int64_t(parts) * S::kPart, rows - rowBase);
  }
}

/// The second kernel: joins the blocks in order.
template <class S, class F>
OTF_DEVICE void attentionCombine(int batch, int kvHeads, int queries, int parts, const float *work,
                                 F f) {
  waitForInputs();
  const int64_t all = int64_t(batch) * kvHeads * S::Group * queries * S::DV;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < all;
       at += int64_t(gridDim.x) * kThreads) {
    const int row = int(at / S::DV);
    const int d = int(at % S::DV);
    const float *part = work + int64_t(row) * parts * S::kPart;
    float top = nothing(), total = 0, o = 0;
    for (int p = 0; p < parts; ++p, part += S::kPart) {
      const Joined joined = join(top, part[0]);
      top = joined.top;
      total = fmaf(total, joined.old, part[1] * joined.fresh);
      o = fmaf(o, joined.old, part[2 + d] * joined.fresh);
    }
    const int heads = kvHeads * S::Group;
    f(row / queries / heads, row / queries % heads, row % queries, d, o * inverse(total));
  }
}

} // namespace otf
