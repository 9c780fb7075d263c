// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * q k^T, capped, masked) v over a cache. The query heads that share a key head are
// rows of the same problem ("row" = head in the group * queries + query), so K and V are read once
// for all of them. Few rows (decode): the warps of a block divide the keys, each runs an online
// softmax, and the parts meet in shared memory in the order of the warps. Many rows (prefill): a
// block owns a set of rows and walks the keys through shared memory, 32 at a time.
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
    return s + __ldg(data + b * batch + h * head + i * query + j * key);
  }
  __device__ __forceinline__ int reach(int, int keys) const { return keys; }
};
/// u8, nonzero where the key is seen.
struct MaskKeep {
  const uint8_t *data;
  int64_t batch, head, query, key;
  __device__ __forceinline__ float operator()(int b, int h, int i, int j, float s) const {
    return __ldg(data + b * batch + h * head + i * query + j * key) ? s
                                                                    : __int_as_float(0xff800000);
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
  // Decode: rows a block works on at once, and shared floats: q, then each warp's m, l, o.
  static constexpr int kRows = kMax <= 256 ? 4 : 1;
  static constexpr int kPart = DV + 2;
  static constexpr int kDecodeFloats = kRows * ((D + 3) / 4 * 4) + kWarps * kRows * kPart;
  // Prefill: rows of a warp, and shared floats: q rows, then 32 keys or values. Four more floats
  // a row turn 16-byte reads down a column of keys conflict-free.
  static constexpr int kWarpRows = kMax <= 128 ? 4 : 1;
  static constexpr int kQ = (D + 3) / 4 * 4;
  static constexpr int kStride = (kMax + 3) / 4 * 4 + 4;
  static constexpr int kKeys = kMax <= 256 ? 32 : 16; // keys of a stage
  static constexpr int kPrefillFloats = kWarps * kWarpRows * kQ + kKeys * kStride;
  static constexpr int kFloats = kDecodeFloats > kPrefillFloats ? kDecodeFloats : kPrefillFloats;
  static_assert(kFloats * 4 <= 48 * 1024, "static shared memory");
};

OTF_DEVICE int divideUpInt(int value, int by) { return (value + by - 1) / by; }

OTF_DEVICE float cap(float s, float softcap) {
  return softcap > 0 ? softcap * tanhf(s / softcap) : s;
}

/// Online softmax of one row: a warp takes 32 scores, one a lane. Returns the lane's weight and
/// what earlier sums are to be multiplied with.
OTF_DEVICE float absorb(float s, float &top, float &total, float &correction) {
  const float newTop = fmaxf(top, warpMax(s));
  // Nothing seen yet: exp(-inf + inf) would be NaN.
  const bool empty = newTop == __int_as_float(0xff800000);
  const float p = empty ? 0.0f : expf(s - newTop);
  correction = empty ? 1.0f : expf(top - newTop);
  total = total * correction + warpSum(p);
  top = newTop;
  return p;
}

/// One (batch, key head, set of kRows rows) over keys [first, last), by the whole block. q(b,h,i,d)
/// gives f32; h counts query heads. emit(slot, d, o, top, total): the unnormalised sum o of
/// row rowBase + slot, by one thread each.
template <class S, class T, class Q, class Mask, class Emit>
OTF_DEVICE void attendKeys(float *shared, int b, int kvHead, int rowBase, int queries, int first,
                           int last, Q q, Heads<T> k, Heads<T> v, float scale, float softcap,
                           Mask mask, Emit emit) {
  constexpr int R = S::kRows, D = S::D, DV = S::DV, kVec = D % 4 == 0 ? 4 : 1;
  constexpr int kRowFloats = (D + 3) / 4 * 4;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int rows = S::Group * queries;
  float *qs = shared, *parts = shared + R * kRowFloats;
  __syncthreads();
  for (int at = threadIdx.x; at < R * D; at += kThreads) {
    const int slot = at / D, d = at % D;
    const int row = rowBase + slot;
    qs[slot * kRowFloats + d] =
        row < rows ? scale * q(b, kvHead * S::Group + row / queries, row % queries, d) : 0.0f;
  }
  __syncthreads();

  const float nothing = __int_as_float(0xff800000);
  float top[R], total[R], acc[R][S::kDims];
  int head[R], query[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    head[r] = kvHead * S::Group + (rowBase + r) / queries;
    query[r] = (rowBase + r) % queries;
    top[r] = nothing;
    total[r] = 0;
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      acc[r][d] = 0;
  }
  for (int base = first + warp * 32; base < last; base += kWarps * 32) {
    // Eight lanes share a key: lane (g, e) reads every eighth vector of key 8g + i, and keeps the
    // score of key 8g + e, its own.
    float s[R];
    const int e = lane & 7;
#pragma unroll 1
    for (int i = 0; i < 8; ++i) {
      const int key = smaller(base + (lane & 24) + i, last - 1);
      const T *kr = k.at(b, kvHead, key);
      float dot[R];
#pragma unroll
      for (int r = 0; r < R; ++r)
        dot[r] = 0;
#pragma unroll 2
      for (int d = e * kVec; d < D; d += 8 * kVec) {
        if constexpr (kVec == 4) {
          const float4 kv = load4(kr + d);
#pragma unroll
          for (int r = 0; r < R; ++r) {
            const float4 qv = *reinterpret_cast<const float4 *>(qs + r * kRowFloats + d);
            dot[r] += qv.x * kv.x + qv.y * kv.y + qv.z * kv.z + qv.w * kv.w;
          }
        } else {
          const float kv = toFloat(kr[d]);
#pragma unroll
          for (int r = 0; r < R; ++r)
            dot[r] += qs[r * kRowFloats + d] * kv;
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int o = 1; o < 8; o <<= 1)
          dot[r] += __shfl_xor_sync(kAllLanes, dot[r], o);
        s[r] = i == e ? dot[r] : s[r];
      }
    }
    const int key = base + lane;
    float p[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float score = nothing;
      if (key < last && rowBase + r < rows)
        score = mask(b, head[r], query[r], key, cap(s[r], softcap));
      float correction;
      p[r] = absorb(score, top[r], total[r], correction);
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        acc[r][d] *= correction;
    }
    const int here = int(smaller(32, last - base));
#pragma unroll 2
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
          acc[r][d] += w * vv[d];
      }
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float *part = parts + (warp * R + r) * S::kPart;
    if (lane == 0) {
      part[0] = top[r];
      part[1] = total[r];
    }
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      if (lane + 32 * d < DV)
        part[2 + lane + 32 * d] = acc[r][d];
  }
  __syncthreads();
  for (int at = threadIdx.x; at < R * DV; at += kThreads) {
    const int slot = at / DV, d = at % DV;
    if (rowBase + slot >= rows)
      continue;
    float all = nothing, sum = 0, o = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w)
      all = fmaxf(all, parts[(w * R + slot) * S::kPart]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float *part = parts + (w * R + slot) * S::kPart;
      const float share = part[0] == nothing ? 0.0f : expf(part[0] - all);
      sum += share * part[1];
      o += share * part[2 + d];
    }
    emit(slot, d, o, all, sum);
  }
}

