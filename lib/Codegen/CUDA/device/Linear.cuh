// SPDX-License-Identifier: Apache-2.0
//
// y[m][n] = sum over k of x[m][k] * W[n][k], from records (Record.cuh) and encoded weights
// (Codec.cuh), handed to an epilogue f(m, n, acc) once for every m < rows, n < N. Up to 16 rows it
// streams the weights once (gemv); beyond, blocks of 64 x 128 results share decoded weights in
// shared memory (gemm). Integer weights: the sum over 32 columns (a chunk) is an exact integer, and
// what follows has the bits of the CPU kernel, whatever the launch and the number of rows:
//
//     term = (dot * xScale) * scale, with zeros fmaf(xScale * xSum, zero, term), with signs fmaf(signDot * xScale, zero, term)
//     acc = term[0] + term[1] + ... in this order, then the outlier columns' w * x in theirs
//
// Plain weights: the order of the sums is fixed by the launch, so results repeat.

namespace otf {

// ---- rows of x -------------------------------------------------------------------------------
// What contractions read is a set of rows: X::row(m) gives 16 bytes of codes, the bits of a scale or a
// sum, an outlier, four floats. `Rows` are records (or rows of floats) one after another.

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

// ---- up to 16 rows ---------------------------------------------------------------------------
// A warp owns a tile of eight rows, lane = (row = lane & 7, step = lane >> 3). A step is one chunk
// of 32 columns, so a warp reads four chunks at a time and no integer ever crosses lanes. `Split`
// warps of the block share a tile and divide its columns: narrow layers need them to have enough
// bytes in flight. Integer weights: lanes leave terms in shared memory, and one lane a result adds
// them in order. Plain weights: lanes that own a row meet in two shuffles, warps in shared memory.

/// Values k ... k+3 of a row of K floats, zeros past the end. k is a multiple of 4.
template <int64_t K> OTF_DEVICE float4 rowQuad(const float *row, int64_t k) {
  if (K % 4 == 0)
    return k < K ? load4(row + k) : make_float4(0, 0, 0, 0);
  return make_float4(k < K ? row[k] : 0, k + 1 < K ? row[k + 1] : 0, k + 2 < K ? row[k + 2] : 0,
                     k + 3 < K ? row[k + 3] : 0);
}

/// Floats of shared memory for the terms of gemvInteger: with sixteen rows and one warp a tile, there
/// is room for the four chunks that a warp reads at a time.
constexpr int kTermFloats = 6144;

/// Terms of a result in shared memory, so that reads of four down the results, and writes of eight
/// results times four terms, are free of bank conflicts: an odd multiple of four.
constexpr int termStride(int terms) { return terms / 4 % 2 ? terms : terms + 4; }
/// The most terms, of `all`, for which there is room, in multiples of `step`.
constexpr int termWindow(int room, int step, int all) {
  int window = step;
  while (window < all && termStride(window + step) <= room)
    window += step;
  return window;
}

/// `shared`: kTermFloats.
template <class W, int M, int Split, class X, class F>
OTF_DEVICE void gemvInteger(const uint8_t *tiles, const X &x, int rows, float *shared, F &f) {
  using C = typename W::Codec;
  constexpr bool kSigns = hasSigns<C>(0);
  constexpr int kAtOnce = kWarps / Split, kTeam = 32 * Split; // tiles of a block; threads of a tile
  constexpr int kResults = 8 * M, kOwn = (kResults + kTeam - 1) / kTeam;
  constexpr int kTerms = W::kChunks + int(W::kOutliers), kStep = 4 * Split;
  constexpr int kRoom = kTermFloats / (kAtOnce * kResults);
  constexpr int kWindow = termWindow(kRoom, kStep, kTerms), kStride = termStride(kWindow);
  static_assert(kStride <= kRoom, "a window fits");
  const int lane = threadIdx.x & 31, row = lane & 7, mine = int(threadIdx.x) % kTeam;
  const int first = mine / 32 * 4 + (lane >> 3);
  float *terms = shared + int(threadIdx.x) / kTeam * (kResults * kStride);
  auto meet = [] {
    if (Split == 1)
      __syncwarp();
    else
      __syncthreads();
  };
  for (int64_t base = int64_t(blockIdx.x) * kAtOnce; base < W::kTiles;
       base += int64_t(gridDim.x) * kAtOnce) {
    const int64_t t = base + int(threadIdx.x) / kTeam;
    const uint8_t *tile = tiles + t * W::kTileBytes;
    float acc[kOwn];
#pragma unroll
    for (int o = 0; o < kOwn; ++o)
      acc[o] = 0;
#pragma unroll 1
    for (int from = 0; from < kTerms; from += kWindow) {
      const int end = t < W::kTiles ? smaller(from + kWindow, kTerms) : 0;
      float *to = terms + row * kStride - from;
#pragma unroll M == 1 ? 4 : 1
      for (int c = from + first; c < smaller(end, int(W::kChunks)); c += kStep) {
        uint32_t code[C::kWords], bytes[8], signs[kSigns ? 8 : 1];
        W::load(tile, c, row, code);
        const float scale = W::scale(tile, c, row), zero = W::zero(tile, c, row);
        C::decode(code, bytes);
        if constexpr (kSigns)
          C::signs(code, signs);
#pragma unroll
        for (int m = 0; m < M; ++m) {
          if (M > 1 && m >= rows)
            break;
          // Made anew for each m: sixteen pointers would take thirty-two registers.
          const auto r = x.row(m);
          const uint4 a = r.codes(c, 0), b = r.codes(c, 1);
          const float xScale = __int_as_float(r.bits(c, false));
          int dot = dot4(bytes[0], a.x, 0);
          dot = dot4(bytes[1], a.y, dot);
          dot = dot4(bytes[2], a.z, dot);
          dot = dot4(bytes[3], a.w, dot);
          dot = dot4(bytes[4], b.x, dot);
          dot = dot4(bytes[5], b.y, dot);
          dot = dot4(bytes[6], b.z, dot);
          dot = dot4(bytes[7], b.w, dot);
          int sum = 0;
          if (C::kOffset || (C::kZero && !kSigns))
            sum = r.bits(c, true);
          float term = float(dot - C::kOffset * sum) * xScale * scale;
          if constexpr (kSigns) {
            int second = dot4(signs[0], a.x, 0);
            second = dot4(signs[1], a.y, second);
            second = dot4(signs[2], a.z, second);
            second = dot4(signs[3], a.w, second);
            second = dot4(signs[4], b.x, second);
            second = dot4(signs[5], b.y, second);
            second = dot4(signs[6], b.z, second);
            second = dot4(signs[7], b.w, second);
            term = fmaf(float(second) * xScale, zero, term);
          } else if (C::kZero) {
            term = fmaf(xScale * float(sum), zero, term);
          }
          to[m * 8 * kStride + c] = term;
        }
      }
      // Outlier columns, and zeros up to a multiple of four, which is what is read.
      const int padded = from + int(roundUp(end - from, 4));
#pragma unroll 1
      for (int c = from + first; c < padded; c += kStep) {
        if (c < W::kChunks)
          continue;
        const int j = c - W::kChunks;
        const float w = j < int(W::kOutliers) ? W::outlier(tile, j, row) : 0.0f;
#pragma unroll
        for (int m = 0; m < M; ++m) {
          if (M > 1 && m >= rows)
            break;
          to[m * 8 * kStride + c] = j < int(W::kOutliers) ? w * x.row(m).outlier(j) : 0.0f;
        }
      }
      meet();
#pragma unroll
      for (int o = 0; o < kOwn; ++o) {
        const int result = mine + o * kTeam;
        const float *at = terms + result * kStride;
        if (kResults % kTeam == 0 || result < kResults)
          for (int i = 0; i < end - from; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(at + i);
            acc[o] = acc[o] + four.x + four.y + four.z + four.w;
          }
      }
      meet(); // before the terms are written again
    }
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const int result = mine + o * kTeam, m = result >> 3;
      const int64_t n = t * 8 + (result & 7);
      if (result < kResults && m < rows && n < W::kRows)
        f(int64_t(m), n, acc[o]);
    }
  }
}

