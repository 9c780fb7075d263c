// SPDX-License-Identifier: Apache-2.0
//
// Entries that instantiate every kernel of the device library, as the compiler would generate them.
// The compile test gives them to NVRTC for every architecture; the numerics test runs them. Sizes
// are ragged on purpose: rows that do not fill a tile, columns that do not fill a group. The names
// say what a test must know: linear_<encoding>_<N>_<K>_<outliers>.

using otf::int64_t;
// A comma in a macro argument needs a name.
using Book32 = otf::Codebook2<32, 0x7d25db83>; // 125, 37, -37, -125
using Book64 = otf::Codebook2<64, 0x7d25db83>;
// As codecName prints them; the numerics test tells if a table differs from lib/Encoding/Planes.h.
using P3x1g128 = otf::Planes<3, 128, 63, 0x53022b7e, 0x00547f2c>;
using P3x2g576 = otf::Planes<3, 576, 62, 0x2d16001e, 0x172c4107, 0x152d3210, 0x3e000f38>;
using P3x2g64 = otf::Planes<3, 64, 62, 0x2d16001e, 0x172c4107, 0x152d3210, 0x3e000f38>;
using P3x3g352 = otf::Planes<3, 352, 63, 0x042b1c06, 0x210e0021, 0x140c300f, 0x281b1b00, 0x240f0915,
    0x00181e0b>;
using P3x4g128 = otf::Planes<3, 128, 60, 0x05121a0b, 0x23000c15, 0x24001a24, 0x03161014, 0x00100617,
    0x151f0c06, 0x00190d0c, 0x1700050e>;
using P4x1g64 = otf::Planes<4, 64, 62, 0x5625245b, 0x18482f7f, 0x2c565a23, 0x4f006332>;
using P4x2g256 = otf::Planes<4, 256, 65, 0x391c220c, 0x00311024, 0x0e214128, 0x34102a18, 0x250c3a16,
    0x3e1f1429, 0x00291f2c, 0x17312c15>;
using P4x3g64 = otf::Planes<4, 64, 65, 0x08150c06, 0x21191115, 0x1c111900, 0x160e1d23, 0x27180f30,
    0x29171300, 0x211d1213, 0x170b1b17, 0x11182712, 0x0007072c, 0x19071108, 0x102c1f16>;

#define ENTRY(name, buffers)                                                                       \
  extern "C" __global__ void __launch_bounds__(otf::kThreads, otf::kBlocks) name(otf::Args<buffers> a)

// Buffers: weight, records, y f32 [rows][N]. Dims: rows.
#define LINEAR(name, codec, N, K, outliers, split)                                                 \
  ENTRY(name, 3) {                                                                                 \
    float *y = static_cast<float *>(a.buffers[2]);                                                 \
    otf::linear<otf::Weight<codec, N, K, outliers>, split>(                                        \
        a.buffers[0], a.buffers[1], a.dims[0],                                                     \
        [=](int64_t m, int64_t n, float acc) { y[m * N + n] = acc; });                             \
  }
