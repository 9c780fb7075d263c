// SPDX-License-Identifier: Apache-2.0
//
// Encodings of weights, as docs/Architecture.md draws them: tiles of eight rows, in which a row is
// one 32-bit lane. A codec turns the words that one row has in 32 columns into eight words of four
// signed bytes, word i holding columns 4i ... 4i+3, ready for dp4a or the integer MMA; then
//
//     weight = scale * (byte - kOffset) + zero
//
// A codec with kSigns has a second code, bytes of -1 and 1 in as many words, and weight = scale * (byte - kOffset) + zero * sign.
//
// A new integer encoding is one more struct here; no kernel changes.

namespace otf {

// Where column c of a chunk stands among the 32 bytes that `unpack` gives: what falls out of the codes with the fewest instructions.
// Records of one row (RowRecord.cuh) are laid out the same way; all others have the natural order, which `decode` gives.
struct NaturalOrder {
  static constexpr bool kNatural = true;
  static __device__ __forceinline__ constexpr int place(int c) { return c; }
};
/// Words of columns 16h + r, + 4, + 8, + 12.
struct StridedOrder {
  static constexpr bool kNatural = false;
  static __device__ __forceinline__ constexpr int place(int c) { return (c & 16) + 4 * (c & 3) + (c >> 2 & 3); }
};
/// Words of two bytes b of columns 4j + b and 4j + 8 + b.
struct PairedOrder {
  static constexpr bool kNatural = false;
  static __device__ __forceinline__ constexpr int place(int c) {
    return (c & 16) + 8 * (c >> 2 & 1) + 4 * (c >> 1 & 1) + 2 * (c & 1) + (c >> 3 & 1);
  }
};
/// A constant that stays in a register. The assembler would make one it knows anew for each permute, an instruction in five of a
/// decoder; blocks are one-dimensional, which it does not know.
OTF_DEVICE uint32_t held(uint32_t constant) { return constant + threadIdx.y; }
struct NoTables {};

template <class C> struct NaturalCodec {
  using Order = NaturalOrder;
  using Tables = NoTables;
  template <int Words> static __device__ __forceinline__ void unpack(const uint32_t (&code)[Words], uint32_t (&bytes)[8], Tables) {
    C::decode(code, bytes);
  }
};

/// 32 columns: 8 steps of 32 bytes, codes -127 ... 127.
template <int Group, bool Float = false, bool Zero = false> struct Int8 : NaturalCodec<Int8<Group, Float, Zero>> {
  static constexpr bool kInteger = true;
  static constexpr int kGroup = Group; // columns that share a scale
  static constexpr int kWords = 8;     // words of a row in 32 columns
  static constexpr int kOffset = 0;    // taken off each byte
  static constexpr bool kZero = Zero;   // zero[8] after scale[8]
  static constexpr bool kFloat = Float; // parameters are f32 and not f16
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      bytes[i] = code[i];
  }
  /// One code of a chunk, less kOffset.
  static __device__ __forceinline__ int at(const uint8_t *chunk, int column, int row) {
    return int8_t(__ldg(chunk + 32 * (column >> 2) + 4 * row + (column & 3)));
  }
};

/// 32 columns: 4 vectors; the low nibble of byte (v, row, b) is column 4v+b, the high 16+4v+b.
/// The code is q + 8: bytes stay 0 ... 15 and the eight comes off through the sum of activations.
template <int Group, bool Float = false, bool Zero = false> struct Int4 : NaturalCodec<Int4<Group, Float, Zero>> {
  static constexpr bool kInteger = true;
  static constexpr int kGroup = Group;
  static constexpr int kWords = 4;
  static constexpr int kOffset = 8;
  static constexpr bool kZero = Zero;
  static constexpr bool kFloat = Float;
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      bytes[v] = code[v] & 0x0f0f0f0fu;
      bytes[4 + v] = code[v] >> 4 & 0x0f0f0f0fu;
    }
  }
  static __device__ __forceinline__ int at(const uint8_t *chunk, int column, int row) {
    const int both = __ldg(chunk + 32 * ((column & 15) >> 2) + 4 * row + (column & 3));
    return (both >> (column >> 4) * 4 & 15) - kOffset;
  }
};