/// Sums of one warp, plain weights: acc[m] over the columns that are its part of `tile`.
template <class W, int M, int Split, class X>
OTF_DEVICE void dotTile(const uint8_t *tile, const X &x, int rows, int part, float (&acc)[M]) {
  const int lane = threadIdx.x & 31, row = lane & 7, step = lane >> 3;
  // Four consecutive columns a lane, so that activations come 16 bytes at a time where rows
  // allow it.
#pragma unroll M == 1 ? 4 : 1
  for (int64_t k = (part * 4 + step) * 4; k < W::kColumns; k += 16 * Split) {
    float w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      w[i] = k + i < W::kColumns ? W::at(tile, k + i, row) : 0.0f;
#pragma unroll
    for (int m = 0; m < M; ++m) {
      if (M > 1 && m >= rows)
        break;
      const float4 four = x.row(m).quad(k);
      acc[m] = fmaf(w[0], four.x, acc[m]);
      acc[m] = fmaf(w[1], four.y, acc[m]);
      acc[m] = fmaf(w[2], four.z, acc[m]);
      acc[m] = fmaf(w[3], four.w, acc[m]);
    }
  }
}

/// Plain weights. `shared`: kWarps * 8 * M floats.
template <class W, int M, int Split, class X, class F>
OTF_DEVICE void gemvPlain(const uint8_t *tiles, const X &x, int rows, float *shared, F &f) {
  static_assert(Split >= 1 && Split <= kWarps && kWarps % Split == 0, "warps divide evenly");
  constexpr int kAtOnce = kWarps / Split; // tiles of a block
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, row = lane & 7, step = lane >> 3;
  for (int64_t base = int64_t(blockIdx.x) * kAtOnce; base < W::kTiles;
       base += int64_t(gridDim.x) * kAtOnce) {
    const int64_t t = base + warp / Split;
    float acc[M];
#pragma unroll
    for (int m = 0; m < M; ++m)
      acc[m] = 0;
    if (t < W::kTiles)
      dotTile<W, M, Split>(tiles + t * W::kTileBytes, x, rows, warp % Split, acc);
#pragma unroll
    for (int m = 0; m < M; ++m) {
      acc[m] += __shfl_xor_sync(kAllLanes, acc[m], 8);
      acc[m] += __shfl_xor_sync(kAllLanes, acc[m], 16);
    }
    if (Split == 1) {
#pragma unroll
      for (int m = 0; m < M; ++m)
        if ((m & 3) == step && m < rows && t * 8 + row < W::kRows)
          f(int64_t(m), t * 8 + row, acc[m]);
      continue;
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < M; ++m)
      if ((m & 3) == step)
        shared[(warp * M + m) * 8 + row] = acc[m];
    __syncthreads();
    for (int i = threadIdx.x; i < kAtOnce * M * 8; i += kThreads) {
      const int slot = i / (M * 8), m = i / 8 % M, r = i & 7;
      const int64_t n = (base + slot) * 8 + r;
      float sum = 0;
#pragma unroll
      for (int s = 0; s < Split; ++s)
        sum += shared[((slot * Split + s) * M + m) * 8 + r];
      if (m < rows && n < W::kRows)
        f(int64_t(m), n, sum);
    }
  }
}