LINEAR(linear_f32_24_40_0, otf::PlainF32, 24, 40, 0, 1)
LINEAR(linear_f32_13_33_0, otf::PlainF32, 13, 33, 0, 8)
LINEAR(linear_f32_1_1_0, otf::PlainF32, 1, 1, 0, 2)
LINEAR(linear_f16_131_200_0, otf::PlainF16, 131, 200, 0, 4)
LINEAR(linear_int8_64_256_0, otf::Int8<32>, 64, 256, 0, 1)
LINEAR(linear_int8_9_31_1, otf::Int8<32>, 9, 31, 1, 8)
LINEAR(linear_int8_200_330_3, otf::Int8<64>, 200, 330, 3, 4)
LINEAR(linear_int4_576_576_0, otf::Int4<32>, 576, 576, 0, 4)
LINEAR(linear_int4_129_97_0, otf::Int4<64>, 129, 97, 0, 8)
LINEAR(linear_int4_40_1056_6, otf::Int4<128>, 40, 1056, 6, 8)
LINEAR(linear_codebook2_64_128_0, Book32, 64, 128, 0, 2)
LINEAR(linear_codebook2_77_300_11, Book64, 77, 300, 11, 8)
LINEAR(linear_planes3x1_40_100_0, P3x1g128, 40, 100, 0, 8)
LINEAR(linear_planes3x2_64_576_0, P3x2g576, 64, 576, 0, 4)
LINEAR(linear_planes3x2_77_300_11, P3x2g64, 77, 300, 11, 4)
LINEAR(linear_planes3x3_129_330_3, P3x3g352, 129, 330, 3, 4)
LINEAR(linear_planes3x4_40_1056_6, P3x4g128, 40, 1056, 6, 8)
LINEAR(linear_planes4x1_9_40_1, P4x1g64, 9, 40, 1, 8)
LINEAR(linear_planes4x2_131_512_0, P4x2g256, 131, 512, 0, 4)
LINEAR(linear_planes4x3_20_97_0, P4x3g64, 20, 97, 0, 8)
LINEAR(linear_ternary_64_128_0, otf::TernarySign<64>, 64, 128, 0, 2)
LINEAR(linear_ternary_77_300_11, otf::TernarySign<32>, 77, 300, 11, 8)
LINEAR(linear_ternary_200_576_0, otf::TernarySign<64>, 200, 576, 0, 1)

// One row, whose record each block makes. Buffers: weight, x f32 [K], y f32 [N]. Blocks of 256 and of 768 threads.
#define ONE_ROW_OF(name, codec, N, K, outliers, split, threads)                                    \
  extern "C" __global__ void __launch_bounds__(threads, otf::kOneRowThreads / threads)             \
  name(otf::Args<3> a) {                                                                           \
    using W = otf::Weight<codec, N, K, outliers>;                                                  \
    __shared__ __align__(16) otf::uint8_t record[W::kRecordBytes];                                 \
    extern __shared__ __align__(16) float scratch[];                                               \
    const float *x = static_cast<const float *>(a.buffers[1]);                                     \
    float *y = static_cast<float *>(a.buffers[2]);                                                 \
    otf::prefetchTiles<W, split, threads>(a.buffers[0], otf::allBlocks());                         \
    otf::oneRecord<otf::RecordLayout<K, outliers>, otf::OrderOf<W>, otf::Normal::none, threads>(   \
        [=](int64_t, int64_t k) { return x[k]; }, 0.0f, nullptr, nullptr, a.buffers[0], nullptr,   \
        record, scratch);                                                                          \
    otf::oneRow<W, split, threads>(                                                                \
        a.buffers[0], record, scratch, [=](int64_t, int64_t n, float acc) { y[n] = acc; },         \
        otf::allBlocks());                                                                         \
  }
