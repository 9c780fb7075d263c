// SPDX-License-Identifier: Apache-2.0
//
// What contractions read is a set of rows: X::row(m) gives 16 bytes of codes, the bits of a scale or a
// sum, an outlier, four floats. `Rows` are records (or rows of floats) one after another.

namespace otf {

/// Products of 32 bytes, summed. Integers, so in any order: two chains take half the time of one.
OTF_DEVICE int dotChunk(const uint32_t *w, uint4 a, uint4 b) {
  int dot = dot4(w[0], a.x, 0), more = dot4(w[4], b.x, 0);
  dot = dot4(w[1], a.y, dot), more = dot4(w[5], b.y, more);
  dot = dot4(w[2], a.z, dot), more = dot4(w[6], b.z, more);
  dot = dot4(w[3], a.w, dot), more = dot4(w[7], b.w, more);
  return dot + more;
}

/// The term of a chunk (Linear.cuh): `bytes` and, of a codec that has them, `signs` of the weight; a and b, the scale and the sum of x.
template <class C>
OTF_DEVICE float chunkTerm(const uint32_t *bytes, const uint32_t *signs, uint4 a, uint4 b, float xScale, int sum, float scale, float zero) {
  const float term = float(dotChunk(bytes, a, b) - C::kOffset * sum) * xScale * scale;
  if constexpr (hasSigns<C>(0))
    return fmaf(float(dotChunk(signs, a, b)) * xScale, zero, term);
  else
    return C::kZero ? fmaf(xScale * float(sum), zero, term) : term;
}

template <int64_t K> OTF_DEVICE float4 rowQuad(const float *row, int64_t k);

template <class W> struct Rows {
  const uint8_t *records;

  struct Row {
    const uint8_t *at;
    __device__ __forceinline__ uint4 codes(int c, int half) const {
      return *(reinterpret_cast<const uint4 *>(at) + 2 * c + half);
    }
    __device__ __forceinline__ int32_t bits(int c, bool sum) const {
      const uint8_t *from = at + (sum ? W::kSumOffset : W::kScaleOffset) + 4 * c;
      return *(reinterpret_cast<const int32_t *>(from));
    }
    __device__ __forceinline__ float outlier(int j) const {
      return *(reinterpret_cast<const float *>(at + W::kRecordOutlierOffset) + j);
    }
    __device__ __forceinline__ float4 quad(int64_t k) const {
      return rowQuad<W::kColumns>(reinterpret_cast<const float *>(at), k);
    }
  };
  __device__ __forceinline__ Row row(int m) const { return {records + m * W::kRecordBytes}; }
};

/// The windows of a convolution, read in place: x is [N, S0, S1, S2, C] with channels last, a record
/// or C floats each. Tap k of the window at o is at o * stride + k * dilation - before in each axis,
/// and zero outside. C is a multiple of 32 in records, so that what is read at once is in one tap,
/// and of 4 in what is fast of the rest.
template <class W, int C, int K0, int K1, int K2, int T0, int T1, int T2, int D0, int D1, int D2,
          int B0, int B1, int B2>
struct Windows {
  const uint8_t *pixels;
  int in[3], out[3]; // sizes of the spatial axes
  static constexpr bool kRecords = W::Codec::kInteger;
  using L = RecordLayout<C, 0>;
  static constexpr int64_t kPixelBytes = kRecords ? L::kRecordBytes : 4 * C;
  static_assert(int64_t(K0) * K1 * K2 * C == W::kColumns, "taps of C channels");
  static_assert((!kRecords || C % 32 == 0) && W::kOutliers == 0, "a chunk is in one tap");

  struct Row {
    const Windows &w;
    int batch, p[3]; // of the window's first tap

    /// Null outside.
    __device__ __forceinline__ const uint8_t *tap(int t) const {
      const int q0 = p[0] + t / (K1 * K2) * D0, q1 = p[1] + t / K2 % K1 * D1,
                q2 = p[2] + t % K2 * D2;
      if (unsigned(q0) >= unsigned(w.in[0]) || unsigned(q1) >= unsigned(w.in[1]) ||
          unsigned(q2) >= unsigned(w.in[2]))
        return nullptr;
      const int64_t pixel = ((int64_t(batch) * w.in[0] + q0) * w.in[1] + q1) * w.in[2] + q2;
      return w.pixels + pixel * kPixelBytes;
    }
    __device__ __forceinline__ uint4 codes(int c, int half) const {
      constexpr int each = C / 32 > 0 ? C / 32 : 1;
      const uint8_t *at = tap(c / each);
      return at ? *(reinterpret_cast<const uint4 *>(at) + 2 * (c % each) + half)
                : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ int32_t bits(int c, bool sum) const {
      constexpr int each = C / 32 > 0 ? C / 32 : 1;
      const uint8_t *at = tap(c / each);
      const int64_t offset = (sum ? L::kSumOffset : L::kScaleOffset) + 4 * (c % each);
      return at ? *(reinterpret_cast<const int32_t *>(at + offset)) : 0;
    }
    __device__ __forceinline__ float outlier(int) const { return 0; }
    __device__ __forceinline__ float element(int k) const {
      const uint8_t *at = k < W::kColumns ? tap(k / C) : nullptr;
      return at ? *(reinterpret_cast<const float *>(at) + k % C) : 0.0f;
    }
    __device__ __forceinline__ float4 quad(int64_t k) const {
      if (C % 4 != 0)
        return make_float4(element(int(k)), element(int(k) + 1), element(int(k) + 2),
                           element(int(k) + 3));
      const uint8_t *at = k < W::kColumns ? tap(int(k) / C) : nullptr;
      return at ? load4(reinterpret_cast<const float *>(at) + int(k) % C)
                : make_float4(0, 0, 0, 0);
    }
  };
  __device__ __forceinline__ Row row(int m) const {
    const int o2 = m % out[2], rest = m / out[2], o1 = rest % out[1], more = rest / out[1];
    return {*this, more / out[0], {more % out[0] * T0 - B0, o1 * T1 - B1, o2 * T2 - B2}};
  }
};

} // namespace otf