/// 32 columns: 2 vectors; bits 2j, 2j+1 of byte (v, row, b) are column 16v+4j+b. The code is q + 2.
template <int Group, bool Float = false, bool Zero = false> struct Int2 : NaturalCodec<Int2<Group, Float, Zero>> {
  static constexpr bool kInteger = true;
  static constexpr int kGroup = Group;
  static constexpr int kWords = 2;
  static constexpr int kOffset = 2;
  static constexpr bool kZero = Zero;
  static constexpr bool kFloat = Float;
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
#pragma unroll
    for (int v = 0; v < 2; ++v)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        bytes[4 * v + j] = code[v] >> 2 * j & 0x03030303u;
  }
  static __device__ __forceinline__ int at(const uint8_t *chunk, int column, int row) {
    const int four = __ldg(chunk + 32 * (column >> 4) + 4 * row + (column & 3));
    return (four >> ((column & 15) >> 2) * 2 & 3) - kOffset;
  }
};

/// 32 columns: 2 vectors; bits 2j, 2j+1 of byte (v, row, b) are column 16v+4j+b. `Table` holds
/// four signed bytes, entry 0 lowest.
template <int Group, uint32_t Table> struct Codebook2 {
  static constexpr bool kInteger = true;
  static constexpr int kGroup = Group;
  static constexpr int kWords = 2;
  static constexpr int kOffset = 0;
  static constexpr bool kZero = true;
  static constexpr bool kFloat = false;
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
#pragma unroll
    for (int v = 0; v < 2; ++v)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        // Nibbles 2b and 2b+1 select the entries of columns j = odd and j = odd + 2 of byte b.
        // Both halves of the operand are the table, and the mask keeps bit 3 (sign replication) 0.
        uint32_t s = (odd ? code[v] >> 2 : code[v]) & 0x33333333u;
        uint32_t first = permuteBytes(Table, Table, s);        // b0j b0j' b1j b1j'
        uint32_t second = permuteBytes(Table, Table, s >> 16); // b2j b2j' b3j b3j'
        bytes[4 * v + odd] = permuteBytes(first, second, 0x6420u);
        bytes[4 * v + odd + 2] = permuteBytes(first, second, 0x7531u);
      }
  }
  using Order = PairedOrder;
  struct Tables {
    uint32_t entries = held(Table);
  };
  static __device__ __forceinline__ void unpack(const uint32_t (&code)[kWords], uint32_t (&bytes)[8], Tables tables) {
#pragma unroll
    for (int v = 0; v < 2; ++v)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const uint32_t s = (odd ? code[v] >> 2 : code[v]) & 0x33333333u;
        bytes[4 * v + 2 * odd] = permuteBytes(tables.entries, tables.entries, s);
        bytes[4 * v + 2 * odd + 1] = permuteBytes(tables.entries, tables.entries, s >> 16);
      }
  }
};

