/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU micro-kernels that generated code calls. They are compiled to LLVM bitcode once per
 * instruction set; otf-compile links them to what it generates and the optimiser specialises them,
 * so a size passed as a constant costs nothing here.
 *
 * None of them allocates, fails, keeps state or calls the C library (otf_sin and otf_cos call
 * libm). Strides of float arrays are in elements, of records in bytes. Pointers never overlap
 * unless said. Blobs, tiles and records are those of lib/Encoding/Layout.h and
 * docs/Architecture.md. */
#ifndef OTF_CODEGEN_CPU_KERNELS_H
#define OTF_CODEGEN_CPU_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Contraction of m rows of activations with tiles of eight weight rows.
 *   tile       the first tile, 16-byte aligned; not the blob: the caller adds tileOffset(t)
 *   tileBytes  from one tile to the next
 *   tiles      any number; otf_tile_ takes one
 *   rec        record of row 0; row i is at rec + i·recStride (bytes; a multiple of 64)
 *   m          at least 1. A row's result does not depend on m or tiles: bits are equal for any batch.
 *   acc        f32[tiles][m][8], written: acc[8(t·m + i) + r] = Σ_k W[8t + r, k] x_i[k]. Rows past N give 0.
 * Plain: k columns. Every sum is over columns in order, so that it has the same bits for every m.
 * Integer and table:
 *   kb         background columns (layout.background)
 *   group      columns a scale, a multiple of 32; 0, or more than kb, for one group a row
 *              or OTF_EXACT_SUMS: one group a row, its scales and those of the records are 1, and no sum of
 *              magnitudes of products exceeds 2^24, so that integers may be added instead of floats
 *   outliers   outlier columns
 *   table      codebook2: four int8, |t| ≤ 127, code 0 in the lowest byte */
#define OTF_EXACT_SUMS (-1)
void otf_tiles_f32(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,
                   int64_t recStride, int64_t m, int64_t k, float *acc);
void otf_tiles_f16(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,
                   int64_t recStride, int64_t m, int64_t k, float *acc);
#define OTF_GROUPED_KERNELS(name)                                                                  \
  void otf_tiles_##name(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,       \
                        int64_t recStride, int64_t m, int64_t kb, int64_t group, int64_t outliers, \
                        float *acc);                                                               \
  void otf_tile_##name(const void *tile, const void *rec, int64_t recStride, int64_t m,            \
                       int64_t kb, int64_t group, int64_t outliers, float *acc);
OTF_GROUPED_KERNELS(int8)
OTF_GROUPED_KERNELS(int4)
OTF_GROUPED_KERNELS(ternary_sign)
void otf_tiles_codebook2(const void *tile, int64_t tileBytes, int64_t tiles, const void *rec,
                         int64_t recStride, int64_t m, int64_t kb, int64_t group, int64_t outliers,
                         uint32_t table, float *acc);
void otf_tile_codebook2(const void *tile, const void *rec, int64_t recStride, int64_t m, int64_t kb,
                        int64_t group, int64_t outliers, uint32_t table, float *acc);

/* Grids are as int8, int4 and codebook2 without a table. And a tile times f32 rows, without outliers, of whose x the rows
 * are read as they are:
 *   x          f32[k] of row 0; row i is at x + i·stride (bytes) */
#define OTF_GRID_KERNELS(name)                                                                     \
  OTF_GROUPED_KERNELS(name)                                                                        \
  void otf_row_##name(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,  \
                      float *out);
#define OTF_FLOAT_KERNEL(name)                                                                     \
  void otf_float_##name(const void *tile, const void *x, int64_t stride, int64_t m, int64_t k,     \
                        int64_t group, int64_t outliers, float *acc);
OTF_GRID_KERNELS(grid8)
OTF_GRID_KERNELS(grid8z)
OTF_GRID_KERNELS(grid4)
OTF_GRID_KERNELS(grid4z)
OTF_GRID_KERNELS(grid2)
OTF_GRID_KERNELS(grid2z)
OTF_FLOAT_KERNEL(int8)
OTF_FLOAT_KERNEL(int4)
OTF_FLOAT_KERNEL(grid8)
OTF_FLOAT_KERNEL(grid8z)
OTF_FLOAT_KERNEL(grid4)
OTF_FLOAT_KERNEL(grid4z)
OTF_FLOAT_KERNEL(grid2)
OTF_FLOAT_KERNEL(grid2z)

/* planes<w,k> (Encoding/Planes.h), all of the above. */
#define OTF_PLANES_KERNELS(name)                                                                   \
  OTF_GRID_KERNELS(name)                                                                           \
  OTF_FLOAT_KERNEL(name)
OTF_PLANES_KERNELS(planes3x1)
OTF_PLANES_KERNELS(planes3x2)
OTF_PLANES_KERNELS(planes3x3)
OTF_PLANES_KERNELS(planes3x4)
OTF_PLANES_KERNELS(planes4x1)
OTF_PLANES_KERNELS(planes4x2)
OTF_PLANES_KERNELS(planes4x3)

