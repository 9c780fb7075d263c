// SPDX-License-Identifier: Apache-2.0
//
// Tile by tile, so that a large matrix is in memory only as its doubles and its codes.

#include "lib/Reference/MatrixCodec.h"

#include "lib/Encoding/Codec.h"
#include "lib/Reference/Record.h"

#include <algorithm>

namespace otf::reference {

std::string recode(Matrix &matrix, int kind, int64_t group, const ReadRows &read, bool jointFit) {
  if (kind < 0 || kind > int(kLastEncoding))
    return "lib/Encoding has no encoding number " + std::to_string(kind);
  Encoding encoding{.kind = EncodingKind(kind), .group = group, .jointFit = jointFit};
  WeightLayout layout;
  EncodeStatus status = makeLayout(encoding, matrix.rows, matrix.columns,
                                   int64_t(matrix.outliers.size()), layout);
  if (status != EncodeStatus::Ok)
    return describe(status);

  matrix.blob.assign(size_t(layout.blobBytes), 0);
  std::vector<uint32_t> index;
  if (layout.outliers != 0) {
    for (int64_t column : columnOrder(matrix.columns, matrix.outliers))
      index.push_back(uint32_t(column));
    std::copy_n(reinterpret_cast<const uint8_t *>(index.data()), 4 * index.size(),
                matrix.blob.data());
  }
  const uint32_t *order = index.empty() ? nullptr : index.data();
  matrix.weights.resize(size_t(matrix.rows * matrix.columns));
  std::vector<float> rows(size_t(kTileRows * matrix.columns));
  std::vector<double> decoded(rows.size());
  for (int64_t tile = 0; tile < layout.tiles; ++tile) {
    int64_t first = tile * kTileRows, count = std::min(kTileRows, matrix.rows - first);
    if (std::string problem = read(first, count, rows.data()); !problem.empty())
      return problem;
    uint8_t *bytes = matrix.blob.data() + layout.tileOffset(tile);
    status = encodeTile(encoding, layout, order, rows.data(), matrix.columns, count, bytes);
    if (status != EncodeStatus::Ok)
      return describe(status);
    decodeTile(encoding, layout, order, bytes, decoded.data());
    std::copy_n(decoded.data(), count * matrix.columns,
                matrix.weights.data() + first * matrix.columns);
  }
  return {};
}

} // namespace otf::reference
