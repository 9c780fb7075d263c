// SPDX-License-Identifier: Apache-2.0
//
// The bridge to lib/Encoding. The relative error is that of the bytes themselves: each tile is
// decoded again by the reference decoder.

#include "lib/Compile/TileEncoder.h"

#include "Encoding/FeedbackPlanes.h"
#include "Encoding/FeedbackTile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace otf {

struct TileEncoder::Layout {
  Encoding encoding;
  WeightLayout weight;
  std::vector<uint32_t> index; // padded to indexBytes
};

double CodingError::relative() const {
  if (difference == 0)
    return 0;
  return std::sqrt(difference / weight);
}

TileEncoder::TileEncoder() : layout(std::make_unique<Layout>()) {}
TileEncoder::~TileEncoder() = default;

std::unique_ptr<TileEncoder> TileEncoder::create(int kind, int64_t group, int64_t rows,
                                                 int64_t columns, std::span<const int64_t> outliers,
                                                 std::string &error, bool jointFit) {
  if (kind < 0 || kind > int(kLastEncoding)) {
    error = "lib/Encoding has no encoding number " + std::to_string(kind);
    return nullptr;
  }
  std::unique_ptr<TileEncoder> encoder(new TileEncoder);
  Layout &l = *encoder->layout;
  l.encoding.kind = EncodingKind(kind);
  l.encoding.group = group;
  l.encoding.jointFit = jointFit;
  EncodeStatus status = makeLayout(l.encoding, rows, columns, int64_t(outliers.size()), l.weight);
  if (status != EncodeStatus::Ok) {
    error = describe(status);
    return nullptr;
  }
  if (outliers.empty())
    return encoder;
  for (size_t i = 0; i < outliers.size(); ++i)
    if (outliers[i] < (i ? outliers[i - 1] + 1 : 0) || outliers[i] >= columns) {
      error = "outlier columns must ascend and lie below " + std::to_string(columns) + ", got " +
              std::to_string(outliers[i]);
      return nullptr;
    }
  l.index.reserve(size_t(l.weight.indexBytes / 4));
  for (int64_t column = 0, next = 0; column < columns; ++column)
    if (next < int64_t(outliers.size()) && outliers[size_t(next)] == column)
      ++next;
    else
      l.index.push_back(uint32_t(column));
  for (int64_t column : outliers)
    l.index.push_back(uint32_t(column));
  l.index.resize(size_t(l.weight.indexBytes / 4));
  return encoder;
}

int64_t TileEncoder::rows() const { return layout->weight.rows; }
int64_t TileEncoder::columns() const { return layout->weight.columns; }
int64_t TileEncoder::blobBytes() const { return layout->weight.blobBytes; }
int64_t TileEncoder::tileBytes() const { return layout->weight.tileBytes; }
int64_t TileEncoder::groups() const { return layout->weight.groups; }
bool TileEncoder::isSearched() const { return isPlanes(layout->encoding.kind); }
std::span<const std::byte> TileEncoder::index() const {
  return std::as_bytes(std::span(layout->index));
}

const uint32_t *TileEncoder::order() const {
  return layout->index.empty() ? nullptr : layout->index.data();
}

const char *TileEncoder::encode(const float *weights, int64_t rows, std::byte *out,
                                CodingError &error, const GivenGrid *given,
                                const Feedback *feedback) const {
  const WeightLayout &l = layout->weight;
  const uint32_t *index = order();
  std::vector<double> decoded(size_t(kTileRows * l.columns));
  bool together = feedback && isPlanes(layout->encoding.kind); // of all rows at once, before they are looked at
  if (together)
    if (EncodeStatus status = encodePlanesWithFeedback(layout->encoding.kind, l, index, weights, l.columns, rows, *feedback,
                                                       reinterpret_cast<uint8_t *>(out));
        status != EncodeStatus::Ok)
      return describe(status);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    int64_t count = std::min(kTileRows, rows - row);
    const float *w = weights + row * l.columns;
    uint8_t *tile = reinterpret_cast<uint8_t *>(out) + row / kTileRows * l.tileBytes;
    GivenGroups groups;
    if (given) {
      groups.scale = given->scales.data() + row * l.groups;
      groups.zero = given->zeros.empty() ? nullptr : given->zeros.data() + row * l.groups;
      groups.stride = l.groups;
    }
    EncodeStatus status =
        together ? EncodeStatus::Ok
        : feedback ? encodeTileWithFeedback(layout->encoding, l, index, w, l.columns, count, *feedback, tile)
                 : encodeTile(layout->encoding, l, index, w, l.columns, count, tile, given ? &groups : nullptr);
    if (status != EncodeStatus::Ok)
      return describe(status);
    if (layout->encoding.kind == EncodingKind::F32)
      continue; // exact
    decodeTile(layout->encoding, l, index, tile, decoded.data());
    for (int64_t i = 0; i < count * l.columns; ++i) {
      double value = w[i], difference = value - decoded[size_t(i)];
      error.weight += value * value;
      error.difference += difference * difference;
    }
  }
  return nullptr;
}

void TileEncoder::keep(const float *weights, int64_t rows, std::byte *out) const {
  const WeightLayout &l = layout->weight;
  auto *at = reinterpret_cast<uint8_t *>(out);
  std::memset(at, 0, size_t((rows + kTileRows - 1) / kTileRows * l.tileBytes));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < l.columns; ++column)
      storeFloat(at + row / kTileRows * l.tileBytes + 4 * (column * kTileRows + row % kTileRows), weights[row * l.columns + column]);
}

void TileEncoder::decode(const std::byte *tiles, int64_t rows, double *out) const {
  const WeightLayout &l = layout->weight;
  std::vector<double> decoded(size_t(kTileRows * l.columns));
  for (int64_t row = 0; row < rows; row += kTileRows) {
    decodeTile(layout->encoding, l, order(), reinterpret_cast<const uint8_t *>(tiles) + row / kTileRows * l.tileBytes, decoded.data());
    std::copy_n(decoded.begin(), std::min(kTileRows, rows - row) * l.columns, out + row * l.columns);
  }
}

const char *toHalf(const float *from, int64_t count, std::byte *to) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half = floatToHalf(from[i]);
    if (!halfIsFinite(half) && std::isfinite(from[i]))
      return describe(EncodeStatus::OutOfRange);
    std::memcpy(to + 2 * i, &half, 2);
  }
  return nullptr;
}

} // namespace otf