/// 32 columns: k vectors, one a plane, of a circular word a row (lib/Encoding/Planes.h). Column c reads
/// Window bits of each word from bit c on, and its byte, 0 ... 127, is the sum of what the tables have
/// there. `Table`: 8 or 16 bytes a plane, the first lowest.
template <int Window, int Group, int Offset, uint32_t... Table> struct Planes {
  static constexpr bool kInteger = true;
  static constexpr int kGroup = Group;
  static constexpr int kTableWords = Window == 4 ? 4 : 2;
  static constexpr int kWords = int(sizeof...(Table)) / kTableWords;
  static constexpr int kOffset = Offset;
  static constexpr bool kZero = false;
  static constexpr bool kFloat = false;
  static_assert(Window == 3 || Window == 4, "a table is one permute or two");

  static __device__ __forceinline__ uint32_t table(int i) {
    const uint32_t words[] = {Table...};
    return words[i];
  }
  /// Of the two words that a permute chooses from one may be constant.
  struct Tables {
    uint32_t first[kWords], third[kWords];
    __device__ __forceinline__ Tables() {
#pragma unroll
      for (int p = 0; p < kWords; ++p) {
        first[p] = held(table(p * kTableWords));
        third[p] = Window == 3 ? 0 : held(table(p * kTableWords + kTableWords - 2));
      }
    }
  };
  /// The bytes of plane p that the nibbles of the lower half of `s` select.
  static __device__ __forceinline__ uint32_t look(int p, uint32_t s, const Tables &tables) {
    const uint32_t low = permuteBytes(tables.first[p], table(p * kTableWords + 1), s);
    if (Window == 3)
      return low;
    // A selector's bit 3 replicates a sign, which is 0 in these tables; so one of the halves gives 0.
    return low + permuteBytes(tables.third[p], table(p * kTableWords + kTableWords - 1), s ^ 0x88888888u);
  }
  using Order = StridedOrder;
  /// Word 4h + r: columns 16h + r, + 4, + 8, + 12. Bytes of all planes add without a carry.
  static __device__ __forceinline__ void unpack(const uint32_t (&code)[kWords], uint32_t (&bytes)[8], const Tables &tables) {
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int p = 0; p < kWords; ++p) {
        uint32_t s = __funnelshift_r(code[p], code[p], r);
        if (Window == 3)
          s &= 0x77777777u;
        const uint32_t first = look(p, s, tables), second = look(p, s >> 16, tables);
        bytes[r] = p ? bytes[r] + first : first;
        bytes[4 + r] = p ? bytes[4 + r] + second : second;
      }
  }
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
    uint32_t half[8];
    unpack(code, half, Tables());
#pragma unroll
    for (int h = 0; h < 2; ++h) { // transposed, 4 x 4 bytes
      const uint32_t a = permuteBytes(half[4 * h], half[4 * h + 1], 0x5140u);
      const uint32_t b = permuteBytes(half[4 * h + 2], half[4 * h + 3], 0x5140u);
      const uint32_t c = permuteBytes(half[4 * h], half[4 * h + 1], 0x7362u);
      const uint32_t d = permuteBytes(half[4 * h + 2], half[4 * h + 3], 0x7362u);
      bytes[4 * h] = permuteBytes(a, b, 0x5410u);
      bytes[4 * h + 1] = permuteBytes(a, b, 0x7632u);
      bytes[4 * h + 2] = permuteBytes(c, d, 0x5410u);
      bytes[4 * h + 3] = permuteBytes(c, d, 0x7632u);
    }
  }
  static __device__ __forceinline__ int at(const uint8_t *chunk, int column, int row) {
    int sum = 0;
#pragma unroll
    for (int p = 0; p < kWords; ++p) {
      const uint32_t word = __ldg(reinterpret_cast<const uint32_t *>(chunk + 32 * p) + row);
      const uint32_t s = __funnelshift_r(word, word, column) & ((1u << Window) - 1);
      sum += int(look(p, s, Tables()) & 0xffu);
    }
    return sum - kOffset;
  }
};

/// 32 columns: two vectors of ternary codes t + 1 as in Int2, and one of bits: bit j of byte (row, b) is column 4j+b.
template <int Group> struct TernarySign : NaturalCodec<TernarySign<Group>> {
  static constexpr bool kInteger = true;
  static constexpr bool kSigns = true;
  static constexpr int kGroup = Group;
  static constexpr int kWords = 3;
  static constexpr int kOffset = 0;
  static constexpr bool kZero = true;
  static constexpr bool kFloat = false;
  static __device__ __forceinline__ void decode(const uint32_t (&code)[kWords],
                                                uint32_t (&bytes)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      // Less one in each byte; bit 7 keeps it from its neighbours.
      bytes[i] = (((code[i >> 2] >> 2 * (i & 3) & 0x03030303u) | 0x80808080u) - 0x01010101u) ^ 0x80808080u;
  }
  static __device__ __forceinline__ void signs(const uint32_t (&code)[kWords],
                                               uint32_t (&bytes)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      bytes[i] = sign(code[2], i);
  }
  /// Columns 4i ... 4i+3 of the word of bits.
  static __device__ __forceinline__ uint32_t sign(uint32_t bits, int i) {
    return ~((bits >> i & 0x01010101u) * 0xfeu); // 1 to 0x01, 0 to 0xff
  }
};

