// SPDX-License-Identifier: Apache-2.0
//
// One warp's blocks of keys, where a row of keys and one of values are whole vectors. Decoding waits for memory: so what a block reads
// is asked for before anything of it is used, values with keys, and queries only after both. Keys come some 128 bytes of each row at a
// time, as they lie, into registers; through the warp's stage in shared memory they are turned, so that a lane has a key. A lane's
// values are next to one another. The arithmetic is that of attendBlock.

namespace otf {

template <bool IsScaled> struct UnitOf {
  using Type = uint4;
};
template <> struct UnitOf<true> { // the scales behind rows leave them aligned to four bytes
  using Type = uint32_t;
};

/// Eight values of a row of keys, from units of it.
OTF_DEVICE void unpackEight(const uint4 *units, Float<float>, float (&x)[8]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    x[4 * i] = __uint_as_float(units[i].x);
    x[4 * i + 1] = __uint_as_float(units[i].y);
    x[4 * i + 2] = __uint_as_float(units[i].z);
    x[4 * i + 3] = __uint_as_float(units[i].w);
  }
}
OTF_DEVICE void unpackWord(uint32_t word, Float<float>, float *x) { x[0] = __uint_as_float(word); }
OTF_DEVICE void unpackWord(uint32_t word, Float<half_t>, float *x) {
  x[0] = toFloat(half_t{uint16_t(word)});
  x[1] = toFloat(half_t{uint16_t(word >> 16)});
}
/// A byte under the exponent of 2^23 is 2^23 + byte; conversions of integers have a fourth of the rate.
OTF_DEVICE void unpackWord(uint32_t word, Float<int8_t>, float *x) {
  word ^= 0x80808080u;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    x[i] = __uint_as_float(permuteBytes(word, 0x4b000000u, 0x7440u + i)) - 8388736.0f;
}
OTF_DEVICE void unpackEight(const uint4 *units, Float<half_t> type, float (&x)[8]) {
  const uint4 unit = *units;
  unpackWord(unit.x, type, x);
  unpackWord(unit.y, type, x + 2);
  unpackWord(unit.z, type, x + 4);
  unpackWord(unit.w, type, x + 6);
}
OTF_DEVICE void unpackEight(const uint32_t *units, Float<int8_t> type, float (&x)[8]) {
  unpackWord(units[0], type, x);
  unpackWord(units[1], type, x + 4);
}