template <class W, int M, int Split, class X, class F>
OTF_DEVICE void gemv(const uint8_t *tiles, const X &x, int rows, float *shared, F &f) {
  if constexpr (W::Codec::kInteger)
    gemvInteger<W, M, Split>(tiles, x, rows, shared, f);
  else
    gemvPlain<W, M, Split>(tiles, x, rows, shared, f);
}

// ---- more than 16 rows -----------------------------------------------------------------------

constexpr int kBlockM = 64, kBlockN = 128;

/// Integer weights: a stage is two chunks (64 columns), stored as words [row][16 + 4]. Rows of 20
/// words make the MMA's reads free of bank conflicts. Eight warps hold 32 x 32 results each.
template <bool Signs> struct IntegerStage {
  static constexpr int kStride = 20;
  uint32_t x[kBlockM * kStride];
  uint32_t w[kBlockN * kStride];
  float xScale[2][kBlockM], xSum[2][kBlockM]; // a sum is at most 32 * 127: exact in f32
  float wScale[2][kBlockN], wZero[2][kBlockN];
  uint32_t signs[Signs ? 2 * kBlockN : 1]; // as the codec has them: a word a row and chunk. Last: the rest is read 8 and 16 bytes at once
};

/// c += a (16 rows of x, 32 columns) * b (8 rows of w). Fragments: lane = 4g + t;
/// a: (g, t), (g+8, t), (g, t+4), (g+8, t+4); b: (g, t), (g, t+4), as (row, word of four columns);
/// c: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1).
OTF_DEVICE void mma(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  // Turing has the 8 x 8 x 16 shape, whose fragments are quarters of these.
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(c[0]), "+r"(c[1])
        : "r"(a[2 * h]), "r"(b[h]));
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(c[2]), "+r"(c[3])
        : "r"(a[2 * h + 1]), "r"(b[h]));
  }