/// Few rows: see the top of the file.
template <class S, class T, class Q, class Mask, class F>
OTF_DEVICE void attentionDecode(float *shared, int batch, int kvHeads, int queries, int keys, Q q,
                                Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                                F f) {
  const int sets = divideUpInt(S::Group * queries, S::kRows);
  for (int item = blockIdx.x; item < batch * kvHeads * sets; item += gridDim.x) {
    const int set = item % sets, kvHead = item / sets % kvHeads, b = item / sets / kvHeads;
    auto emit = [&](int slot, int d, float o, float, float total) {
      const int row = set * S::kRows + slot;
      f(b, kvHead * S::Group + row / queries, row % queries, d, total > 0 ? o / total : 0.0f);
    };
    attendKeys<S>(shared, b, kvHead, set * S::kRows, queries, 0, mask.reach(queries - 1, keys), q,
                  k, v, scale, softcap, mask, emit);
  }
}

/// Many rows: see the top of the file.
template <class S, class T, class Q, class Mask, class F>
OTF_DEVICE void attentionPrefill(float *shared, int batch, int kvHeads, int queries, int keys, Q q,
                                 Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                                 F f) {
  constexpr int R = S::kWarpRows, D = S::D, DV = S::DV, kBlockRows = kWarps * R;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int rows = S::Group * queries, sets = divideUpInt(rows, kBlockRows);
  const float nothing = __int_as_float(0xff800000);
  float *qs = shared, *stage = shared + kBlockRows * S::kQ;
  for (int item = blockIdx.x; item < batch * kvHeads * sets; item += gridDim.x) {
    const int set = item % sets, kvHead = item / sets % kvHeads, b = item / sets / kvHeads;
    const int rowBase = set * kBlockRows;
    // The last query of the set bounds the keys; a set that spans heads has them all.
    const int lastRow = smaller(rowBase + kBlockRows, rows) - 1;
    const bool oneHead = rowBase / queries == lastRow / queries;
    const int reach = mask.reach(oneHead ? lastRow % queries : queries - 1, keys);
    __syncthreads();
    for (int at = threadIdx.x; at < kBlockRows * S::kQ; at += kThreads) {
      const int row = rowBase + at / S::kQ;
      const int d = at % S::kQ;
      qs[at] = row < rows && d < D
                   ? scale * q(b, kvHead * S::Group + row / queries, row % queries, d)
                   : 0.0f;
    }
    float top[R], total[R], acc[R][S::kDims];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      top[r] = nothing;
      total[r] = 0;
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        acc[r][d] = 0;
    }
    auto fill = [&](Heads<T> from, int size, int base) {
      const int padded = (size + 3) / 4 * 4;
      for (int at = threadIdx.x; at < S::kKeys * padded; at += kThreads) {
        const int j = at / padded, d = at % padded;
        stage[j * S::kStride + d] =
            base + j < reach && d < size ? toFloat(from.at(b, kvHead, base + j)[d]) : 0.0f;
      }
    };
    for (int base = 0; base < reach; base += S::kKeys) {
      __syncthreads();
      fill(k, D, base);
      __syncthreads();
      float s[R];
#pragma unroll
      for (int r = 0; r < R; ++r)
        s[r] = 0;
      const int mine = lane < S::kKeys ? lane : 0;
#pragma unroll 2
      for (int d = 0; d < D; d += 4) {
        const float4 kv = *reinterpret_cast<const float4 *>(stage + mine * S::kStride + d);
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const float4 qv = *reinterpret_cast<const float4 *>(qs + (warp * R + r) * S::kQ + d);
          s[r] += qv.x * kv.x + qv.y * kv.y + qv.z * kv.z + qv.w * kv.w;
        }
      }
      const int key = base + lane;
      float p[R];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const int row = rowBase + warp * R + r;
        float score = nothing;
        if (lane < S::kKeys && key < reach && row < rows)
          score =
              mask(b, kvHead * S::Group + row / queries, row % queries, key, cap(s[r], softcap));
        float correction;
        p[r] = absorb(score, top[r], total[r], correction);
#pragma unroll
        for (int d = 0; d < S::kDims; ++d)
          acc[r][d] *= correction;
      }
      __syncthreads();
      fill(v, DV, base);
      __syncthreads();
