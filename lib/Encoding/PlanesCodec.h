// SPDX-License-Identifier: Apache-2.0
//
// The codec of planes<w,k> (Planes.h): decoding here, encoding by the search of Trellis.h.
#ifndef OTF_ENCODING_PLANESCODEC_H
#define OTF_ENCODING_PLANESCODEC_H

#include "Grouped.h"
#include "Planes.h"
#include "Trellis.h"

namespace otf {

/// The k words of a row to their places in a chunk.
inline void storePlanes(const PlanesCode &code, uint8_t *chunk, int row, const uint32_t *words) {
  for (int p = 0; p < code.planes; ++p)
    std::memcpy(chunk + 32 * p + 4 * row, words + p, 4);
}

template <EncodingKind k> struct PlanesCodec {
  static constexpr EncodingKind kind = k;
  static constexpr const PlanesCode &code = planesCode(k);

  static unsigned get(const uint8_t *chunk, int row, int column) {
    uint32_t words[4];
    for (int p = 0; p < code.planes; ++p)
      std::memcpy(words + p, chunk + 32 * p + 4 * row, 4);
    return unsigned(planesSum(code, words, 1, column));
  }
  static double decode(unsigned sum, double scale, double) { return scale * (int(sum) - code.offset); }

  /// The encoder keeps a scale of 0 where no other loses less than the weights are; so no single error exceeds their norm.
  static double errorBound(const float *group, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; ++i)
      squares += double(group[i]) * group[i];
    return std::sqrt(squares);
  }

  EncodeStatus encodeTile(const WeightLayout &layout, const uint32_t *index, const float *weights, int64_t rowStride,
                          int64_t rows, uint8_t *tile, const GivenGroups *given) const {
    return given ? EncodeStatus::NoGivenGrid
                 : encodePlanesTile(k, layout, index, weights, rowStride, rows, tile);
  }
  void decodeTile(const WeightLayout &layout, const uint32_t *index, const uint8_t *tile, double *out) const {
    decodeGroupedTile(*this, layout, index, tile, out);
  }
};

} // namespace otf

#endif // OTF_ENCODING_PLANESCODEC_H
