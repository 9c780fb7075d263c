// SPDX-License-Identifier: Apache-2.0
//
// Contractions of more than 16 rows: blocks of 64 x 128 results share decoded weights in shared memory (gemm).

namespace otf {

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

} // namespace otf
