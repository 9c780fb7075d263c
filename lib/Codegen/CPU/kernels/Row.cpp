// SPDX-License-Identifier: Apache-2.0
//
// One row of an encoded matrix as f32: embedding tables, in whatever encoding. A chunk gives 32
// codes of the row as bytes in column order; scale, zero and the scatter through the column index
// are common.
#include "Encoding/Layout.h"
#include "Kernels.h"
#include "PlanesSteps.h"

namespace otf::cpu {
namespace {

inline uint32_t word(const uint8_t *chunk, int vector, int64_t row) {
  uint32_t w;
  __builtin_memcpy(&w, chunk + 32 * vector + 4 * row, 4);
  return w;
}

template <EncodingKind k> struct Int8Row {
  static constexpr EncodingKind kind = k;
  __m256i values(const uint8_t *chunk, int64_t row) const {
    uint32_t w[8];
    for (int step = 0; step < 8; ++step)
      w[step] = word(chunk, step, row);
    return loadBytes(w);
  }
};

template <EncodingKind k> struct Int4Row {
  static constexpr EncodingKind kind = k;
  __m256i values(const uint8_t *chunk, int64_t row) const {
    uint32_t w[8];
    for (int v = 0; v < 4; ++v) {
      uint32_t both = word(chunk, v, row);
      w[v] = both & 0x0f0f0f0f;
      w[4 + v] = both >> 4 & 0x0f0f0f0f;
    }
    return _mm256_sub_epi8(loadBytes(w), _mm256_set1_epi8(8));
  }
};

template <EncodingKind k> struct Codebook2Row {
  static constexpr EncodingKind kind = k;
  uint32_t table;
  __m256i values(const uint8_t *chunk, int64_t row) const {
    uint32_t w[8];
    for (int step = 0; step < 8; ++step)
      w[step] = word(chunk, step / 4, row) >> 2 * (step % 4) & 0x03030303;
    return _mm256_shuffle_epi8(_mm256_set1_epi32(int32_t(table)), loadBytes(w));
  }
};

template <EncodingKind k> struct PlanesRow {
  static constexpr EncodingKind kind = k;
  __m256i values(const uint8_t *chunk, int64_t row) const { return planesRow<k>(chunk, row); }
};

struct TernarySignRow {
  static constexpr EncodingKind kind = EncodingKind::TernarySign;
  __m256i values(const uint8_t *chunk, int64_t row) const {
    uint32_t w[8];
    for (int step = 0; step < 8; ++step)
      w[step] = word(chunk, step / 4, row) >> 2 * (step % 4) & 0x03030303;
    return _mm256_sub_epi8(loadBytes(w), _mm256_set1_epi8(1));
  }
  /// ±1.
  __m256i signs(const uint8_t *chunk, int64_t row) const {
    uint32_t w[8], packed = word(chunk, 2, row);
    for (int step = 0; step < 8; ++step)
      w[step] = (packed >> step & 0x01010101) << 1;
    return _mm256_sub_epi8(loadBytes(w), _mm256_set1_epi8(1));
  }
};

template <typename Codec>
void groupedRow(const Codec &codec, const void *blob, int64_t row, int64_t kb, int64_t group,
                int64_t outliers, float *out) {
  WeightLayout layout;
  // The layout was checked when the plan was written; rows only decide the number of tiles.
  (void)makeLayout({Codec::kind, group}, row + 1, kb + outliers, outliers, layout);
  const uint32_t *index = outliers ? static_cast<const uint32_t *>(blob) : nullptr;
  const uint8_t *tile =
      static_cast<const uint8_t *>(blob) + layout.tileOffset(row / kTileRows);
  int64_t lane = row % kTileRows;
  auto half = [&](const uint8_t *at) {
    uint16_t bits;
    __builtin_memcpy(&bits, at + 2 * lane, 2);
    return _cvtsh_ss(bits);
  };

  int64_t perGroup = layout.group / kChunkColumns;
  const uint8_t *at = tile;
  for (int64_t c = 0; c < layout.chunks;) {
    int64_t end = perGroup < layout.chunks - c ? c + perGroup : layout.chunks;
    const uint8_t *parameters = at + (end - c) * chunkBytes(Codec::kind);
    auto parameter = [&](const uint8_t *from) {
      if constexpr (!hasFloatParameters(Codec::kind))
        return half(from);
      float value;
      __builtin_memcpy(&value, from + 4 * lane, 4);
      return value;
    };
    __m256 scale = _mm256_set1_ps(parameter(parameters));
    __m256 zero = _mm256_setzero_ps();
    if (hasZeros(Codec::kind))
      zero = _mm256_set1_ps(parameter(parameters + groupParameterBytes(Codec::kind) / 2));
    for (; c < end; ++c, at += chunkBytes(Codec::kind)) {
      __m256i q = codec.values(at, lane);
      float values[kChunkColumns];
      alignas(32) int8_t bytes[kChunkColumns], signs[kChunkColumns];
      _mm256_store_si256(reinterpret_cast<__m256i *>(bytes), q);
      if constexpr (hasSigns(Codec::kind))
        _mm256_store_si256(reinterpret_cast<__m256i *>(signs), codec.signs(at, lane));
      auto eight = [](const int8_t *from) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))));
      };
      for (int i = 0; i < kChunkColumns; i += 8) {
        __m256 add = hasSigns(Codec::kind) ? _mm256_mul_ps(eight(signs + i), zero) : zero;
        _mm256_storeu_ps(values + i, _mm256_fmadd_ps(eight(bytes + i), scale, add));
      }
      int64_t first = c * kChunkColumns;
      int64_t count = kb - first < kChunkColumns ? kb - first : kChunkColumns;
      for (int64_t i = 0; i < count; ++i)
        out[index ? index[first + i] : uint32_t(first + i)] = values[i];
    }
    at = parameters + groupParameterBytes(Codec::kind);
  }
  for (int64_t i = 0; i < outliers; ++i)
    out[index[kb + i]] = half(tile + layout.panelOffset + i * kTileRows * 2);
}

} // namespace
} // namespace otf::cpu

