// SPDX-License-Identifier: Apache-2.0
//
// What attention is made of, however its keys are divided: heads, masks, one block of keys.
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

/// Row-major with free outer strides, in elements. Rows of keys and values are contiguous, and follow one another without a gap;
/// when D (DV) is a multiple of four, so is every stride, and the base is aligned to 16 bytes.
template <class T> struct Heads {
  const T *data;
  int64_t batch, head, row;
  __device__ __forceinline__ const T *at(int b, int h, int r) const {
    return data + b * batch + h * head + r * row;
  }
};

/// Rows of int8 are codes, and behind a row lies its scale (lib/Encoding/CacheRow.h).
template <class T> constexpr bool kScaled = sizeof(T) == 1;
template <class T> constexpr int rowElements(int width) { return kScaled<T> ? width + 4 : width; }
template <int Width, class T> OTF_DEVICE float rowScale(const T *row) {
  if constexpr (!kScaled<T>) {
    return 1.0f;
  } else if constexpr (Width % 4 == 0) {
    return *reinterpret_cast<const float *>(row + Width);
  } else {
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      bits |= uint32_t(uint8_t(row[Width + i])) << (8 * i);
    return __uint_as_float(bits);
  }
}

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
  // Decode of a few keys: one row a block. With few rows a launch has few blocks, and more of them beat reading keys once for four rows
  // (H200, eight heads of 128 that share keys: 256 keys 6.5 us and 10.2). Of many keys, which blocks divide: rows that read keys together.
  static constexpr int kShared = (Group + (Group + 3) / 4 - 1) / ((Group + 3) / 4);
  static constexpr int kFewRows = kMax <= 256 ? 16 : 4; // up to which it is decoding
  static constexpr int kQ = (D + 7) / 8 * 8;
  // Shared floats: queries, what each warp's sums are multiplied with, and each warp's stage (AttentionStream.cuh), which also takes what
  // its block of keys gives: top, total and o.
  static constexpr int kStage = 32 * 9 * 4;
  static_assert(DV + 2 <= kStage, "a part fits");
  static constexpr int kDecodeFloats = kShared * kQ + 2 * kWarps + kWarps * kStage;
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

/// Which of a problem's rows: a query head, counted from the first that reads its key head, and a position.
struct RowOf {
  int head, position;
  __device__ __forceinline__ RowOf(int row, int queries) : head(row / queries), position(row % queries) {}
  __device__ __forceinline__ void next(int queries) {
    if (++position == queries) {
      position = 0;
      ++head;
    }
  }
};

/// From dot products of the lane's key to its weight, for R rows from `row`, and each row's largest score and sum of weights.
template <class S, class T, int R, class Mask>
OTF_DEVICE void weighKeys(float (&s)[R], float keyScale, float valueScale, int b, int kvHead, RowOf row, int queries, int key,
                          int last, float scale, float softcap, Mask mask, float (&top)[R], float (&total)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r, row.next(queries)) {
    float score = nothing();
    if (key < last && row.head < S::Group)
      score = mask(b, kvHead * S::Group + row.head, row.position, key,
                   cap((kScaled<T> ? s[r] * keyScale : s[r]) * scale, softcap));
    s[r] = weigh(score, top[r], total[r]);
    if (kScaled<T>)
      s[r] *= valueScale; // weights of codes
  }
}

/// One block of keys from `base` (before `last`) for R rows from `row`, by one warp, whatever D and DV are. `qs`: their queries, kQ
/// floats each. acc[r][d] is value lane + 32 d.
template <class S, class T, int R, class Mask>
OTF_DEVICE void attendBlock(const float *qs, int b, int kvHead, RowOf row, int queries, int base,
                            int last, Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask,
                            float (&top)[R], float (&total)[R], float (&acc)[R][S::kDims]) {
  constexpr int D = S::D, DV = S::DV;
  const int lane = threadIdx.x & 31, key = base + lane, mine = smaller(key, last - 1);
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
#pragma unroll D % 4 == 0 ? 4 : 1
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
  weighKeys<S, T, R>(s, rowScale<D>(k.at(b, kvHead, mine)), rowScale<DV>(v.at(b, kvHead, mine)), b, kvHead, row, queries, key,
                     last, scale, softcap, mask, top, total);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      acc[r][d] = 0;
  const int here = smaller(kKeyBlock, last - base);
#pragma unroll DV % 4 == 0 ? 4 : 1
  for (int j = 0; j < here; ++j) {
    const T *vr = v.at(b, kvHead, base + j);
    float vv[S::kDims];
#pragma unroll
    for (int d = 0; d < S::kDims; ++d)
      vv[d] = lane + 32 * d < DV ? toFloat(vr[lane + 32 * d]) : 0.0f;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float w = __shfl_sync(kAllLanes, s[r], j);
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        acc[r][d] = fmaf(w, vv[d], acc[r][d]);
    }
  }
}

/// Queries of `count` rows from rowBase, zeros behind each and past the last row.
template <class S, class Q>
OTF_DEVICE void loadQueries(float *qs, int count, int b, int kvHead, int rowBase, int queries, Q q) {
  for (int at = threadIdx.x; at < count * S::kQ; at += kThreads) {
    const int row = rowBase + at / S::kQ, d = at % S::kQ;
    qs[at] = row < S::Group * queries && d < S::D
                 ? q(b, kvHead * S::Group + row / queries, row % queries, d)
                 : 0.0f;
  }
}

} // namespace otf
