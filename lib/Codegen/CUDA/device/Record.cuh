// SPDX-License-Identifier: Apache-2.0
//
// otf.prologue: a row of activations becomes the record that contractions read, once for all of
// them. Integer weights want bytes with one scale per 32 columns, in the order of the weight's
// column index, and the outlier columns as floats beside them. Plain weights read rows as they are.

namespace otf {

/// The code of v. `grid`, here and below: the scale and zero point of all codes where the model gives them, and the record's scales
/// are 1; null for a scale for each 32 columns. `isThere`: whether v is a value of x, and not padding, which has no zero point.
OTF_DEVICE int activationCode(float v, float scale, const float *grid, bool isThere) {
  if (grid) // fmaxf gives -128 for NaN
    return isThere ? int(fminf(fmaxf(rintf(v / grid[0]) + grid[1], -128.0f), 127.0f)) : 0;
  // The clamp matters for subnormal scales only, where the division is coarse.
  return larger(-127, smaller(127, scale > 0 ? __float2int_rn(v / scale) : 0));
}

/// 1 / x, to a unit in the last place.
OTF_DEVICE float nearReciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// top / 127 for what is neither tiny nor huge: a product, and its error taken off (Markstein), which is exact.
OTF_DEVICE float scaleOf(float top) {
  constexpr float inverse = 1.0f / 127.0f;
  const float near = top * inverse;
  return fmaf(fmaf(-near, 127.0f, top), inverse, near);
}

/// Chunks c, c + Step, ... of a record at `out`, by a warp of which each lane has one column of each, v. `Order`: where in a chunk a
/// column's byte is (Codec.cuh). Scales and codes are those of divisions, which have branches that keep chunks from going beside each
/// other: first without, and where that leaves doubt, once more.
template <class L, class Order, int Step = 1, int Count = 1>
OTF_DEVICE void recordLanes(int c, const float (&v)[Count], const float *grid, uint8_t *out) {
  const int lane = threadIdx.x & 31;
  float top[Count], scale[Count];
  int code[Count];
  bool isDoubtful = grid != nullptr;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    // Sizes of floats compare as their bits do. A NaN is above all of them, and shows in the scale and so in the result.
    top[i] = __uint_as_float(warpLargest(__float_as_uint(v[i]) & 0x7fffffffu));
    scale[i] = scaleOf(top[i]);
    // Off by 127 * 2^-22 at most, so right unless it lies that close to the middle of two codes.
    const float quotient = v[i] * nearReciprocal(scale[i]), nearest = rintf(quotient);
    code[i] = int(nearest);
    isDoubtful = isDoubtful || !(top[i] > 1e-28f && top[i] < 1e28f) || fabsf(quotient - nearest) > 0.4999f;
  }
  if (__any_sync(kAllLanes, isDoubtful))
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      scale[i] = grid ? 1.0f : top[i] / 127.0f;
      code[i] = activationCode(v[i], scale[i], grid, int64_t(c + i * Step) * 32 + lane < L::kBackground);
    }
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const int sum = warpTotal(code[i]);
    out[32 * (c + i * Step) + Order::place(lane)] = uint8_t(code[i]);
    if (lane == 0) {
      reinterpret_cast<float *>(out + L::kScaleOffset)[c + i * Step] = scale[i];
      reinterpret_cast<int32_t *>(out + L::kSumOffset)[c + i * Step] = sum;
    }
  }
}

/// Chunks [begin, end) of a record at `out`, in the natural order. value(i): column i in the order of the record, i < L::kBackground. By the whole block;
/// eight lanes own 32 columns.
template <class L, class V> OTF_DEVICE void recordChunks(int begin, int end, V value, const float *grid, uint8_t *out) {
  constexpr int kSets = kThreads / 8;
  const int part = threadIdx.x & 7;
  // The bound is rounded so that whole warps take part in the shuffles.
#pragma unroll 2
  for (int c = begin + int(threadIdx.x >> 3); c < begin + int(roundUp(end - begin, 4)); c += kSets) {
    const int64_t first = int64_t(c) * 32 + part * 4;
    float v[4], top = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      v[b] = c < end && first + b < L::kBackground ? value(first + b) : 0.0f;
      top = larger(top, fabsf(v[b]));
      if (v[b] != v[b])
        top = v[b]; // a NaN shows in the scale and so in the result
    }
#pragma unroll
    for (int o = 4; o; o >>= 1) {
      float other = __shfl_xor_sync(kAllLanes, top, o);
      top = other > top || other != other ? other : top;
    }
    const float scale = grid ? 1.0f : top / 127.0f;
    uint32_t word = 0;
    int sum = 0;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const int q = activationCode(v[b], scale, grid, first + b < L::kBackground);
      sum += q;
      word |= uint32_t(q & 255) << 8 * b;
    }