#define ONE_ROW(name, codec, N, K, outliers, split)                                                \
  ONE_ROW_OF(one_##name, codec, N, K, outliers, split, 256)                                        \
  ONE_ROW_OF(large_##name, codec, N, K, outliers, split, 768)
ONE_ROW(int8_64_256_0, otf::Int8<32>, 64, 256, 0, 1)
ONE_ROW(int8_9_31_1, otf::Int8<32>, 9, 31, 1, 8)
ONE_ROW(int8_200_330_3, otf::Int8<64>, 200, 330, 3, 4)
ONE_ROW(int4_576_576_0, otf::Int4<32>, 576, 576, 0, 4)
ONE_ROW(int4_129_97_0, otf::Int4<64>, 129, 97, 0, 8)
ONE_ROW(int4_40_1056_6, otf::Int4<128>, 40, 1056, 6, 8)
ONE_ROW(codebook2_64_128_0, Book32, 64, 128, 0, 2)
ONE_ROW(codebook2_77_300_11, Book64, 77, 300, 11, 8)
ONE_ROW(planes3x1_40_100_0, P3x1g128, 40, 100, 0, 8)
ONE_ROW(planes3x2_64_576_0, P3x2g576, 64, 576, 0, 4)
ONE_ROW(planes3x2_77_300_11, P3x2g64, 77, 300, 11, 4)
ONE_ROW(planes3x3_129_330_3, P3x3g352, 129, 330, 3, 4)
ONE_ROW(planes3x4_40_1056_6, P3x4g128, 40, 1056, 6, 8)
ONE_ROW(planes4x1_9_40_1, P4x1g64, 9, 40, 1, 8)
ONE_ROW(planes4x2_131_512_0, P4x2g256, 131, 512, 0, 4)
ONE_ROW(planes4x3_20_97_0, P4x3g64, 20, 97, 0, 8)
ONE_ROW(ternary_64_128_0, otf::TernarySign<64>, 64, 128, 0, 2)
ONE_ROW(ternary_77_300_11, otf::TernarySign<32>, 77, 300, 11, 8)
ONE_ROW(ternary_200_576_0, otf::TernarySign<64>, 200, 576, 0, 1)

// The same for windows of 3 x 3 taps and stride (2, 1) over pixels [N][S1][S2] of C channels, padded by one. Buffers: weight, pixels, y.
// Dims: rows, S1, S2, O1, O2.
#define WINDOWS(name, codec, N, C, split)                                                                    \
  ENTRY(name, 3) {                                                                                 \
    using W = otf::Weight<codec, N, 9 * C, 0>;                                                     \
    float *y = static_cast<float *>(a.buffers[2]);                                                 \
    otf::contract<W, split>(                                                                       \
        a.buffers[0],                                                                              \
        otf::Windows<W, C, 1, 3, 3, 1, 2, 1, 1, 1, 1, 0, 1, 1>{                                    \
            static_cast<const otf::uint8_t *>(a.buffers[1]),                                        \
            {1, int(a.dims[1]), int(a.dims[2])},                                                   \
            {1, int(a.dims[3]), int(a.dims[4])}},                                                  \
        a.dims[0], [=](int64_t m, int64_t n, float acc) { y[m * N + n] = acc; });                  \
  }
WINDOWS(windows_f32_24_12, otf::PlainF32, 24, 12, 1)
WINDOWS(windows_f32_16_3, otf::PlainF32, 16, 3, 2)
WINDOWS(windows_f16_13_96, otf::PlainF16, 13, 96, 4)
WINDOWS(windows_int8_200_64, otf::Int8<32>, 200, 64, 8)
WINDOWS(windows_int4_24_96, otf::Int4<32>, 24, 96, 2)

// Buffers: x f32 [rows][K], gamma, beta (null pointers allowed), index, records. Dims: rows.
#define RECORD(name, K, outliers, kind)                                                            \
  ENTRY(name, 5) {                                                                                 \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    otf::record<otf::RecordLayout<K, outliers>, otf::Normal::kind>(                                \
        [=](int64_t m, int64_t k) { return x[m * K + k]; }, a.dims[0], 1.0e-5f,                    \
        static_cast<const float *>(a.buffers[1]), static_cast<const float *>(a.buffers[2]),        \
        a.buffers[3], nullptr, a.buffers[4]);                                                               \
  }
RECORD(record_none_256_0, 256, 0, none)
RECORD(record_none_31_1, 31, 1, none)
RECORD(record_none_330_3, 330, 3, none)
RECORD(record_none_576_0, 576, 0, none)
RECORD(record_none_97_0, 97, 0, none)
RECORD(record_none_1056_6, 1056, 6, none)
RECORD(record_none_128_0, 128, 0, none)
RECORD(record_none_300_11, 300, 11, none)
RECORD(record_rms_576_0, 576, 0, rms)
RECORD(record_layer_300_11, 300, 11, layer)

// Buffers: table, ids i64 [rows], y f32 [rows][K]. Dims: rows.
#define EMBEDDING(name, codec, N, K, outliers)                                                     \
  ENTRY(name, 3) {                                                                                 \
    float *y = static_cast<float *>(a.buffers[2]);                                                 \
    otf::embedding<otf::Weight<codec, N, K, outliers>>(                                            \
        a.buffers[0], static_cast<const int64_t *>(a.buffers[1]), a.dims[0],                       \
        [=](int64_t m, int64_t k, float w) { y[m * K + k] = w; });                                 \
  }
EMBEDDING(embedding_f32_13_33_0, otf::PlainF32, 13, 33, 0)
EMBEDDING(embedding_f16_131_200_0, otf::PlainF16, 131, 200, 0)
EMBEDDING(embedding_int8_200_330_3, otf::Int8<64>, 200, 330, 3)
EMBEDDING(embedding_int4_129_97_0, otf::Int4<64>, 129, 97, 0)
EMBEDDING(embedding_codebook2_77_300_11, Book64, 77, 300, 11)
EMBEDDING(embedding_planes3x1_40_100_0, P3x1g128, 40, 100, 0)
EMBEDDING(embedding_planes3x2_64_576_0, P3x2g576, 64, 576, 0)
EMBEDDING(embedding_planes3x2_77_300_11, P3x2g64, 77, 300, 11)
EMBEDDING(embedding_planes3x3_129_330_3, P3x3g352, 129, 330, 3)
EMBEDDING(embedding_planes3x4_40_1056_6, P3x4g128, 40, 1056, 6)
EMBEDDING(embedding_planes4x1_9_40_1, P4x1g64, 9, 40, 1)
EMBEDDING(embedding_planes4x2_131_512_0, P4x2g256, 131, 512, 0)
EMBEDDING(embedding_planes4x3_20_97_0, P4x3g64, 20, 97, 0)
EMBEDDING(embedding_ternary_77_300_11, otf::TernarySign<32>, 77, 300, 11)

#define ROW_OF(name, K, block, factor, seed, kind, threads)                                        \
  extern "C" __global__ void __launch_bounds__(threads, otf::kOneRowThreads / threads)             \
  name(otf::Args<5> a) {                                                                           \
    extern __shared__ __align__(16) otf::uint8_t bytes[];                                          \
    using L = otf::RecordLayout<K, 0>;                                                             \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    otf::oneRecordRotated<L, otf::NaturalOrder, otf::Normal::kind,                                 \
                          otf::Rotation<K, block, factor, seed>, threads>(                         \
        [=](int64_t, int64_t k) { return x[k]; }, 1.0e-5f, static_cast<const float *>(a.buffers[1]), \
        static_cast<const float *>(a.buffers[2]), static_cast<const float *>(a.buffers[3]), bytes, \
        reinterpret_cast<float *>(bytes + L::kRecordBytes));                                       \
    for (int i = threadIdx.x; i < L::kRecordOutlierOffset; i += threads)                           \
      static_cast<otf::uint8_t *>(a.buffers[4])[i] = bytes[i];                                     \
  }
// Parts of the record of a row by blocks of their own. Buffers: x, factor, record.
#define PART_ROW(name, K, block, factor, seed, threads)                                            \
  extern "C" __global__ void __launch_bounds__(threads, otf::kOneRowThreads / threads)             \
  name(otf::Args<3> a) {                                                                           \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    otf::oneRecordPartRotated<otf::RecordLayout<K, 0>, otf::NaturalOrder,                          \
                              otf::Rotation<K, block, factor, seed>, threads>(                     \
        [=](int64_t, int64_t k) { return x[k]; }, static_cast<const float *>(a.buffers[1]),        \
        static_cast<otf::uint8_t *>(a.buffers[2]), otf::allBlocks());                              \
  }
PART_ROW(part_11008, 11008, 256, 43, 2, 768)
PART_ROW(part_4608, 4608, 512, 3, 0, 768)
PART_ROW(part_576, 576, 64, 1, 3, 256)
// Rows rotated, the records of their norms, and that of one row as each block of a linear makes it, of 256 and of 768 threads. Buffers: x f32
// [rows][K], gamma, beta, factor, result. Dims: rows.
#define ROTATED(name, K, block, factor, seed, kind)                                                \
  ENTRY(rotate_##name, 5) {                                                                        \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    float *y = static_cast<float *>(a.buffers[4]);                                                 \
    otf::rotate<otf::Rotation<K, block, factor, seed>>(                                            \
        [=](int64_t m, int64_t k) { return x[m * K + k]; }, a.dims[0],                             \
        static_cast<const float *>(a.buffers[3]),                                                  \
        [=](int64_t m, int64_t k, float v) { y[m * K + k] = v; });                                 \
  }                                                                                                \
  ENTRY(record_##name, 5) {                                                                        \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    otf::recordRotated<otf::RecordLayout<K, 0>, otf::Normal::kind,                                 \
                       otf::Rotation<K, block, factor, seed>>(                                     \
        [=](int64_t m, int64_t k) { return x[m * K + k]; }, a.dims[0], 1.0e-5f,                    \
        static_cast<const float *>(a.buffers[1]), static_cast<const float *>(a.buffers[2]),        \
        static_cast<const float *>(a.buffers[3]), a.buffers[4]);                                   \
  }                                                                                                \
  ROW_OF(row_##name, K, block, factor, seed, kind, 256)                                            \
  ROW_OF(wide_row_##name, K, block, factor, seed, kind, 768)
ROTATED(rotated_none_36, 36, 4, 3, 0, none)
ROTATED(rotated_none_576, 576, 64, 9, 0, none)
ROTATED(rotated_rms_576, 576, 64, 1, 3, rms)
ROTATED(rotated_rms_1536, 1536, 512, 3, 7, rms)
ROTATED(rotated_layer_2048, 2048, 1024, 1, 0, layer)
ROTATED(rotated_rms_96, 96, 32, 1, 5, rms)
ROTATED(rotated_none_48, 48, 16, 1, 6, none)
ROTATED(rotated_none_11008, 11008, 256, 43, 2, none)
ROTATED(rotated_none_34560, 34560, 64, 9, 4, none)

// Buffers: x f32 [rows][K], gamma, beta, y. Dims: rows.
#define NORM(name, K, kind)                                                                        \
  ENTRY(name, 4) {                                                                                 \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    float *y = static_cast<float *>(a.buffers[3]);                                                 \
    otf::norm<otf::Normal::kind>(                                                                  \
        [=](int64_t m, int64_t k) { return x[m * K + k]; }, a.dims[0], K, 1.0e-5f,                 \
        static_cast<const float *>(a.buffers[1]), static_cast<const float *>(a.buffers[2]),        \
        [=](int64_t m, int64_t k, float v) { y[m * K + k] = v; });                                 \
  }
NORM(norm_rms_576, 576, rms)
NORM(norm_layer_33, 33, layer)

// Buffers: x f32 [batch][heads][length][D], cos, sin f32 [length][R], y. Dims: batch * heads, length.
#define ROPE(name, D, R, interleaved)                                                              \
  ENTRY(name, 4) {                                                                                 \
    const float *x = static_cast<const float *>(a.buffers[0]);                                     \
    const float *c = static_cast<const float *>(a.buffers[1]);                                     \
    const float *s = static_cast<const float *>(a.buffers[2]);                                     \
    float *y = static_cast<float *>(a.buffers[3]);                                                 \
    const int64_t length = a.dims[1];                                                              \
    otf::rope<D, R, interleaved>(                                                                  \
        a.dims[0] * length, [=](int64_t r, int i) { return x[r * D + i]; },                        \
        [=](int64_t r, int i) { return c[r % length * R + i]; },                                   \
        [=](int64_t r, int i) { return s[r % length * R + i]; },                                   \
        [=](int64_t r, int i, float v) { y[r * D + i] = v; });                                     \
  }
ROPE(rope_64_64, 64, 64, false)
ROPE(rope_20_8, 20, 8, false)
ROPE(rope_64_64_pairs, 64, 64, true)

// Buffers: q f32 [batch][heads][length][D], k, v [batch][kv heads][capacity][D], mask, y like q, work, sinks f32 [heads].
// Dims: batch, kv heads, length, keys, capacity. Masks: f32 [length][keys] for all heads, u8 [keys]. Where there is work, the second
// entry of the name joins what the first leaves there.
#define ATTENTION_OF(name, D, DV, group, cacheType, softcap, maskExpression, sinkExpression)        \
  ENTRY(name, 7) {                                                                                 \
    using S = otf::AttentionShape<D, DV, group>;                                                   \
    const float *q = static_cast<const float *>(a.buffers[0]);                                     \
    float *y = static_cast<float *>(a.buffers[4]);                                                 \
    const int batch = a.dims[0], kv = a.dims[1], length = a.dims[2], keys = a.dims[3];             \
    const int64_t capacity = a.dims[4], heads = kv * group;                                        \
    using T = cacheType;                                                                           \
    constexpr int kd = otf::rowElements<T>(D), vd = otf::rowElements<T>(DV);                       \
    otf::Heads<T> k = {static_cast<const T *>(a.buffers[1]), kv * capacity * kd, capacity * kd,    \
                       kd};                                                                        \
    otf::Heads<T> v = {static_cast<const T *>(a.buffers[2]), kv * capacity * vd, capacity * vd,    \
                       vd};                                                                        \
    otf::attention<S>(                                                                             \
        batch, kv, length, keys,                                                                   \
        [=](int64_t b, int64_t h, int64_t i, int d) {                                              \
          return q[((b * heads + h) * length + i) * D + d];                                        \
        },                                                                                         \
        k, v, 0.125f, softcap, maskExpression, sinkExpression, static_cast<float *>(a.buffers[5]), \
        [=](int64_t b, int64_t h, int64_t i, int d, float o) {                                     \
          y[((b * heads + h) * length + i) * DV + d] = o;                                          \
        });                                                                                        \
  }                                                                                                \
  ENTRY(name##_combine, 7) {                                                                       \
    float *y = static_cast<float *>(a.buffers[4]);                                                 \
    const int64_t kv = a.dims[1], length = a.dims[2], heads = kv * group;                          \
    otf::attentionCombine<otf::AttentionShape<D, DV, group>>(                                      \
        a.dims[0], kv, length, a.dims[3], static_cast<const float *>(a.buffers[5]),                \
        sinkExpression, [=](int64_t b, int64_t h, int64_t i, int d, float o) {                     \
          y[((b * heads + h) * length + i) * DV + d] = o;                                          \
        });                                                                                        \
  }
#define ATTENTION(name, D, DV, group, cacheType, softcap, maskExpression)                          \
  ATTENTION_OF(name, D, DV, group, cacheType, softcap, maskExpression, otf::NoSink{})
#define ADD (otf::MaskAdd{static_cast<const float *>(a.buffers[3]), 0, 0, keys, 1})
#define KEEP (otf::MaskKeep{static_cast<const otf::uint8_t *>(a.buffers[3]), 0, 0, 0, 1})
#define CAUSAL (otf::MaskCausal<otf::MaskNone>{{}, int(keys - length)})
#define SINK (otf::HeadSink{static_cast<const float *>(a.buffers[6])})
ATTENTION(attention_none_64_3, 64, 64, 3, float, 0.0f, otf::MaskNone{})
ATTENTION(attention_add_64_3, 64, 64, 3, float, 0.0f, ADD)
ATTENTION(attention_keep_64_3, 64, 64, 3, float, 0.0f, KEEP)
ATTENTION(attention_causal_64_3, 64, 64, 3, float, 0.0f, CAUSAL)
ATTENTION(attention_cap_20_1, 20, 20, 1, float, 5.0f, ADD)
ATTENTION(attention_odd_33_2, 33, 33, 2, float, 0.0f, otf::MaskNone{})
ATTENTION(attention_half_128_4, 128, 128, 4, otf::half_t, 0.0f, ADD)
ATTENTION(attention_half_64_3, 64, 64, 3, otf::half_t, 0.0f, otf::MaskNone{})
ATTENTION(attention_single_128_8, 128, 128, 8, float, 0.0f, otf::MaskNone{})
ATTENTION(attention_half_128_8, 128, 128, 8, otf::half_t, 0.0f, otf::MaskNone{})
// The next three are otf-cuda-bench's.
ATTENTION(attention_single_128_4, 128, 128, 4, float, 0.0f, otf::MaskNone{})
ATTENTION(attention_half_128_4_none, 128, 128, 4, otf::half_t, 0.0f, otf::MaskNone{})
ATTENTION(attention_codes_128_4, 128, 128, 4, otf::int8_t, 0.0f, otf::MaskNone{})
ATTENTION(attention_wide_256_8, 256, 256, 8, otf::half_t, 0.0f, CAUSAL)
ATTENTION(attention_wide_256_2, 256, 256, 2, float, 0.0f, CAUSAL)
ATTENTION(attention_codes_64_3, 64, 64, 3, otf::int8_t, 0.0f, otf::MaskNone{})
ATTENTION(attention_codes_128_8, 128, 128, 8, otf::int8_t, 0.0f, CAUSAL)
ATTENTION(attention_codes_256_5, 256, 256, 5, otf::int8_t, 30.0f, ADD)
ATTENTION(attention_codes_33_2, 33, 33, 2, otf::int8_t, 0.0f, KEEP)
ATTENTION_OF(attention_sink_64_7, 64, 64, 7, otf::half_t, 0.0f, KEEP, SINK)
ATTENTION_OF(attention_sink_32_6, 32, 32, 6, otf::int8_t, 0.0f, CAUSAL, SINK)

// Buffers: cache [outer][capacity][row], x f32 [outer][added][width]. Dims: outer, added, width,
// past, capacity.
#define APPEND(name, T)                                                                            \
  ENTRY(name, 2) {                                                                                 \
    const float *x = static_cast<const float *>(a.buffers[1]);                                     \
    const int64_t added = a.dims[1], width = a.dims[2];                                            \
    otf::append(                                                                                   \
        static_cast<T *>(a.buffers[0]),                                                            \
        [=](int64_t o, int64_t s, int64_t i) { return x[(o * added + s) * width + i]; },           \
        a.dims[0], added, int(width), a.dims[3], a.dims[4], otf::AtEnd{});                         \
  }
APPEND(append_f32, float)
APPEND(append_f16, otf::half_t)
APPEND(append_i8, otf::int8_t)

// What a bench compares with: reads all of x. Buffers: x, y u32 [1], which nobody writes but for one sum. Dims: units of 16 bytes.
ENTRY(read_all, 2) {
  const uint4 *x = static_cast<const uint4 *>(a.buffers[0]);
  const int64_t count = a.dims[0], step = int64_t(gridDim.x) * otf::kThreads;
  unsigned sum = 0;
  for (int64_t i = int64_t(blockIdx.x) * otf::kThreads + threadIdx.x; i < count; i += 8 * step) {
    uint4 unit[8];
#pragma unroll
    for (int n = 0; n < 8; ++n)
      unit[n] = i + n * step < count ? x[i + n * step] : uint4{};
#pragma unroll
    for (int n = 0; n < 8; ++n)
      sum += unit[n].x ^ unit[n].y ^ unit[n].z ^ unit[n].w;
  }
  if (sum == 0x12345678u)
    *static_cast<unsigned *>(a.buffers[1]) = sum;
}

// Buffers: x, y, z f32; z = silu(x) * y. Dims: elements.
ENTRY(map_silu, 3) {
  const float *x = static_cast<const float *>(a.buffers[0]);
  const float *y = static_cast<const float *>(a.buffers[1]);
  float *z = static_cast<float *>(a.buffers[2]);
  otf::map(a.dims[0], [=](int64_t i) { z[i] = x[i] / (1.0f + otf::exp(-x[i])) * y[i]; });
}

// Buffers: x f32, y f32 [6][elements]: the functions of the library. Dims: elements.
ENTRY(map_functions, 2) {
  const float *x = static_cast<const float *>(a.buffers[0]);
  float *y = static_cast<float *>(a.buffers[1]);
  const int64_t n = a.dims[0];
  otf::map(n, [=](int64_t i) {
    y[i] = otf::exp(x[i]);
    y[n + i] = otf::log(x[i]);
    y[2 * n + i] = otf::tanh(x[i]);
    y[3 * n + i] = otf::erf(x[i]);
    y[4 * n + i] = otf::sinTurned(x[i], 0); // without the library's fallback, which needs a stack
    y[5 * n + i] = otf::sinTurned(x[i], 1);
  });
}

// Buffers: bits u16, out u16: f16 to f32 and back, for all 65536. Dims: elements.
ENTRY(map_half, 2) {
  const otf::half_t *x = static_cast<const otf::half_t *>(a.buffers[0]);
  otf::half_t *y = static_cast<otf::half_t *>(a.buffers[1]);
  otf::map(a.dims[0],
           [=](int64_t i) { y[i] = otf::fromFloat<otf::half_t>(otf::toFloat(x[i])); });
}
