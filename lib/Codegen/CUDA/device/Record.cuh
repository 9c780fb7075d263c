// SPDX-License-Identifier: Apache-2.0
//
// otf.prologue: a row of activations becomes the record that contractions read, once for all of
// them. Integer weights want bytes with one scale per 32 columns, in the order of the weight's
// column index, and the outlier columns as floats beside them. Plain weights read rows as they are.

namespace otf {

/// Chunk c of a record at `out`, by eight lanes of which each has four of its columns, v; whole warps take part. `isThere`: whether there is
/// such a chunk. `grid` as below. `Order`: where in a chunk a column's byte is (Codec.cuh).
template <class L, class Order>
OTF_DEVICE void recordChunk(int c, bool isThere, const float (&v)[4], const float *grid, uint8_t *out) {
  const int part = threadIdx.x & 7;
  float top = 0;
#pragma unroll
  for (int b = 0; b < 4; ++b) {
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
    // The clamp matters for subnormal scales only, where the division is coarse.
    int q = scale > 0 ? __float2int_rn(v[b] / scale) : 0;
    q = larger(-127, smaller(127, q));
    if (grid) // fmaxf gives -128 for NaN; the padding is no value of x and has no zero point
      q = int64_t(c) * 32 + part * 4 + b < L::kBackground
              ? int(fminf(fmaxf(rintf(v[b] / grid[0]) + grid[1], -128.0f), 127.0f))
              : 0;
    sum += q;
    word |= uint32_t(q & 255) << 8 * b;
  }
#pragma unroll
  for (int o = 4; o; o >>= 1)
    sum += __shfl_xor_sync(kAllLanes, sum, o);
  if (!isThere)
    return;
  if (Order::kNatural)
    reinterpret_cast<uint32_t *>(out)[c * 8 + part] = word;
  else
#pragma unroll
    for (int b = 0; b < 4; ++b)
      out[32 * c + Order::place(4 * part + b)] = uint8_t(word >> 8 * b);
  if (part == 0) {
    reinterpret_cast<float *>(out + L::kScaleOffset)[c] = scale;
    reinterpret_cast<int32_t *>(out + L::kSumOffset)[c] = sum;
  }
}

/// Chunks [begin, end) of a record at `out`. value(i): column i in the order of the record, i < L::kBackground. By the whole block;
/// eight lanes own 32 columns.
template <class L, class Order = NaturalOrder, class V>
OTF_DEVICE void recordChunks(int begin, int end, V value, const float *grid, uint8_t *out) {
  constexpr int kSets = kThreads / 8;
  const int part = threadIdx.x & 7;
  // The bound is rounded so that whole warps take part in the shuffles.
#pragma unroll 2
  for (int c = begin + int(threadIdx.x >> 3); c < begin + int(roundUp(end - begin, 4)); c += kSets) {
    float v[4];
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      int64_t i = int64_t(c) * 32 + part * 4 + b;
      v[b] = c < end && i < L::kBackground ? value(i) : 0.0f;
    }
    recordChunk<L, Order>(c, c < end, v, grid, out);
  }
}

/// Records of `rows` rows x(m, k), k < L::kColumns, into `records` (L::kRecordBytes each). L: a
/// RecordLayout, or a Weight, which has one.
/// `index`: u32 [K], background columns then outliers, as the weight blob begins with; null when
/// the weight has none. A block owns a row.
/// `grid`: the scale and zero point of all codes where the model gives them, and the record's scales are 1; null for a scale for
/// each 32 columns.
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

/// The same of rows that are rotated after the norm. R: a Rotation of L's columns; L has no outliers.
template <class L, Normal Kind, class R, class X>
OTF_DEVICE void recordRotated(X x, int64_t rows, float eps, const float *gamma, const float *beta,
                              const float *matrix, void *records) {
  static_assert(R::kColumns == L::kColumns && L::kOutliers == 0, "every column is rotated");
  __shared__ float shared[kWarps];
  __shared__ float rotated[R::kAtOnce];
  waitForInputs();
  for (int64_t m = blockIdx.x; m < rows; m += gridDim.x) {
    auto row = [&](int64_t k) { return float(x(m, k)); };
    Moments stats = moments<Kind>(row, L::kColumns, eps, shared);
    uint8_t *out = static_cast<uint8_t *>(records) + m * L::kRecordBytes;
    for (int64_t first = 0; first < L::kColumns; first += R::kAtOnce) {
      const int count = int(smaller<int64_t>(R::kAtOnce, L::kColumns - first));
      __syncthreads(); // the last reader of `rotated` is done
      rotateInto<R>([&](int64_t k) { return normalised(stats, row(k), k, gamma, beta); }, first, count, matrix, rotated);
      recordChunks<L>(int(first / 32), int(divideUp(first + count, 32)), [&](int64_t i) { return rotated[i - first]; },
                      nullptr, out);
    }
    constexpr int64_t kTail = (L::kRecordBytes - L::kRecordOutlierOffset) / 4;
    for (int64_t j = threadIdx.x; j < kTail; j += kThreads)
      reinterpret_cast<float *>(out + L::kRecordOutlierOffset)[j] = 0.0f;
  }
}

} // namespace otf