template <class S, class T, int R> struct KeyStream {
  using Unit = typename UnitOf<kScaled<T>>::Type;
  static constexpr bool kFits = S::D % 8 == 0 && (S::DV == 32 || S::DV == 64 || S::DV == 128 || S::DV == 256);
  static constexpr int kElements = sizeof(Unit) / sizeof(T), kUnits = S::D / kElements; // of a unit; of a row
  static constexpr int kPiece = (R < 3 ? 128 : 64) / sizeof(Unit), kPieces = (kUnits + kPiece - 1) / kPiece;
  static constexpr int kHeld = kUnits < 1 ? 1 : kUnits < kPiece ? kUnits : kPiece;
  static constexpr int kStride = kPiece + 1; // odd: 32 lanes that read down a column of the stage meet all banks
  static_assert(32 * kStride * sizeof(Unit) <= 4 * S::kStage, "the stage holds a piece of each key");
  // What is on its way, as far as there are registers: one row has two pieces and some values from the beginning, and more values when
  // pieces need none any more.
  static constexpr int kSlots = R == 1 && kPieces == 2 ? 2 : 1, kRing = 2;
  static constexpr int kOwn = S::DV >= 32 ? S::DV / 32 : 1, kOwnBytes = kOwn * sizeof(T), kWords = kOwnBytes < 4 ? 1 : kOwnBytes / 4;
  static constexpr int kBatch = (R == 1 ? 16 : 8) / kWords; // values of so many keys fill 16 registers, or 8
  static constexpr int kBatches = kKeyBlock / kBatch;
  static constexpr int kWeights = R == 1 ? 1 : R == 2 ? 2 : 4; // floats of a key's weights in the stage

  const uint8_t *keys, *values;
  int keyBytes, valueBytes, here;
  Unit piece[kSlots][kHeld];
  uint32_t value[kRing][kBatch * kWords];
  float keyScale, valueScale;

  static __device__ __forceinline__ constexpr int unitsOf(int p) { return p + 1 < kPieces ? kPiece : kUnits - p * kPiece; }

  /// Where in the piece what a lane loads i-th is: of a key past the last one it is zeros. One address and constants, as far as may be.
  __device__ __forceinline__ void loadPiece(int p) {
    const int lane = threadIdx.x & 31, count = unitsOf(p);
    const uint8_t *from = keys + lane / count * keyBytes + (p * kPiece + lane % count) * int(sizeof(Unit));
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i < count) {
        int key = 32 / count * i + lane / count;
        const uint8_t *unit = from + 32 / count * i * keyBytes;
        if (32 % count != 0) {
          key = (32 * i + lane) / count;
          unit = keys + key * keyBytes + (p * kPiece + (32 * i + lane) % count) * int(sizeof(Unit));
        }
        piece[p % kSlots][i] = Unit{};
        if (key < here)
          piece[p % kSlots][i] = *reinterpret_cast<const Unit *>(unit);
      }
  }
  __device__ __forceinline__ void storePiece(int p, Unit *stage) const {
    const int lane = threadIdx.x & 31, count = unitsOf(p);
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (i < count) {
        const int at = 32 * i + lane;
        stage[at / count * kStride + at % count] = piece[p % kSlots][i];
      }
  }
  __device__ __forceinline__ void loadValues(int batch) {
    const uint8_t *first = values + int(threadIdx.x & 31) * kOwnBytes;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const uint8_t *from = first + (batch * kBatch + i) * valueBytes;
      uint32_t *to = value[batch % kRing] + i * kWords;
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        to[w] = 0; // adds nothing to any sum
      if (batch * kBatch + i >= here)
        continue;
      if constexpr (kOwnBytes == 1) {
        to[0] = *from;
      } else if constexpr (kOwnBytes == 2) {
        to[0] = *reinterpret_cast<const uint16_t *>(from);
      } else if constexpr (kScaled<T> || kWords == 1) {
#pragma unroll
        for (int w = 0; w < kWords; ++w)
          to[w] = reinterpret_cast<const uint32_t *>(from)[w];
      } else if constexpr (kWords == 2) {
        const uint2 two = *reinterpret_cast<const uint2 *>(from);
        to[0] = two.x;
        to[1] = two.y;
      } else {
#pragma unroll
        for (int w = 0; w < kWords; w += 4) {
          const uint4 four = reinterpret_cast<const uint4 *>(from)[w / 4];
          to[w] = four.x;
          to[w + 1] = four.y;
          to[w + 2] = four.z;
          to[w + 3] = four.w;
        }
      }
    }
  }

  __device__ __forceinline__ void loadValues(int first, int end) {
#pragma unroll
    for (int batch = first; batch < smaller(end, kBatches); ++batch)
      loadValues(batch);
  }

  /// Asks for the block of keys at `base`, if it is before `last`.
  __device__ __forceinline__ void begin(int b, int kvHead, int base, int last, Heads<T> k, Heads<T> v) {
    keys = reinterpret_cast<const uint8_t *>(k.at(b, kvHead, base));
    values = reinterpret_cast<const uint8_t *>(v.at(b, kvHead, base));
    keyBytes = int(k.row * sizeof(T));
    valueBytes = int(v.row * sizeof(T));
    here = smaller(kKeyBlock, last - base);
#pragma unroll
    for (int p = 0; p < kSlots; ++p)
      loadPiece(p);
    if (R == 1 && kSlots == 1)
      loadValues(0);
    if constexpr (kScaled<T>) {
      const int mine = threadIdx.x & 31;
      keyScale = valueScale = 0;
      if (mine < here) {
        keyScale = *reinterpret_cast<const float *>(keys + mine * keyBytes + S::D);
        valueScale = *reinterpret_cast<const float *>(values + mine * valueBytes + S::DV);
      }
    }
  }

  /// The block that was asked for, at `base`. acc[r][i] is value kOwn * lane + i.
  template <class Mask>
  __device__ __forceinline__ void attend(const float *qs, float *shared, int b, int kvHead, RowOf row, int queries, int base, int last,
                                         float scale, float softcap, Mask mask, float (&top)[R], float (&total)[R], float (&acc)[R][kOwn]) {
    const int lane = threadIdx.x & 31;
    Unit *stage = reinterpret_cast<Unit *>(shared);
    float dot[R][8];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        dot[r][i] = 0;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      __syncwarp(); // the stage's last readers are done
      storePiece(p, stage);
      __syncwarp();
      if (p + kSlots < kPieces)
        loadPiece(p + kSlots);
      if (R == 1 && kSlots == 2 && p + 2 == kPieces)
        loadValues(0);
      if (R == 1 && p + 1 == kPieces)
        loadValues(1, kRing);
      constexpr int kStep = 8 / kElements;
#pragma unroll R == 1 && kPieces < 3 ? 2 : 1
      for (int u = 0; u < unitsOf(p); u += kStep) {
        Unit units[kStep];
#pragma unroll
        for (int i = 0; i < kStep; ++i)
          units[i] = stage[lane * kStride + u + i];
        float x[8];
        unpackEight(units, Float<T>(), x);
#pragma unroll
        for (int r = 0; r < R; ++r) {
          // Or all queries' loads are begun at once, and registers spill.
          if (R > 2 && r == R / 2)
            __syncwarp();
          const float4 *q = reinterpret_cast<const float4 *>(qs + r * S::kQ + (p * kPiece + u) * kElements);
          const float4 low = q[0], high = q[1];
          dot[r][0] = fmaf(low.x, x[0], dot[r][0]);
          dot[r][1] = fmaf(low.y, x[1], dot[r][1]);
          dot[r][2] = fmaf(low.z, x[2], dot[r][2]);
          dot[r][3] = fmaf(low.w, x[3], dot[r][3]);
          dot[r][4] = fmaf(high.x, x[4], dot[r][4]);
          dot[r][5] = fmaf(high.y, x[5], dot[r][5]);
          dot[r][6] = fmaf(high.z, x[6], dot[r][6]);
          dot[r][7] = fmaf(high.w, x[7], dot[r][7]);
        }
      }
    }
    if (R > 1)
      loadValues(0, kRing);
    float s[R];