#endif
}

template <class W, class X, class F>
OTF_DEVICE void gemmInteger(const uint8_t *tiles, const X &x, int rows,
                            IntegerStage<hasSigns<typename W::Codec>(0)> &stage, F &f) {
  using C = typename W::Codec;
  constexpr bool kSigns = hasSigns<C>(0);
  // Read apart from gemv's: shared with it, what follows from the thread's number lives in
  // registers across both, and here every one is needed.
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  constexpr int kS = IntegerStage<kSigns>::kStride;
  constexpr int kStages = (W::kChunks + 1) / 2;
  constexpr int kAcross = int(divideUp(W::kRows, kBlockN));
  const int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
  const int warpM = (warp & 1) * 32, warpN = (warp >> 1) * 32;
  // What this thread brings in: 16 bytes of an x row, and one w row in one of the two chunks.
  const int xRow = thread >> 2, xPart = thread & 3;
  const int wRow = thread >> 1, wChunk = thread & 1;

  const int blocks = (rows + kBlockM - 1) / kBlockM * kAcross;
#pragma unroll 1
  for (int block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int m0 = block / kAcross * kBlockM, n0 = block % kAcross * kBlockN;
    const auto xFrom = x.row(smaller(m0 + xRow, rows - 1));
    const int64_t tile = smaller((n0 + wRow) / 8, int(W::kTiles) - 1);
    const uint8_t *wFrom = tiles + tile * W::kTileBytes;

    uint32_t code[C::kWords];
    uint4 q;
    float scale, zero, xMeta; // xMeta: scale or sum of an x chunk, by even and odd threads
    auto fetch = [&](int s) {
      const int c = 2 * s + wChunk, xc = 2 * s + (xPart >> 1);
      scale = zero = xMeta = 0;
      q = make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int i = 0; i < C::kWords; ++i)
        code[i] = 0;
      if (c < W::kChunks) {
        W::load(wFrom, c, wRow & 7, code);
        scale = W::scale(wFrom, c, wRow & 7);
        zero = W::zero(wFrom, c, wRow & 7);
      }
      if (xc < W::kChunks) {
        q = xFrom.codes(xc, xPart & 1);
        const int32_t bits = xFrom.bits(xc, xPart & 1);
        xMeta = xPart & 1 ? float(bits) : __int_as_float(bits);
      }
    };
    auto store = [&] {
      uint32_t bytes[8];
      C::decode(code, bytes);
      uint4 *w = reinterpret_cast<uint4 *>(stage.w + wRow * kS + 8 * wChunk);
      w[0] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
      w[1] = make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
      if constexpr (kSigns)
        stage.signs[2 * wRow + wChunk] = code[C::kWords - 1];
      stage.wScale[wChunk][wRow] = scale;
      if (C::kZero)
        stage.wZero[wChunk][wRow] = zero;
      *reinterpret_cast<uint4 *>(stage.x + xRow * kS + 4 * xPart) = q;
      (xPart & 1 ? stage.xSum : stage.xScale)[xPart >> 1][xRow] = xMeta;
    };

    float acc[2][4][4] = {};
    fetch(0);
#pragma unroll 1
    for (int s = 0; s < kStages; ++s) {
      __syncthreads(); // everyone has read the previous stage
      store();
      __syncthreads();
      if (s + 1 < kStages)
        fetch(s + 1);
#pragma unroll 1
      for (int h = 0; h < 2; ++h) { // unrolled it holds more than the 128 registers of a thread
        uint32_t a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            a[i][j] = stage.x[(warpM + 16 * i + g + 8 * (j & 1)) * kS + 8 * h + t + 4 * (j >> 1)];
        float xs[2][2], xo[2][2], xz[2][2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int m = warpM + 16 * i + 8 * j + g;
            xs[i][j] = stage.xScale[h][m];
            // What the sum of activations is for: the offset of the codes, and their zero.
            xo[i][j] = C::kOffset ? -float(C::kOffset) * stage.xSum[h][m] : 0.0f;
            xz[i][j] = C::kZero && !kSigns ? xs[i][j] * stage.xSum[h][m] : 0.0f;
          }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const uint32_t *w = stage.w + (warpN + 8 * j + g) * kS + 8 * h + t;
          const uint32_t b[2] = {w[0], w[4]};
          const float2 ws =
              *reinterpret_cast<const float2 *>(&stage.wScale[h][warpN + 8 * j + 2 * t]);
          float2 wz = make_float2(0, 0);
          if (!kSigns)
            wz = *reinterpret_cast<const float2 *>(&stage.wZero[h][warpN + 8 * j + 2 * t]);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            int c[4] = {0, 0, 0, 0};
            mma(c, a[i], b);
            float terms[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              float dot = float(c[e]);
              if (C::kOffset)
                dot += xo[i][e >> 1]; // below 2^24, so exact
              terms[e] = dot * xs[i][e >> 1] * (e & 1 ? ws.y : ws.x);
              c[e] = 0;
            }
            if constexpr (kSigns) {
              const uint32_t bits = stage.signs[2 * (warpN + 8 * j + g) + h];
              const uint32_t second[2] = {C::sign(bits, t), C::sign(bits, t + 4)};
              mma(c, a[i], second);
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              float term = terms[e];
              if (kSigns) // read here: two products leave no registers to hold it from before
                term = fmaf(float(c[e]) * xs[i][e >> 1],
                            *const_cast<const volatile float *>(&stage.wZero[h][warpN + 8 * j + 2 * t + (e & 1)]), term);
              else if (C::kZero)
                term = fmaf(xz[i][e >> 1], e & 1 ? wz.y : wz.x, term);
              acc[i][j][e] += term;
            }
          }
        }
      }
    }
    if constexpr (W::kOutliers != 0) { // the panel, eight columns at a time
      float *xs = reinterpret_cast<float *>(stage.x), *ws = reinterpret_cast<float *>(stage.w);
#pragma unroll 1
      for (int o = 0; o < int(W::kOutliers); o += 8) {
        const int many = smaller(8, int(W::kOutliers) - o);
        __syncthreads();
        for (int at = thread; at < 8 * kBlockM; at += kThreads) {
          const int part = at & 7, m = at >> 3;
          xs[part * kBlockM + m] =
              part < many ? x.row(smaller(m0 + m, rows - 1)).outlier(o + part) : 0.0f;
        }
        for (int at = thread; at < 8 * kBlockN; at += kThreads) {
          const int row = at & 7, part = at >> 3 & 7, t8 = at >> 6;
          const uint8_t *from = tiles + smaller(n0 / 8 + t8, int(W::kTiles) - 1) * W::kTileBytes;
          ws[part * kBlockN + 8 * t8 + row] = part < many ? W::outlier(from, o + part, row) : 0.0f;
        }
        __syncthreads();
#pragma unroll 1
        for (int part = 0; part < many; ++part)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float *from = xs + part * kBlockM + warpM + 16 * i + g;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              const float2 w =
                  *reinterpret_cast<const float2 *>(ws + part * kBlockN + warpN + 8 * j + 2 * t);
              acc[i][j][0] += w.x * from[0];
              acc[i][j][1] += w.y * from[0];
              acc[i][j][2] += w.x * from[8];
              acc[i][j][3] += w.y * from[8];
            }
          }
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int m = m0 + warpM + 16 * i + g + 8 * (e >> 1);
          const int n = n0 + warpN + 8 * j + 2 * t + (e & 1);
          if (m < rows && n < W::kRows)
            f(int64_t(m), int64_t(n), acc[i][j][e]);
        }
  }
}

