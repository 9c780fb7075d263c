// SPDX-License-Identifier: Apache-2.0
//
// Where everything lies in an encoded weight. Compiler, runtime and both code generators take
// sizes and offsets from here and compute none themselves.
//
//   blob   [column index, padded to 64 bytes; only with outliers][tile 0][tile 1] ...
//   index  u32 background[background], u32 outlier[outliers], each ascending
//   tile   eight rows: [group 0][group 1] ... [outlier panel: outliers × f16 w[8]]
//   group  [chunk] ... [chunk][f16 scale[8]][f16 zero[8], where the encoding has zeros]; f32 in grids
//   chunk  the codes of 8 rows × 32 columns; the encodings' headers draw it
//
// A group of more than 32 columns has several chunks before its scales; the last group may have
// fewer. f32 and f16 have no groups: their tile is [column][8 rows]. Every part is a multiple of
// 16 bytes, so each tile starts at one.
#ifndef OTF_ENCODING_LAYOUT_H
#define OTF_ENCODING_LAYOUT_H

#include <cstdint>

namespace otf {

enum class EncodingKind : uint8_t {
  F32, F16, Int8, Int4, Codebook2, Grid8, Grid4, Grid2, Grid8z, Grid4z, Grid2z,
  Planes3x1, Planes3x2, Planes3x3, Planes3x4, Planes4x1, Planes4x2, Planes4x3,
  TernarySign
};
inline constexpr EncodingKind kLastEncoding = EncodingKind::TernarySign;

/// The default table of codebook2 as four int8, code 0 in the lowest byte; see Codebook2.h.
inline constexpr uint32_t kCodebook2Table = 0x7d25db83; // 125, 37, -37, -125

struct Encoding {
  EncodingKind kind = EncodingKind::F32;
  /// Columns that share a scale: a multiple of 32, or 0 for a whole row. Plain kinds ignore it.
  int64_t group = 32;
  /// Codebook2 only.
  uint32_t table = kCodebook2Table;
  /// TernarySign only, and only to encode: both levels are fitted together.
  bool jointFit = false;
};

/// Why a weight cannot be laid out or encoded. The caller adds the tensor's name.
enum class [[nodiscard]] EncodeStatus : uint8_t {
  Ok,
  BadShape,
  BadGroup,
  BadTable,
  NoOutliers,
  TooLarge,
  NotFinite,
  OutOfRange,
  NoGivenGrid,
  NoFeedback,
};

constexpr const char *describe(EncodeStatus status) {
  switch (status) {
  case EncodeStatus::Ok:
    return "ok";
  case EncodeStatus::BadShape:
    return "rows and columns must be positive, outlier columns between 0 and columns";
  case EncodeStatus::BadGroup:
    return "the group size must be a multiple of 32, or 0 for one group a row";
  case EncodeStatus::BadTable:
    return "codebook2 can only encode with its default table";
  case EncodeStatus::NoOutliers:
    return "f32 and f16 weights have no outlier columns";
  case EncodeStatus::TooLarge:
    return "the encoded weight is larger than 2^62 bytes, or a row than 2^32 columns";
  case EncodeStatus::NotFinite:
    return "a weight is NaN or infinite";
  case EncodeStatus::OutOfRange:
    return "a scale, zero point or f16 weight is beyond the range of f16";
  case EncodeStatus::NoGivenGrid:
    return "the encoding cannot keep a grid that is given";
  case EncodeStatus::NoFeedback:
    return "the encoding cannot be coded with error feedback (int8, int4 and codebook2 can)";
  }
  return "unknown status";
}

inline constexpr int64_t kTileRows = 8;
inline constexpr int64_t kChunkColumns = 32;

constexpr bool isPlain(EncodingKind kind) {
  return kind == EncodingKind::F32 || kind == EncodingKind::F16;
}

constexpr bool isPlanes(EncodingKind kind) {
  return kind >= EncodingKind::Planes3x1 && kind <= EncodingKind::Planes4x3;
}

constexpr bool isGrid(EncodingKind kind) {
  return kind >= EncodingKind::Grid8 && kind <= EncodingKind::Grid2z;
}

/// Whether a group stores a second parameter: a zero point, or what signs multiply.
constexpr bool hasZeros(EncodingKind kind) {
  return kind == EncodingKind::Codebook2 || kind == EncodingKind::TernarySign ||
         (isGrid(kind) && kind >= EncodingKind::Grid8z);
}

/// Whether weight = scale · code + zero · (±1), the second a code of its own and not a zero point.
constexpr bool hasSigns(EncodingKind kind) { return kind == EncodingKind::TernarySign; }

/// Whether scales and zeros are f32 and not f16.
constexpr bool hasFloatParameters(EncodingKind kind) { return isGrid(kind); }

/// Bytes of the codes of one chunk, 8 rows × 32 columns; of one column of a plain tile.
constexpr int64_t chunkBytes(EncodingKind kind) {
  switch (kind) {
  case EncodingKind::F32:
    return 8 * 4;
  case EncodingKind::F16:
    return 8 * 2;
  case EncodingKind::Int8:
  case EncodingKind::Grid8:
  case EncodingKind::Grid8z:
    return 8 * 32;
  case EncodingKind::Int4:
  case EncodingKind::Grid4:
  case EncodingKind::Grid4z:
    return 8 * 16;
  case EncodingKind::Codebook2:
  case EncodingKind::Grid2:
  case EncodingKind::Grid2z:
  case EncodingKind::Planes3x2:
  case EncodingKind::Planes4x2:
    return 8 * 8;
  case EncodingKind::Planes3x1:
  case EncodingKind::Planes4x1:
    return 8 * 4;
  case EncodingKind::Planes3x3:
  case EncodingKind::Planes4x3:
  case EncodingKind::TernarySign:
    return 8 * 12;
  case EncodingKind::Planes3x4:
    return 8 * 16;
  }
  return 0;
}

/// Bytes of the scales and zeros that end a group.
constexpr int64_t groupParameterBytes(EncodingKind kind) {
  return isPlain(kind) ? 0 : (hasFloatParameters(kind) ? 32 : 16) * (hasZeros(kind) ? 2 : 1);
}

struct WeightLayout {
  int64_t rows = 0;
  int64_t columns = 0;    ///< background + outliers
  int64_t background = 0; ///< columns that are encoded
  int64_t outliers = 0;   ///< columns kept in f16
  int64_t group = 0;      ///< columns of a group, resolved: never 0
  int64_t chunks = 0;     ///< of a tile; columns for plain kinds
  int64_t groups = 0;     ///< of a tile; 0 for plain kinds
  int64_t groupBytes = 0; ///< of a whole group, codes and parameters
  int64_t panelOffset = 0; ///< of the outlier panel in a tile
  int64_t tileBytes = 0;
  int64_t tiles = 0;
  int64_t indexBytes = 0; ///< also the offset of tile 0
  int64_t blobBytes = 0;