/// Whether C has kSigns, and it is true.
template <class C> constexpr auto hasSigns(int) -> decltype(C::kSigns) { return C::kSigns; }
template <class C> constexpr bool hasSigns(long) { return false; }

/// Plain weights, [column][8 rows].
struct PlainF32 {
  static constexpr bool kInteger = false;
  using Element = float;
};
struct PlainF16 {
  static constexpr bool kInteger = false;
  using Element = half_t;
};

/// The record of an activation row of K values, `Outliers` of them kept as floats:
/// i8 q[Kp], f32 scale[Kp/32], i32 sum[Kp/32], f32 outlier[Outliers], zeros up to 64 bytes.
template <int64_t K, int64_t Outliers> struct RecordLayout {
  static_assert(K > 0 && Outliers >= 0 && Outliers <= K, "outliers are some of the columns");
  static constexpr int64_t kColumns = K;
  static constexpr int64_t kOutliers = Outliers;
  static constexpr int64_t kBackground = K - Outliers;
  static constexpr int kChunks = int(divideUp(kBackground, 32));
  static constexpr int64_t kPadded = int64_t(kChunks) * 32;
  static constexpr int64_t kScaleOffset = kPadded;
  static constexpr int64_t kSumOffset = kPadded + kPadded / 8;
  static constexpr int64_t kRecordOutlierOffset = kPadded + kPadded / 4;
  static constexpr int64_t kRecordBytes = roundUp(kRecordOutlierOffset + 4 * Outliers, 64);
};

/// Where things lie in the blob of an N x K weight, `Outliers` of whose columns are kept as f16
/// (lib/Encoding/Layout.h): [column index][tiles]. The sizes of its activation rows come along:
/// records for integer codes, plain f32 [K] rows for plain weights.
template <class C, int64_t N, int64_t K, int64_t Outliers, bool = C::kInteger>
struct Weight : RecordLayout<K, Outliers> {
  using Codec = C;
  using Record = RecordLayout<K, Outliers>;
  using Record::kChunks;
  static_assert(N > 0, "a weight has rows");
  static_assert(C::kGroup % 32 == 0 && C::kGroup > 0, "a group is a multiple of 32 columns");
  static constexpr int64_t kRows = N;
  static constexpr int64_t kTiles = divideUp(N, 8);
  static constexpr int kPerGroup = C::kGroup / 32;
  static constexpr int kChunkBytes = C::kWords * 32;
  static constexpr int kEightBytes = C::kFloat ? 32 : 16; // the scales or zeros of a tile's rows
  static constexpr int kMetaBytes = C::kZero ? 2 * kEightBytes : kEightBytes;
  static constexpr int64_t kOutlierOffset =
      int64_t(kChunks) * kChunkBytes + divideUp(kChunks, kPerGroup) * kMetaBytes;
  static constexpr int64_t kTileBytes = kOutlierOffset + 16 * Outliers;
  static constexpr int64_t kIndexBytes = Outliers ? roundUp(4 * K, 64) : 0;
  static constexpr int64_t kBytes = kIndexBytes + kTiles * kTileBytes;
  static_assert(kTileBytes % 16 == 0, "tiles are read 16 bytes at a time");