/// Plain weights: a stage is 16 columns, transposed so that rows lie together. A thread holds
/// 8 rows of x times 4 rows of w.
struct PlainStage {
  static constexpr int kDepth = 16;
  float x[kDepth][kBlockM + 4];
  float w[kDepth][kBlockN];
};

template <class W, class X, class F>
OTF_DEVICE void gemmPlain(const uint8_t *tiles, const X &x, int rows, PlainStage &stage, F &f) {
  constexpr int kAcross = int(divideUp(W::kRows, kBlockN));
  constexpr int kDepth = PlainStage::kDepth;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int blocks = (rows + kBlockM - 1) / kBlockM * kAcross;
#pragma unroll 1
  for (int block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int m0 = block / kAcross * kBlockM, n0 = block % kAcross * kBlockN;
    float acc[8][4] = {};
    const auto xFrom = x.row(smaller(m0 + int(threadIdx.x >> 2), rows - 1));
#pragma unroll 1
    for (int64_t k0 = 0; k0 < W::kColumns; k0 += kDepth) {
      __syncthreads();
      {
        const int m = threadIdx.x >> 2, k = (threadIdx.x & 3) * 4;
        const float4 v = xFrom.quad(k0 + k);
        stage.x[k][m] = v.x;
        stage.x[k + 1][m] = v.y;
        stage.x[k + 2][m] = v.z;
        stage.x[k + 3][m] = v.w;
      }
#pragma unroll
      for (int i = 0; i < kDepth * kBlockN / kThreads; ++i) {
        // Eight rows of a column are together in the tile; then come the columns.
        const int at = threadIdx.x + i * kThreads;
        const int row = at & 7, k = at >> 3 & (kDepth - 1), tile = at / (8 * kDepth);
        const int64_t t = n0 / 8 + tile;
        stage.w[k][tile * 8 + row] = t < W::kTiles && k0 + k < W::kColumns
                                         ? W::at(tiles + t * W::kTileBytes, k0 + k, row)
                                         : 0.0f;
      }
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < kDepth; ++k) {
        const float4 w = *reinterpret_cast<const float4 *>(&stage.w[k][lane * 4]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float xi = stage.x[k][warp * 8 + i];
          acc[i][0] = fmaf(xi, w.x, acc[i][0]);
          acc[i][1] = fmaf(xi, w.y, acc[i][1]);
          acc[i][2] = fmaf(xi, w.z, acc[i][2]);
          acc[i][3] = fmaf(xi, w.w, acc[i][3]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int m = m0 + warp * 8 + i, n = n0 + lane * 4 + j;
        if (m < rows && n < W::kRows)
          f(int64_t(m), int64_t(n), acc[i][j]);
      }
  }
}

// ---- the kernel ------------------------------------------------------------------------------

template <class W, bool = W::Codec::kInteger> struct StageOf {
  using type = IntegerStage<hasSigns<typename W::Codec>(0)>;
};
template <class W> struct StageOf<W, false> {
  using type = PlainStage;
};

/// `weight`: the blob of a W. `x`: `rows` rows, Rows or Windows. f(m, n, acc) is called once for
/// every result, by any thread. `Split`: a power of two up to kWarps. Grid: any; one block per
/// kWarps / Split tiles fills the machine.
template <class W, int Split, class X, class F>
OTF_DEVICE void contract(const void *weight, const X &x, int64_t rows, F f) {
  using Stage = typename StageOf<W>::type;
  constexpr int kStageFloats = int(sizeof(Stage) / sizeof(float));
  static_assert(kStageFloats >= kWarps * 8 * 16, "gemv's sums use it too");
  constexpr bool integer = W::Codec::kInteger;
  __shared__ __align__(16) float shared[integer ? larger(kStageFloats, kTermFloats) : kStageFloats];
  Stage &stage = *reinterpret_cast<Stage *>(shared);
  const uint8_t *tiles = static_cast<const uint8_t *>(weight) + W::kIndexBytes;
  waitForInputs();
  if (rows == 1)
    gemv<W, 1, Split>(tiles, x, int(rows), shared, f);
  else if (rows <= 4 && rows > 0)
    gemv<W, 4, Split>(tiles, x, int(rows), shared, f);
  else if (rows <= 16 && rows > 0)
    gemv<W, 16, Split>(tiles, x, int(rows), shared, f);
  else if constexpr (W::Codec::kInteger)
    gemmInteger<W>(tiles, x, int(rows), stage, f);
  else
    gemmPlain<W>(tiles, x, int(rows), stage, f);
}

/// The same for records of W::kRecordBytes, one after another.
template <class W, int Split, class F>
OTF_DEVICE void linear(const void *weight, const void *records, int64_t rows, F f) {
  contract<W, Split>(weight, Rows<W>{static_cast<const uint8_t *>(records)}, rows, f);
}

} // namespace otf