/* What a row goes through before it is used. Given as an int64_t. */
enum {
  OTF_NORM_NONE = 0,
  OTF_NORM_RMS = 1,   /* x / sqrt(mean(x²) + eps) · gamma + beta */
  OTF_NORM_LAYER = 2, /* (x − mean) / sqrt(variance + eps) · gamma + beta */
};

/* The record of one row.
 *   x            f32[k]; may not be inside rec
 *   norm, eps    see above; eps is ignored without a norm
 *   gamma, beta  f32[k], or null for 1 and 0; both ignored without a norm
 *   rec          written whole, padding included: plainRecordBytes(k), recordLayout(kb, outliers).bytes
 *   index        u32[k]: the weight blob's column index, or null when outliers is 0
 *   grid         f32[2]: the scale and zero point of all codes, and the record's scales are 1; or null for a scale for each 32 of x
 *   kb           background columns; k = kb + outliers
 * A row that holds NaN or an infinity gives NaN in every result that reads its group of 32. */
void otf_record_f32(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                    const float *beta, void *rec);
void otf_record_i8(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                   const float *beta, const uint32_t *index, const float *grid, int64_t kb,
                   int64_t outliers, void *rec);
/* A row of k columns rotated (lib/Encoding/Rotation.h): alone, and in a record without outliers.
 *   block, factor   of the rotation; block · factor divides k
 *   seed            of the signs, as uint64_t
 *   matrix          f32[factor²]: rotationFactor32()
 *   out             f32[k]; may be x */
void otf_rotate(const float *x, int64_t k, int64_t block, int64_t factor, int64_t seed,
                const float *matrix, float *out);
void otf_record_rotated(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
                        const float *beta, int64_t block, int64_t factor, int64_t seed,
                        const float *matrix, void *rec);

/* A tap of a window; zeros where it is not `inside`, and then x or record is not read.
 *   x, out      f32[count]
 *   record      of `channels` columns, a multiple of 32, without outliers
 *   out (i8)    a record of channels · taps columns, of which columns tap · channels on are written, with scales and sums */
void otf_tap_f32(const float *x, int64_t inside, int64_t count, float *out);
void otf_tap_i8(const void *record, int64_t inside, int64_t channels, int64_t tap, int64_t taps,
                void *out);

/* One row of an encoded matrix as f32 (an embedding).
 *   blob   the whole blob, 16-byte aligned; it begins with the column index if outliers > 0
 *   row    0 to N − 1, checked by the caller
 *   out    f32[k], or f32[kb + outliers], in the order of the matrix */
void otf_row_f32(const void *blob, int64_t row, int64_t k, float *out);
void otf_row_f16(const void *blob, int64_t row, int64_t k, float *out);
void otf_row_int8(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,
                  float *out);
void otf_row_int4(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,
                  float *out);
void otf_row_codebook2(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,
                       uint32_t table, float *out);
void otf_row_ternary_sign(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,
                          float *out);

/* Norm of a row; parameters as for records. out may be x. */
void otf_norm(const float *x, int64_t k, int64_t norm, float eps, const float *gamma,
              const float *beta, float *out);

/* Statistics of rows, one work item of otf.observe: a block of the lower triangle of products, blocks counted row after row.
 *   x           f32[rows][k]
 *   item        0 to B (B + 1) / 2 − 1 with B = ⌈k / OTF_OBSERVE_BLOCK⌉; to B − 1 with `diagonal`, which leaves products out
 *   count       i64[1] += rows, by item 0
 *   moments     f64[5][k]: Σx, Σ|x|, Σx², least (at most 0), largest (at least 0), by the items on the diagonal
 *   histogram   i64[4096] += values by the top 12 bits of their f32; zeros in bin 0. Added to atomically
 *   products    f32[k (k + 1) / 2] += Σ x_i x_j, row i from i (i + 1) / 2 on
 *   scratch     as in KernelABI.h */
#define OTF_OBSERVE_BLOCK 48
void otf_observe(const float *x, int64_t rows, int64_t k, int64_t item, int64_t diagonal, int64_t *count, double *moments,
                 int64_t *histogram, float *products, void *scratch);

/* Rotary embedding of one head of one position, halves convention:
 *   out[i] = x[i]·cos[i] − x[i+h]·sin[i], out[i+h] = x[i+h]·cos[i+h] + x[i]·sin[i+h], h = rotary/2
 *   x, out     f32[d]; out may be x
 *   rotary     even, at most d; dimensions from rotary on are copied
 *   cos, sin   f32[rotary]. */
void otf_rope(const float *x, int64_t d, int64_t rotary, const float *cos, const float *sin,
              float *out);

