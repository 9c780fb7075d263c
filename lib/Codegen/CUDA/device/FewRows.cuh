// SPDX-License-Identifier: Apache-2.0
//
// Contractions of up to 16 rows: the weights are streamed once (gemv).
//
// A warp owns a tile of eight rows, lane = (row = lane & 7, step = lane >> 3). A step is one chunk
// of 32 columns, so a warp reads four chunks at a time and no integer ever crosses lanes. `Split`
// warps of the block share a tile and divide its columns: narrow layers need them to have enough
// bytes in flight. Integer weights: lanes leave terms in shared memory, and one lane a result adds
// them in order. Plain weights: lanes that own a row meet in two shuffles, warps in shared memory.

namespace otf {

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
          int sum = 0;
          if (C::kOffset || (C::kZero && !kSigns))
            sum = r.bits(c, true);
          to[m * 8 * kStride + c] = chunkTerm<C>(bytes, signs, a, b, xScale, sum, scale, zero);
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

} // namespace otf