#pragma unroll
    for (int r = 0; r < R; ++r)
      s[r] = ((dot[r][0] + dot[r][1]) + (dot[r][2] + dot[r][3])) + ((dot[r][4] + dot[r][5]) + (dot[r][6] + dot[r][7]));
    weighKeys<S, T, R>(s, keyScale, valueScale, b, kvHead, row, queries, base + lane, last, scale, softcap, mask, top, total);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R; ++r)
      shared[lane * kWeights + r] = s[r];
    __syncwarp();
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        acc[r][i] = 0;
#pragma unroll
    for (int batch = 0; batch < kBatches; ++batch) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int j = batch * kBatch + i;
        if (j % 8 == 0) // likewise, of weights
          __syncwarp();
        float w[4], x[kWords * 4 / sizeof(T)];
        if (kWeights == 1)
          w[0] = shared[j];
        if (kWeights == 2) {
          const float2 two = reinterpret_cast<const float2 *>(shared)[j];
          w[0] = two.x, w[1] = two.y;
        }
        if (kWeights == 4) {
          const float4 four = reinterpret_cast<const float4 *>(shared)[j];
          w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
        }
#pragma unroll
        for (int word = 0; word < kWords; ++word)
          unpackWord(value[batch % kRing][i * kWords + word], Float<T>(), x + word * int(4 / sizeof(T)));
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int n = 0; n < kOwn; ++n)
            acc[r][n] = fmaf(w[r], x[n], acc[r][n]);
      }
      if (batch + kRing < kBatches)
        loadValues(batch + kRing);
    }
  }
};

/// A warp's way through blocks of keys: those of vectors by KeyStream, others as they come.
template <class S, class T, int R, bool Fits = KeyStream<S, T, R>::kFits> struct KeyWalk {
  KeyStream<S, T, R> stream;
  __device__ __forceinline__ void begin(int b, int kvHead, int base, int last, Heads<T> k, Heads<T> v) {
    stream.begin(b, kvHead, base, last, k, v);
  }
  /// take(r, d, o) of each of the lane's values, after give(r, top, total) by one lane.
  template <class Mask, class Give, class Take>
  __device__ __forceinline__ void attend(const float *qs, float *stage, int b, int kvHead, RowOf row, int queries, int base, int last,
                                         Heads<T>, Heads<T>, float scale, float softcap, Mask mask, Give give, Take take) {
    constexpr int kOwn = KeyStream<S, T, R>::kOwn;
    float top[R], total[R], acc[R][kOwn];
    stream.attend(qs, stage, b, kvHead, row, queries, base, last, scale, softcap, mask, top, total, acc);
    __syncwarp(); // who is told may write to the stage
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (lane == 0)
        give(r, top[r], total[r]);
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        take(r, kOwn * lane + i, acc[r][i]);
    }
  }
};
template <class S, class T, int R> struct KeyWalk<S, T, R, false> {
  __device__ __forceinline__ void begin(int, int, int, int, Heads<T>, Heads<T>) {}
  template <class Mask, class Give, class Take>
  __device__ __forceinline__ void attend(const float *qs, float *, int b, int kvHead, RowOf row, int queries, int base, int last,
                                         Heads<T> k, Heads<T> v, float scale, float softcap, Mask mask, Give give, Take take) {
    float top[R], total[R], acc[R][S::kDims];
    attendBlock<S, T, R>(qs, b, kvHead, row, queries, base, last, k, v, scale, softcap, mask, top, total, acc);
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (lane == 0)
        give(r, top[r], total[r]);
#pragma unroll
      for (int d = 0; d < S::kDims; ++d)
        if (lane + 32 * d < S::DV)
          take(r, lane + 32 * d, acc[r][d]);
    }
  }
};

/// Asks for a block of keys and values before the kernel waits for its predecessor: all but the newest rows are there, and to bring
/// those to the second-level cache reads nothing.
template <class T> OTF_DEVICE void prefetchBlock(int b, int kvHead, int base, int last, Heads<T> k, Heads<T> v) {
  const int here = smaller(kKeyBlock, last - base);
  const int keyBytes = here * int(k.row * sizeof(T)), valueBytes = here * int(v.row * sizeof(T));
#pragma unroll 1
  for (int at = 128 * int(threadIdx.x & 31); at < keyBytes; at += 32 * 128)
    prefetchLine(reinterpret_cast<const uint8_t *>(k.at(b, kvHead, base)) + at);
#pragma unroll 1
  for (int at = 128 * int(threadIdx.x & 31); at < valueBytes; at += 32 * 128)
    prefetchLine(reinterpret_cast<const uint8_t *>(v.at(b, kvHead, base)) + at);
}

} // namespace otf