#pragma unroll 2
      for (int j = 0; j < S::kKeys; ++j) {
        float w[R];
#pragma unroll
        for (int r = 0; r < R; ++r)
          w[r] = __shfl_sync(kAllLanes, p[r], j);
#pragma unroll
        for (int d = 0; d < S::kDims; ++d) {
          const float vv = lane + 32 * d < DV ? stage[j * S::kStride + lane + 32 * d] : 0.0f;
#pragma unroll
          for (int r = 0; r < R; ++r)
            acc[r][d] += w[r] * vv;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int row = rowBase + warp * R + r;
      if (row >= rows)
        continue;
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        if (lane + 32 * d < DV)
          f(b, kvHead * S::Group + row / queries, row % queries, lane + 32 * d,
            total[r] > 0 ? acc[r][d] / total[r] : 0.0f);
    }
  }
}

/// f(b, h, i, d, y) for every result. T: element of the cache, float or half_t. q(b, h, i, d): f32.
/// Grid: one block per batch * kvHeads * (row sets) fills the machine; any is right.
template <class S, class T, class Q, class Mask, class F>
OTF_DEVICE void attention(int batch, int kvHeads, int queries, int keys, Q q, Heads<T> k,
                          Heads<T> v, float scale, float softcap, Mask mask, F f) {
  __shared__ __align__(16) float shared[S::kFloats];
  waitForInputs();
  if (S::Group * queries <= 4 * S::kRows)
    attentionDecode<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, f);
  else
    attentionPrefill<S>(shared, batch, kvHeads, queries, keys, q, k, v, scale, softcap, mask, f);
  releaseDependents();
}

