// SPDX-License-Identifier: Apache-2.0
//
// A random encoded weight, in memory that ends at its last byte, with its decoded values.
#ifndef OTF_TEST_CODEGEN_CPU_BLOB_H
#define OTF_TEST_CODEGEN_CPU_BLOB_H

#include "Encoding/Codec.h"
#include "KernelLibrary.h"

#include <cstring>
#include <memory>

namespace otf::test {

struct Blob {
  Encoding encoding;
  WeightLayout layout;
  std::vector<uint32_t> index;
  std::unique_ptr<GuardedBytes> bytes;
  std::vector<double> decoded; ///< 8·tiles × columns

  const uint8_t *data() const { return bytes->data(); }
  const uint8_t *tile(int64_t t) const { return data() + layout.tileOffset(t); }
  const uint32_t *indexData() const { return index.empty() ? nullptr : index.data(); }
  double weight(int64_t row, int64_t column) const {
    return decoded[size_t(row * layout.columns + column)];
  }
};

inline Blob makeBlob(Encoding encoding, int64_t rows, int64_t columns, int64_t outliers,
                     unsigned seed) {
  Blob blob{encoding, {}, {}, {}, {}};
  EXPECT_EQ(makeLayout(encoding, rows, columns, outliers, blob.layout), EncodeStatus::Ok);
  const WeightLayout &l = blob.layout;
  blob.bytes = std::make_unique<GuardedBytes>(size_t(l.blobBytes));
  std::mt19937 random(seed);
  if (outliers) {
    // The outliers are columns 0, 3, 6, … as far as they reach, then the last ones.
    std::vector<uint32_t> background, outlier;
    for (int64_t c = 0; c < columns; ++c)
      (int64_t(outlier.size()) < outliers &&
               (c % 3 == 0 || columns - c == outliers - int64_t(outlier.size()))
           ? outlier
           : background)
          .push_back(uint32_t(c));
    blob.index = background;
    blob.index.insert(blob.index.end(), outlier.begin(), outlier.end());
    std::memcpy(blob.bytes->data(), blob.index.data(), blob.index.size() * 4);
  }
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> weights(size_t(rows * columns));
  for (float &w : weights)
    w = normal(random);
  blob.decoded.resize(size_t(8 * l.tiles * columns));
  for (int64_t t = 0; t < l.tiles; ++t) {
    uint8_t *tile = blob.bytes->data() + l.tileOffset(t);
    EXPECT_EQ(encodeTile(encoding, l, blob.indexData(), weights.data() + t * 8 * columns, columns,
                         std::min<int64_t>(8, rows - 8 * t), tile),
              EncodeStatus::Ok);
    decodeTile(encoding, l, blob.indexData(), tile, blob.decoded.data() + t * 8 * columns);
  }
  return blob;
}

} // namespace otf::test

#endif // OTF_TEST_CODEGEN_CPU_BLOB_H
