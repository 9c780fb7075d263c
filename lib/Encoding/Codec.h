// SPDX-License-Identifier: Apache-2.0
//
// Encode and decode tiles of any encoding without templates at the call. This is the reference:
// float64, one weight at a time, from the drawings in the encodings' headers. It decides the bytes;
// kernels are tested against it. To add an encoding, add its header, a kind in Layout.h and a line
// in dispatch() below.
#ifndef OTF_ENCODING_CODEC_H
#define OTF_ENCODING_CODEC_H

#include "Codebook2.h"
#include "Grid.h"
#include "Int4.h"
#include "Int8.h"
#include "Layout.h"
#include "Plain.h"
#include "PlanesCodec.h"
#include "TernarySign.h"

namespace otf {

/// Calls `visit` with the codec of `encoding`.
template <typename Visitor> auto dispatch(const Encoding &encoding, Visitor visit) {
  switch (encoding.kind) {
  case EncodingKind::F16:
    return visit(F16Codec{});
  case EncodingKind::Int8:
    return visit(Int8Codec{});
  case EncodingKind::Int4:
    return visit(Int4Codec{});
  case EncodingKind::Codebook2:
    return visit(Codebook2Codec{encoding.table});
  case EncodingKind::Grid8:
    return visit(GridCodec<8, false>{});
  case EncodingKind::Grid4:
    return visit(GridCodec<4, false>{});
  case EncodingKind::Grid2:
    return visit(GridCodec<2, false>{});
  case EncodingKind::Grid8z:
    return visit(GridCodec<8, true>{});
  case EncodingKind::Grid4z:
    return visit(GridCodec<4, true>{});
  case EncodingKind::Grid2z:
    return visit(GridCodec<2, true>{});
  case EncodingKind::Planes3x1:
    return visit(PlanesCodec<EncodingKind::Planes3x1>{});
  case EncodingKind::Planes3x2:
    return visit(PlanesCodec<EncodingKind::Planes3x2>{});
  case EncodingKind::Planes3x3:
    return visit(PlanesCodec<EncodingKind::Planes3x3>{});
  case EncodingKind::Planes3x4:
    return visit(PlanesCodec<EncodingKind::Planes3x4>{});
  case EncodingKind::Planes4x1:
    return visit(PlanesCodec<EncodingKind::Planes4x1>{});
  case EncodingKind::Planes4x2:
    return visit(PlanesCodec<EncodingKind::Planes4x2>{});
  case EncodingKind::Planes4x3:
    return visit(PlanesCodec<EncodingKind::Planes4x3>{});
  case EncodingKind::TernarySign:
    return visit(TernarySignCodec{encoding.jointFit});
  case EncodingKind::F32:
    break;
  }
  return visit(F32Codec{});
}

/// Writes one tile, all of its layout.tileBytes.
///   index    the blob's column index: background columns, then outlier columns; null without
///            outliers
///   weights  f32, `rows` × layout.columns, row i at weights + i · rowStride
///   rows     real rows of this tile, 1 to 8; the others become zero
///   tile     layout.tileBytes bytes, of any alignment
///   given    the grid to keep, or null: the codec chooses its own
inline EncodeStatus encodeTile(const Encoding &encoding, const WeightLayout &layout,
                               const uint32_t *index, const float *weights, int64_t rowStride,
                               int64_t rows, uint8_t *tile, const GivenGroups *given = nullptr) {
  return dispatch(encoding, [&](auto codec) {
    return codec.encodeTile(layout, index, weights, rowStride, rows, tile, given);
  });
}

/// Reads one tile into `out`, 8 × layout.columns in the order of the matrix, not of the index.
inline void decodeTile(const Encoding &encoding, const WeightLayout &layout, const uint32_t *index,
                       const uint8_t *tile, double *out) {
  dispatch(encoding, [&](auto codec) { codec.decodeTile(layout, index, tile, out); });
}

/// The largest |weight − decoded weight| that encoding this group of `count` finite weights can
/// give. Outlier columns have that of F16.
inline double errorBound(const Encoding &encoding, const float *group, int64_t count) {
  return dispatch(encoding, [&](auto codec) { return codec.errorBound(group, count); });
}

} // namespace otf

#endif // OTF_ENCODING_CODEC_H