/* Appends `rows` rows of d values to a cache: cache[r·cacheStride + i] = x[r·xStride + i].
 * cache points at the first row to write. f16 rounds to nearest even and saturates. A row of i8 is d codes and an f32 scale
 * (lib/Encoding/CacheRow.h), so d + 4 bytes, and cacheStride is in bytes. */
void otf_append_f32(const float *x, int64_t xStride, int64_t rows, int64_t d, float *cache,
                    int64_t cacheStride);
void otf_append_f16(const float *x, int64_t xStride, int64_t rows, int64_t d, uint16_t *cache,
                    int64_t cacheStride);
void otf_append_i8(const float *x, int64_t xStride, int64_t rows, int64_t d, int8_t *cache,
                   int64_t cacheStride);

/* Attention of the query heads that share one key-value head of one batch entry:
 *   out = softmax(cap(scale · q kᵀ) + mask) v
 *   q                f32; row r (a position), head h at q + r·qRowStride + h·qHeadStride, d values
 *   rows, heads      query positions; query heads of this key-value head
 *   k, v             key j at k + j·kStride (d values), v + j·vStride (dv values); f32, f16 bits, or rows of i8 as above, whose stride is in bytes
 *   keys             keys in the cache, 0 allowed
 *   scale, softcap   cap(s) = softcap · tanh(s / softcap); softcap 0: cap(s) = s
 *   visible          row r sees keys j < min(keys, visible + r): past + 1 if causal, else keys
 *   window           and of those the last `window` ones; 0: all
 *   maskAdd          f32 added to scores, or null. −inf hides a key.
 *   maskKeep         u8, 0 hides a key, or null. At most one of the two masks.
 *   maskRowStride, maskHeadStride   mask of row r, head h, key j is at r·row + h·head + j
 *   out              f32; row r, head h at out + r·outRowStride + h·outHeadStride, dv values
 *   sink             f32; head h's further score, of a key whose value is 0, at sink + h; or null
 * A query that sees no key gives 0. Needs no scratch: the output rows hold the running sums. */
#define OTF_ATTENTION_KERNEL(name, T)                                                              \
  void otf_attention_##name(                                                                       \
      const float *q, int64_t rows, int64_t heads, int64_t qRowStride, int64_t qHeadStride,        \
      const T *k, int64_t kStride, const T *v, int64_t vStride, int64_t keys, int64_t d,           \
      int64_t dv, float scale, float softcap, int64_t visible, int64_t window,                     \
      const float *maskAdd, const uint8_t *maskKeep, int64_t maskRowStride,                        \
      int64_t maskHeadStride, float *out, int64_t outRowStride, int64_t outHeadStride,             \
      const float *sink);
OTF_ATTENTION_KERNEL(f32, float)
OTF_ATTENTION_KERNEL(f16, uint16_t)
OTF_ATTENTION_KERNEL(i8, int8_t)
#undef OTF_ATTENTION_KERNEL

/* One row's attention in parts, by several threads (AttentionParts.h); the bits are those of otf_attention. `scratch` is as in
 * KernelABI.h. A problem is the query heads that share one key-value head of one batch entry.
 *   otf_attention_parts   into how many parts each of `problems` is to be divided, `most` or 0: it stays whole, since there are
 *                         several positions or few keys, or too little memory to share
 *   otf_attention_part    parts first to last − 1 of `parts` of problem number `problem`. All parts of all problems are done within one
 *                         step. The other parameters are those of otf_attention with one row, which sees all keys */
int64_t otf_attention_parts(const void *scratch, int64_t positions, int64_t problems, int64_t heads, int64_t keys,
                            int64_t dv, int64_t most);
#define OTF_ATTENTION_PART_KERNEL(name, T)                                                         \
  void otf_attention_part_##name(                                                                  \
      const float *q, int64_t heads, int64_t qHeadStride, const T *k, int64_t kStride, const T *v, \
      int64_t vStride, int64_t keys, int64_t d, int64_t dv, float scale, float softcap,            \
      const float *maskAdd, const uint8_t *maskKeep, int64_t maskHeadStride, float *out,           \
      int64_t outHeadStride, const float *sink, const void *scratch, int64_t problem,              \
      int64_t parts, int64_t first, int64_t last);
OTF_ATTENTION_PART_KERNEL(f32, float)
OTF_ATTENTION_PART_KERNEL(f16, uint16_t)
OTF_ATTENTION_PART_KERNEL(i8, int8_t)
#undef OTF_ATTENTION_PART_KERNEL

/* Scalar functions for generated loops: inlined, branch-free (exp, log, tanh, erf), so that loops
 * over them vectorise. Errors in units in the last place are in the tests. */
float otf_exp(float x);
float otf_log(float x);
float otf_tanh(float x);
float otf_erf(float x);
float otf_sin(float x);
float otf_cos(float x);

#ifdef __cplusplus
}
#endif

#endif /* OTF_CODEGEN_CPU_KERNELS_H */