  constexpr int64_t tileOffset(int64_t tile) const { return indexBytes + tile * tileBytes; }
  constexpr double bitsPerWeight() const {
    return 8.0 * double(blobBytes) / (double(rows) * double(columns));
  }
};

/// Fills `layout`, or says why there is none. Sizes come from files, so nothing here may overflow:
/// with columns below 2^32 a tile is below 2^38 bytes, and only the product with the number of
/// tiles needs a check.
constexpr EncodeStatus makeLayout(const Encoding &encoding, int64_t rows, int64_t columns,
                                  int64_t outliers, WeightLayout &layout) {
  EncodingKind kind = encoding.kind;
  if (rows <= 0 || columns <= 0 || outliers < 0 || outliers > columns)
    return EncodeStatus::BadShape;
  if (columns >= int64_t(1) << 32)
    return EncodeStatus::TooLarge;
  if (isPlain(kind) && outliers != 0)
    return EncodeStatus::NoOutliers;
  if (!isPlain(kind) && (encoding.group < 0 || encoding.group % kChunkColumns != 0))
    return EncodeStatus::BadGroup;

  WeightLayout l;
  l.rows = rows;
  l.columns = columns;
  l.outliers = outliers;
  l.background = columns - outliers;
  if (isPlain(kind)) {
    l.chunks = columns;
    l.group = columns;
    l.panelOffset = l.chunks * chunkBytes(kind);
  } else {
    l.chunks = (l.background + kChunkColumns - 1) / kChunkColumns;
    // A group longer than the row is one short group.
    int64_t row = l.chunks == 0 ? kChunkColumns : l.chunks * kChunkColumns;
    l.group = encoding.group == 0 || encoding.group > row ? row : encoding.group;
    l.groups = (l.chunks * kChunkColumns + l.group - 1) / l.group;
    l.groupBytes = l.group / kChunkColumns * chunkBytes(kind) + groupParameterBytes(kind);
    l.panelOffset = l.chunks * chunkBytes(kind) + l.groups * groupParameterBytes(kind);
  }
  l.tileBytes = l.panelOffset + outliers * kTileRows * 2;
  l.tiles = (rows - 1) / kTileRows + 1;
  l.indexBytes = outliers == 0 ? 0 : (columns * 4 + 63) / 64 * 64;
  int64_t limit = int64_t(1) << 62;
  if (l.tiles > (limit - l.indexBytes) / l.tileBytes)
    return EncodeStatus::TooLarge;
  l.blobBytes = l.indexBytes + l.tiles * l.tileBytes;
  layout = l;
  return EncodeStatus::Ok;
}

/// The record of a row of activations for integer and table weights (docs/Architecture.md):
///   i8 q[padded], f32 scale[chunks], i32 sum[chunks], f32 outlier[outliers], padding to 64 bytes.
struct RecordLayout {
  int64_t padded = 0; ///< background rounded up to 32
  int64_t chunks = 0;
  int64_t scaleOffset = 0;
  int64_t sumOffset = 0;
  int64_t outlierOffset = 0;
  int64_t bytes = 0;
};

/// `background` and `outliers` are those of a WeightLayout, so below 2^32 together.
constexpr RecordLayout recordLayout(int64_t background, int64_t outliers) {
  RecordLayout r;
  r.chunks = (background + kChunkColumns - 1) / kChunkColumns;
  r.padded = r.chunks * kChunkColumns;
  r.scaleOffset = r.padded;
  r.sumOffset = r.scaleOffset + r.chunks * 4;
  r.outlierOffset = r.sumOffset + r.chunks * 4;
  r.bytes = (r.outlierOffset + outliers * 4 + 63) / 64 * 64;
  return r;
}

/// The record of a row for f32 and f16 weights: f32 x[columns], padding to 64 bytes.
constexpr int64_t plainRecordBytes(int64_t columns) { return (columns * 4 + 63) / 64 * 64; }

} // namespace otf

#endif // OTF_ENCODING_LAYOUT_H