// ---- long caches: keys divided over blocks, in two kernels -------------------------------------

/// Part p of `parts` works on keys [p, p+1) * ceil(keys / parts). Partial results in `work`: f32
/// [batch * query heads * queries][parts][DV + 2] = top, total, o.
template <class S, class T, class Q, class Mask>
OTF_DEVICE void attentionParts(int batch, int kvHeads, int queries, int keys, int parts, Q q,
                               Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                               float *work) {
  __shared__ __align__(16) float shared[S::kDecodeFloats];
  waitForInputs();
  const int sets = divideUpInt(S::Group * queries, S::kRows);
  const int reach = mask.reach(queries - 1, keys), length = divideUpInt(reach, parts);
  for (int item = blockIdx.x; item < batch * kvHeads * sets * parts; item += gridDim.x) {
    const int part = item % parts, set = item / parts % sets;
    const int kvHead = item / parts / sets % kvHeads, b = item / parts / sets / kvHeads;
    auto emit = [&](int slot, int d, float o, float top, float total) {
      const int row = set * S::kRows + slot;
      const int64_t at = int64_t((b * kvHeads + kvHead) * S::Group * queries + row) * parts + part;
      float *to = work + at * S::kPart;
      if (d == 0) {
        to[0] = top;
        to[1] = total;
      }
      to[2 + d] = o;
    };
    attendKeys<S>(shared, b, kvHead, set * S::kRows, queries, smaller(part * length, reach),
                  smaller((part + 1) * length, reach), q, k, v, scale, softcap, mask, emit);
  }
  releaseDependents();
}

/// The second kernel: adds the parts in order.
template <class S, class F>
OTF_DEVICE void attentionCombine(int batch, int kvHeads, int queries, int parts, const float *work,
                                 F f) {
  waitForInputs();
  const float nothing = __int_as_float(0xff800000);
  const int64_t total = int64_t(batch) * kvHeads * S::Group * queries * S::DV;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < total;
       at += int64_t(gridDim.x) * kThreads) {
    const int row = int(at / S::DV);
    const int d = int(at % S::DV);
    const float *from = work + int64_t(row) * parts * S::kPart;
    float top = nothing, sum = 0, o = 0;
    for (int p = 0; p < parts; ++p)
      top = fmaxf(top, from[p * S::kPart]);
    for (int p = 0; p < parts; ++p) {
      const float *part = from + p * S::kPart;
      const float share = part[0] == nothing ? 0.0f : expf(part[0] - top);
      sum += share * part[1];
      o += share * part[2 + d];
    }
    const int heads = kvHeads * S::Group;
    f(row / queries / heads, row / queries % heads, row % queries, d, sum > 0 ? o / sum : 0.0f);
  }
  releaseDependents();
}

} // namespace otf