#pragma unroll
    for (int o = 4; o; o >>= 1)
      sum += __shfl_xor_sync(kAllLanes, sum, o);
    if (c >= end)
      continue;
    reinterpret_cast<uint32_t *>(out)[c * 8 + part] = word;
    if (part == 0) {
      reinterpret_cast<float *>(out + L::kScaleOffset)[c] = scale;
      reinterpret_cast<int32_t *>(out + L::kSumOffset)[c] = sum;
    }
  }
}

/// Records of `rows` rows x(m, k), k < L::kColumns, into `records` (L::kRecordBytes each). L: a
/// RecordLayout, or a Weight, which has one.
/// `index`: u32 [K], background columns then outliers, as the weight blob begins with; null when
/// the weight has none. A block owns a row.
template <class L, Normal Kind, class X>
OTF_DEVICE void record(X x, int64_t rows, float eps, const float *gamma, const float *beta,
                       const void *index, const float *grid, void *records) {
  __shared__ float shared[kWarps];
  constexpr int64_t K = L::kColumns;
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x) {
    auto row = [&](int64_t k) { return float(x(m, k)); };
    Moments stats = moments<Kind>(row, K, eps, shared);
    uint8_t *out = static_cast<uint8_t *>(records) + m * L::kRecordBytes;
    auto value = [&](int64_t k) { return normalised(stats, row(k), k, gamma, beta); };
    const uint32_t *columns = static_cast<const uint32_t *>(index);
    auto column = [&](int64_t i) { return L::kOutliers ? int64_t(__ldg(columns + i)) : i; };
    recordChunks<L>(0, L::kChunks, [&](int64_t i) { return value(column(i)); }, grid, out);
    constexpr int64_t kTail = (L::kRecordBytes - L::kRecordOutlierOffset) / 4;
    for (int64_t j = threadIdx.x; j < kTail; j += kThreads)
      reinterpret_cast<float *>(out + L::kRecordOutlierOffset)[j] =
          j < L::kOutliers ? value(column(L::kBackground + j)) : 0.0f;
  }
}

/// What makes a record of rotated values, a chunk a warp. `first`: the column of value 0.
template <class L, class Order> struct RotatedRecord {
  uint8_t *out;
  int64_t first;
  template <int Distance, int Count> __device__ __forceinline__ void take(int k, const float (&v)[Count]) const {
    recordLanes<L, Order, Distance / 32>(int((first + k) >> 5), v, nullptr, out);
  }
};

/// The same of rows that are rotated after the norm. R: a Rotation of L's columns; L has no outliers.
template <class L, Normal Kind, class R, class X>
OTF_DEVICE void recordRotated(X x, int64_t rows, float eps, const float *gamma, const float *beta,
                              const float *matrix, void *records) {
  static_assert(R::kColumns == L::kColumns && L::kOutliers == 0, "every column is rotated");
  __shared__ float shared[kWarps];
  __shared__ float values[R::kAtOnce];
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x) {
    auto row = [&](int64_t k) { return float(x(m, k)); };
    Moments stats = moments<Kind>(row, L::kColumns, eps, shared);
    uint8_t *out = static_cast<uint8_t *>(records) + m * L::kRecordBytes;
    rotatedRow<R>([&](int64_t k) { return normalised(stats, row(k), k, gamma, beta); }, matrix, values, RotatedRecord<L, NaturalOrder>{out, 0});
    constexpr int64_t kTail = (L::kRecordBytes - L::kRecordOutlierOffset) / 4;
    for (int64_t j = threadIdx.x; j < kTail; j += kThreads)
      reinterpret_cast<float *>(out + L::kRecordOutlierOffset)[j] = 0.0f;
  }
}

} // namespace otf
