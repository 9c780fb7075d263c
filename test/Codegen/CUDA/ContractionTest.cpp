// SPDX-License-Identifier: Apache-2.0
//
// Linears and embeddings of every encoding against float64, over ragged shapes.
#include "test/Codegen/CUDA/OnGpu.h"
#include "test/Codegen/Canonical.h"

namespace {

using namespace otf;
using namespace otf::test;

struct WeightCase {
  const char *name; // <encoding>_<N>_<K>_<outliers>, of an entry
  EncodingKind kind;
  int64_t group, rows, columns, outliers;
};
const WeightCase kWeights[] = {
    {"f32_24_40_0", EncodingKind::F32, 0, 24, 40, 0},
    {"f32_13_33_0", EncodingKind::F32, 0, 13, 33, 0},
    {"f32_1_1_0", EncodingKind::F32, 0, 1, 1, 0},
    {"f16_131_200_0", EncodingKind::F16, 0, 131, 200, 0},
    {"int8_64_256_0", EncodingKind::Int8, 32, 64, 256, 0},
    {"int8_9_31_1", EncodingKind::Int8, 32, 9, 31, 1},
    {"int8_200_330_3", EncodingKind::Int8, 64, 200, 330, 3},
    {"int4_576_576_0", EncodingKind::Int4, 32, 576, 576, 0},
    {"int4_129_97_0", EncodingKind::Int4, 64, 129, 97, 0},
    {"int4_40_1056_6", EncodingKind::Int4, 128, 40, 1056, 6},
    {"codebook2_64_128_0", EncodingKind::Codebook2, 32, 64, 128, 0},
    {"codebook2_77_300_11", EncodingKind::Codebook2, 64, 77, 300, 11},
    {"planes3x1_40_100_0", EncodingKind::Planes3x1, 0, 40, 100, 0},
    {"planes3x2_64_576_0", EncodingKind::Planes3x2, 0, 64, 576, 0},
    {"planes3x2_77_300_11", EncodingKind::Planes3x2, 64, 77, 300, 11},
    {"planes3x3_129_330_3", EncodingKind::Planes3x3, 0, 129, 330, 3},
    {"planes3x4_40_1056_6", EncodingKind::Planes3x4, 128, 40, 1056, 6},
    {"planes4x1_9_40_1", EncodingKind::Planes4x1, 0, 9, 40, 1},
    {"planes4x2_131_512_0", EncodingKind::Planes4x2, 256, 131, 512, 0},
    {"planes4x3_20_97_0", EncodingKind::Planes4x3, 64, 20, 97, 0},
    {"ternary_64_128_0", EncodingKind::TernarySign, 64, 64, 128, 0},
    {"ternary_77_300_11", EncodingKind::TernarySign, 32, 77, 300, 11},
    {"ternary_200_576_0", EncodingKind::TernarySign, 64, 200, 576, 0},
};

class Linear : public testing::TestWithParam<WeightCase> {};

TEST_P(Linear, EqualsTheReferenceForAnyNumberOfRows) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  Encoding encoding{c.kind, c.group, kCodebook2Table};
  Encoded w = encode(encoding, c.rows, c.columns, c.outliers);
  Buffer blob(w.blob);
  for (int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 130}) {
    SCOPED_TRACE(rows);
    std::vector<float> x = normals(size_t(rows * c.columns), uint64_t(rows));
    if (c.columns > 8)
      x[8] = 300; // one large value, as down projections see them
    std::vector<double> exact(x.begin(), x.end());
    std::unique_ptr<Buffer> records;
    if (isPlain(c.kind)) {
      records = std::make_unique<Buffer>(x);
    } else {
      Record r = makeRecords(x, rows, c.columns, c.outliers, w.index);
      exact = r.x;
      records = std::make_unique<Buffer>(r.bytes);
    }
    std::vector<double> want(size_t(rows * c.rows)), size(want.size());
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < c.rows; ++n)
        for (int64_t k = 0; k < c.columns; ++k) {
          double term = exact[size_t(m * c.columns + k)] * w.weights[size_t(n * c.columns + k)];
          want[size_t(m * c.rows + n)] += term;
          size[size_t(m * c.rows + n)] += std::fabs(term);
        }
    std::vector<float> first;
    for (unsigned grid : {1u, 3u, 500u}) {
      Buffer y(want.size() * 4);
      launch(cat("linear_", c.name), {blob.pointer, records->pointer, y.pointer}, {rows}, grid);
      std::vector<float> got = y.get<float>();
      // Some dozen float additions and a product with two rounded scales.
      expectNear(got, want, size, 4e-6);
      if (!isPlain(c.kind) && first.empty()) {
        std::vector<uint8_t> bytes = records->get<uint8_t>();
        int64_t record = recordLayout(c.columns - c.outliers, c.outliers).bytes;
        std::vector<float> exactly;
        for (int64_t m = 0; m < rows; ++m)
          for (int64_t n = 0; n < c.rows; ++n)
            exactly.push_back(test::canonical::linear(
                encoding, w.layout, w.blob.data() + w.layout.tileOffset(n / 8), int(n % 8),
                bytes.data() + m * record));
        expectSame(got, exactly);
      }
      if (first.empty())
        first = got;
      EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * 4), 0)
          << "results depend on the grid";
    }
  }
}
TEST_P(Linear, OneRowHasTheSameBits) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  if (isPlain(c.kind))
    GTEST_SKIP() << "has no record";
  Encoded w = encode({c.kind, c.group, kCodebook2Table}, c.rows, c.columns, c.outliers);
  Buffer blob(w.blob);
  std::vector<float> x = normals(size_t(c.columns), 7);
  if (c.columns > 8)
    x[8] = 300;
  Buffer row(x), records(makeRecords(x, 1, c.columns, c.outliers, w.index).bytes), many(size_t(c.rows) * 4);
  launch(cat("linear_", c.name), {blob.pointer, records.pointer, many.pointer}, {1}, 3);
  const std::vector<float> want = many.get<float>();
  for (unsigned grid : {1u, 3u, 500u}) {
    Buffer y(size_t(c.rows) * 4), again(size_t(c.rows) * 4);
    launch(cat("one_", c.name), {blob.pointer, row.pointer, y.pointer}, {1}, grid, 256, 24 << 10);
    expectSame(y.get<float>(), want);
    launch(cat("large_", c.name), {blob.pointer, row.pointer, again.pointer}, {1}, grid, 768, 32 << 10);
    expectSame(again.get<float>(), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Weight, Linear, testing::ValuesIn(kWeights),
                         [](const auto &info) { return std::string(info.param.name); });

class Embedding : public testing::TestWithParam<WeightCase> {};

TEST_P(Embedding, DecodesRows) {
  NEEDS_GPU();
  const WeightCase &c = GetParam();
  Encoded w = encode({c.kind, c.group, kCodebook2Table}, c.rows, c.columns, c.outliers);
  std::vector<int64_t> ids = {0, c.rows - 1, -1, 7, -c.rows, c.rows, -c.rows - 1, 5};
  Buffer blob(w.blob), idBuffer(ids), y(ids.size() * size_t(c.columns) * 4);
  launch(cat("embedding_", c.name), {blob.pointer, idBuffer.pointer, y.pointer},
         {int64_t(ids.size())}, 3);
  std::vector<double> want, size;
  for (int64_t id : ids)
    for (int64_t k = 0; k < c.columns; ++k) {
      int64_t row = id < 0 ? id + c.rows : id;
      bool inside = row >= 0 && row < c.rows;
      want.push_back(inside ? w.weights[size_t(row * c.columns + k)] : 0);
      size.push_back(std::fabs(want.back()) + 0.1);
    }
  expectNear(y.get<float>(), want, size, 2e-7);
}
INSTANTIATE_TEST_SUITE_P(Weight, Embedding,
                         testing::Values(kWeights[1], kWeights[3], kWeights[6], kWeights[8],
                                         kWeights[11], kWeights[12], kWeights[13], kWeights[14],
                                         kWeights[15], kWeights[16], kWeights[17], kWeights[18],
                                         kWeights[19]),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