  /// Byte offset of 32-column chunk c in a tile, and of the scales of its group.
  static __device__ __forceinline__ uint32_t chunkOffset(int c) {
    return uint32_t(c) * kChunkBytes + (kPerGroup >= kChunks ? 0 : uint32_t(c) / kPerGroup * kMetaBytes);
  }
  static __device__ __forceinline__ uint32_t scaleOffset(int c) {
    const uint32_t group = kPerGroup >= kChunks ? 0 : uint32_t(c) / kPerGroup; // one of all columns: said so that loops know
    uint32_t end = smaller<uint32_t>((group + 1) * kPerGroup, kChunks);
    return end * kChunkBytes + group * kMetaBytes;
  }
  /// The code words of row `row` of a tile in chunk c.
  static __device__ __forceinline__ void load(const uint8_t *tile, int c, int row,
                                              uint32_t (&code)[C::kWords]) {
    const uint32_t *p = reinterpret_cast<const uint32_t *>(tile + chunkOffset(c)) + row;
#pragma unroll
    for (int i = 0; i < C::kWords; ++i)
      code[i] = __ldcs(p + 8 * i);
  }
  static __device__ __forceinline__ float scale(const uint8_t *tile, int c, int row) {
    return parameter(tile + scaleOffset(c), row);
  }
  static __device__ __forceinline__ float zero(const uint8_t *tile, int c, int row) {
    return C::kZero ? parameter(tile + scaleOffset(c) + kEightBytes, row) : 0.0f;
  }
  static __device__ __forceinline__ float parameter(const uint8_t *eight, int row) {
    if (C::kFloat)
      return __ldg(reinterpret_cast<const float *>(eight) + row);
    return f16At(eight + 2 * row);
  }
  /// Outlier column j, as f16.
  static __device__ __forceinline__ float outlier(const uint8_t *tile, int64_t j, int row) {
    return f16At(tile + kOutlierOffset + 16 * j + 2 * row);
  }
  static __device__ __forceinline__ float f16At(const uint8_t *p) {
    return toFloat(half_t{__ldg(reinterpret_cast<const uint16_t *>(p))});
  }
};

template <class C, int64_t N, int64_t K, int64_t Outliers> struct Weight<C, N, K, Outliers, false> {
  using Codec = C;
  using Element = typename C::Element;
  static_assert(Outliers == 0, "plain weights have no outlier columns");
  static_assert(N > 0 && K > 0, "a weight has rows and columns");
  static constexpr int64_t kRows = N;
  static constexpr int64_t kColumns = K;
  static constexpr int64_t kOutliers = 0;
  static constexpr int64_t kTiles = divideUp(N, 8);
  static constexpr int64_t kTileBytes = roundUp(K * 8 * int64_t(sizeof(Element)), 16);
  static constexpr int64_t kIndexBytes = 0;
  static constexpr int64_t kBytes = kTiles * kTileBytes;
  static constexpr int64_t kRecordBytes = 4 * K; // a row as it is

  static __device__ __forceinline__ float at(const uint8_t *tile, int64_t column, int row) {
    return toFloat(stream(reinterpret_cast<const Element *>(tile) + column * 8 + row));
  }
  static __device__ __forceinline__ float stream(const float *p) { return __ldcs(p); }
  static __device__ __forceinline__ half_t stream(const half_t *p) {
    return half_t{__ldcs(reinterpret_cast<const uint16_t *>(p))};
  }
};

/// The coded weight W, to be multiplied by f32 rows: what a file means that quantizes its weights only.
template <class W> struct Decoded {
  struct Codec {
    static constexpr bool kInteger = false;
  };
  static_assert(W::kOutliers == 0, "outliers have records");
  static constexpr int64_t kRows = W::kRows;
  static constexpr int64_t kColumns = W::kColumns;
  static constexpr int64_t kOutliers = 0;
  static constexpr int64_t kTiles = W::kTiles;
  static constexpr int64_t kTileBytes = W::kTileBytes;
  static constexpr int64_t kIndexBytes = 0;
  static constexpr int64_t kBytes = W::kBytes;
  static constexpr int64_t kRecordBytes = 4 * W::kColumns; // a row as it is

  static __device__ __forceinline__ float at(const uint8_t *tile, int64_t column, int row) {
    const int c = int(column >> 5);
    const float q = float(W::Codec::at(tile + W::chunkOffset(c), int(column & 31), row));
    return fmaf(q, W::scale(tile, c, row), W::zero(tile, c, row));
  }
};

} // namespace otf