void otf_row_f32(const void *blob, int64_t row, int64_t k, float *out) {
  const float *tile = static_cast<const float *>(blob) + row / 8 * (8 * k);
  for (int64_t i = 0; i < k; ++i)
    out[i] = tile[8 * i + row % 8];
}

void otf_row_f16(const void *blob, int64_t row, int64_t k, float *out) {
  const uint16_t *tile = static_cast<const uint16_t *>(blob) + row / 8 * (8 * k);
  for (int64_t i = 0; i < k; ++i)
    out[i] = _cvtsh_ss(tile[8 * i + row % 8]);
}

#define OTF_ROW(name, Codec, kind)                                                                                     \
  void otf_row_##name(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers, float *out) {        \
    otf::cpu::groupedRow(otf::cpu::Codec<otf::EncodingKind::kind>{}, blob, row, kb, group, outliers, out);             \
  }
#define OTF_GRID2_ROW(name, kind)                                                                                      \
  void otf_row_##name(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers, float *out) {        \
    otf::cpu::groupedRow(otf::cpu::Codebook2Row<otf::EncodingKind::kind>{0x0100fffe}, blob, row, kb, group, outliers,  \
                         out);                                                                                         \
  }
OTF_ROW(int8, Int8Row, Int8)
OTF_ROW(grid8, Int8Row, Grid8)
OTF_ROW(grid8z, Int8Row, Grid8z)
OTF_ROW(int4, Int4Row, Int4)
OTF_ROW(grid4, Int4Row, Grid4)
OTF_ROW(grid4z, Int4Row, Grid4z)
OTF_ROW(planes3x1, PlanesRow, Planes3x1)
OTF_ROW(planes3x2, PlanesRow, Planes3x2)
OTF_ROW(planes3x3, PlanesRow, Planes3x3)
OTF_ROW(planes3x4, PlanesRow, Planes3x4)
OTF_ROW(planes4x1, PlanesRow, Planes4x1)
OTF_ROW(planes4x2, PlanesRow, Planes4x2)
OTF_ROW(planes4x3, PlanesRow, Planes4x3)
OTF_GRID2_ROW(grid2, Grid2)
OTF_GRID2_ROW(grid2z, Grid2z)

void otf_row_codebook2(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers,
                       uint32_t table, float *out) {
  otf::cpu::groupedRow(otf::cpu::Codebook2Row<otf::EncodingKind::Codebook2>{table}, blob, row, kb, group, outliers, out);
}

void otf_row_ternary_sign(const void *blob, int64_t row, int64_t kb, int64_t group, int64_t outliers, float *out) {
  otf::cpu::groupedRow(otf::cpu::TernarySignRow{}, blob, row, kb, group, outliers, out);
}
