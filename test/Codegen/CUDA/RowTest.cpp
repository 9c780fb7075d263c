// SPDX-License-Identifier: Apache-2.0
//
// Norms, records and rotations of rows, and functions of numbers: float64 references and the bits of the canonical definition.
#include "test/Codegen/CUDA/OnGpu.h"
#include "test/Codegen/Canonical.h"

#include <numeric>

namespace {

using namespace otf;
using namespace otf::test;

std::vector<double> normalised(const std::vector<float> &x, int64_t rows, int64_t k, bool layer,
                               const std::vector<float> &gamma, const std::vector<float> &beta) {
  std::vector<double> y(x.size());
  for (int64_t m = 0; m < rows; ++m) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < k && layer; ++i)
      mean += x[size_t(m * k + i)] / double(k);
    for (int64_t i = 0; i < k; ++i)
      squares += std::pow(x[size_t(m * k + i)] - mean, 2) / double(k);
    for (int64_t i = 0; i < k; ++i)
      y[size_t(m * k + i)] = (x[size_t(m * k + i)] - mean) / std::sqrt(squares + 1e-5) *
                                 (gamma.empty() ? 1 : gamma[size_t(i)]) +
                             (beta.empty() ? 0 : beta[size_t(i)]);
  }
  return y;
}

void testNorm(const std::string &name, int64_t k, bool layer) {
  for (bool affine : {false, true}) {
    const int64_t rows = 5;
    std::vector<float> x = normals(size_t(rows * k), 3, 2);
    for (int64_t i = 0; i < k; ++i) {
      x[size_t(k + i)] = 0;         // an all-zero row
      x[size_t(2 * k + i)] += 1000; // a large mean
    }
    std::vector<float> gamma = normals(affine ? size_t(k) : 0, 4), beta = normals(gamma.size(), 5);
    Buffer xb(x), g(gamma), b(beta), y(x.size() * 4);
    launch(name, {xb.pointer, affine ? g.pointer : 0, affine ? b.pointer : 0, y.pointer}, {rows},
           2);
    std::vector<double> want = normalised(x, rows, k, layer, gamma, beta);
    std::vector<double> size(want.size(), 3);
    for (int64_t i = 0; i < k; ++i) // x - mean loses what 1000 costs: 2^-14
      size[size_t(2 * k + i)] = layer ? 300 : 3;
    expectNear(y.get<float>(), want, size, 2e-6);
    std::vector<float> exactly;
    for (int64_t m = 0; m < rows; ++m)
      for (float value : test::canonical::norm(x.data() + m * k, k, layer, 1e-5f,
                                               affine ? gamma.data() : nullptr,
                                               affine ? beta.data() : nullptr))
        exactly.push_back(value);
    expectSame(y.get<float>(), exactly);
  }
}
TEST(Norm, Rms) {
  NEEDS_GPU();
  testNorm("norm_rms_576", 576, false);
}
TEST(Norm, LayerWithALargeMean) {
  NEEDS_GPU();
  testNorm("norm_layer_33", 33, true);
}

struct RecordCase {
  int64_t columns, outliers;
};
class Records : public testing::TestWithParam<RecordCase> {};

TEST_P(Records, AreTheBytesOfTheReference) {
  NEEDS_GPU();
  auto [k, outliers] = GetParam();
  const int64_t rows = 6;
  std::vector<float> x = normals(size_t(rows * k), 9);
  for (int64_t i = 0; i < k; ++i) {
    x[size_t(k + i)] = 0;           // nothing
    x[size_t(2 * k + i)] = 0.25f;   // all equal
    x[size_t(3 * k + i)] *= 1e-42f; // scales that are subnormal
    x[size_t(4 * k + i)] *= 1e30f;
  }
  x[size_t(5 * k + k / 2)] = 1e6f; // one huge outlier
  std::vector<uint32_t> index = encode({EncodingKind::Int8, 32, 0}, 1, k, outliers).index;
  Record want = makeRecords(x, rows, k, outliers, index);
  Buffer xb(x), indexBuffer(index), records(want.bytes.size());
  launch(cat("record_none_", k, "_", outliers),
         {xb.pointer, 0, 0, indexBuffer.pointer, records.pointer}, {rows}, 4);
  std::vector<uint8_t> got = records.get<uint8_t>();
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], want.bytes[i])
        << "row " << i / size_t(want.layout.bytes) << ", byte " << i % size_t(want.layout.bytes);
}
INSTANTIATE_TEST_SUITE_P(Row, Records,
                         testing::Values(RecordCase{256, 0}, RecordCase{31, 1}, RecordCase{330, 3},
                                         RecordCase{576, 0}, RecordCase{97, 0}, RecordCase{1056, 6},
                                         RecordCase{128, 0}, RecordCase{300, 11}));

enum class Normal { none, rms, layer };
struct RotatedCase {
  const char *name;
  Rotation rotation;
  int64_t columns;
  Normal kind;
};
class Rotated : public testing::TestWithParam<RotatedCase> {};

/// To the bit: rows of the definition, and the bytes of records of canonical norms that are rotated.
TEST_P(Rotated, HasTheBitsOfTheDefinition) {
  NEEDS_GPU();
  const RotatedCase &c = GetParam();
  const int64_t rows = 5, k = c.columns;
  std::vector<float> x = normals(size_t(rows * k), 31), gamma = normals(size_t(k), 32), factor = rotationFactor32(c.rotation);
  x[size_t(k + k / 2)] = 1e5f; // one huge outlier
  std::vector<float> plain = x, normed;
  std::vector<uint32_t> index;
  for (int64_t i = 0; i < k; ++i)
    index.push_back(uint32_t(i));
  for (int64_t m = 0; m < rows; ++m) {
    rotateCanonical(c.rotation, factor.data(), k, plain.data() + m * k);
    std::vector<float> row(x.begin() + m * k, x.begin() + (m + 1) * k);
    if (c.kind != Normal::none)
      row = test::canonical::norm(row.data(), k, c.kind == Normal::layer, 1e-5f, gamma.data(), nullptr);
    rotateCanonical(c.rotation, factor.data(), k, row.data());
    normed.insert(normed.end(), row.begin(), row.end());
  }
  Record want = makeRecords(normed, rows, k, 0, index);
  Buffer xb(x), g(gamma), f(factor), y(x.size() * 4), records(want.bytes.size());
  for (unsigned grid : {1u, 7u}) {
    launch(cat("rotate_rotated_", c.name), {xb.pointer, 0, 0, f.pointer, y.pointer}, {rows}, grid);
    expectSame(y.get<float>(), plain);
    auto gain = c.kind == Normal::none ? decltype(g.pointer)() : g.pointer; // what is no norm has none
    launch(cat("record_rotated_", c.name), {xb.pointer, gain, 0, f.pointer, records.pointer}, {rows}, grid);
    std::vector<uint8_t> got = records.get<uint8_t>();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], want.bytes[i]) << "row " << i / size_t(want.layout.bytes) << ", byte " << i % size_t(want.layout.bytes);
  }
}
/// Of the first row, as each block of a linear makes it. A whole row of 34,560 is more than shared memory holds beside its record.
TEST_P(Rotated, OneRowHasTheSameBits) {
  NEEDS_GPU();
  const RotatedCase &c = GetParam();
  const int64_t k = c.columns;
  if (k > 30000)
    GTEST_SKIP() << "its record and a window do not fit in shared memory";
  std::vector<float> x = normals(size_t(k), 31), gamma = normals(size_t(k), 32), factor = rotationFactor32(c.rotation);
  x[size_t(k / 2)] = 1e5f;
  Buffer xb(x), g(gamma), f(factor);
  auto gain = c.kind == Normal::none ? decltype(g.pointer)() : g.pointer;
  const RecordLayout layout = recordLayout(k, 0);
  Buffer want(size_t(layout.bytes)), one(size_t(layout.bytes)), wide(size_t(layout.bytes));
  launch(cat("record_rotated_", c.name), {xb.pointer, gain, 0, f.pointer, want.pointer}, {1}, 1);
  const unsigned shared = unsigned(layout.bytes + 4 * (8 + (k + 31) / 32 * 32));
  launch(cat("row_rotated_", c.name), {xb.pointer, gain, 0, f.pointer, one.pointer}, {1}, 3, 256, shared);
  launch(cat("wide_row_rotated_", c.name), {xb.pointer, gain, 0, f.pointer, wide.pointer}, {1}, 3, 768, shared);
  const std::vector<uint8_t> bytes = want.get<uint8_t>();
  const size_t used = size_t((k + 31) / 32 * 40); // codes, scales and sums
  for (Buffer *got : {&one, &wide})
    for (size_t i = 0; i < used; ++i)
      ASSERT_EQ(got->get<uint8_t>()[i], bytes[i]) << "byte " << i;
}
INSTANTIATE_TEST_SUITE_P(Row, Rotated,
                         testing::Values(RotatedCase{"none_36", {4, 3, 0}, 36, Normal::none},
                                         RotatedCase{"none_576", {64, 9, 0}, 576, Normal::none},
                                         RotatedCase{"rms_576", {64, 1, 3}, 576, Normal::rms},
                                         RotatedCase{"rms_1536", {512, 3, 7}, 1536, Normal::rms},
                                         RotatedCase{"layer_2048", {1024, 1, 0}, 2048, Normal::layer},
                                         RotatedCase{"rms_96", {32, 1, 5}, 96, Normal::rms},
                                         RotatedCase{"none_48", {16, 1, 6}, 48, Normal::none},
                                         RotatedCase{"none_11008", {256, 43, 2}, 11008, Normal::none},
                                         RotatedCase{"none_34560", {64, 9, 4}, 34560, Normal::none}),
                         [](const auto &info) { return std::string(info.param.name); });

/// Parts of a record by blocks of their own: the bytes of the definition.
TEST(RecordParts, HaveTheBitsOfTheDefinition) {
  NEEDS_GPU();
  struct Case {
    const char *name;
    Rotation rotation;
    int64_t columns;
  };
  for (const Case &c : {Case{"part_11008", {256, 43, 2}, 11008}, Case{"part_4608", {512, 3, 0}, 4608}, Case{"part_576", {64, 1, 3}, 576}})
    for (unsigned grid : {1u, 5u, 100u}) {
      std::vector<float> x = normals(size_t(c.columns), 41), factor = rotationFactor32(c.rotation);
      Buffer xb(x), f(factor);
      std::vector<uint32_t> index(static_cast<size_t>(c.columns));
      std::iota(index.begin(), index.end(), 0u);
      rotateCanonical(c.rotation, factor.data(), c.columns, x.data());
      Record want = makeRecords(x, 1, c.columns, 0, index);
      Buffer record(want.bytes.size());
      launch(c.name, {xb.pointer, f.pointer, record.pointer}, {1}, grid, c.columns > 4096 ? 768 : 256);
      std::vector<uint8_t> got = record.get<uint8_t>();
      for (size_t i = 0; i < size_t(c.columns / 32 * 40); ++i)
        ASSERT_EQ(got[i], want.bytes[i]) << c.name << ", byte " << i;
    }
}

void testNormalisedRecord(const std::string &name, int64_t k, int64_t outliers, bool layer) {
  const int64_t rows = 3;
  std::vector<float> x = normals(size_t(rows * k), 21), gamma = normals(size_t(k), 22);
  std::vector<float> beta = normals(size_t(k), 23);
  std::vector<uint32_t> index = encode({EncodingKind::Int8, 32, 0}, 1, k, outliers).index;
  RecordLayout layout = recordLayout(k - outliers, outliers);
  Buffer xb(x), g(gamma), b(beta), indexBuffer(index), records(size_t(rows * layout.bytes));
  launch(name, {xb.pointer, g.pointer, b.pointer, indexBuffer.pointer, records.pointer}, {rows}, 7);
  std::vector<uint8_t> got = records.get<uint8_t>();
  std::vector<double> want = normalised(x, rows, k, layer, gamma, beta);
  for (int64_t m = 0; m < rows; ++m) {
    const uint8_t *r = got.data() + m * layout.bytes;
    for (int64_t i = 0; i < k - outliers; ++i) {
      float scale;
      std::memcpy(&scale, r + layout.scaleOffset + i / 32 * 4, 4);
      double value = double(scale) * int8_t(r[i]);
      ASSERT_NEAR(value, want[size_t(m * k + index[size_t(i)])], 0.501 * double(scale) + 1e-5);
    }
    for (int64_t j = 0; j < outliers; ++j) {
      float value;
      std::memcpy(&value, r + layout.outlierOffset + 4 * j, 4);
      ASSERT_NEAR(value, want[size_t(m * k + index[size_t(k - outliers + j)])], 1e-5);
    }
  }
}
TEST(Records, OfRmsRows) {
  NEEDS_GPU();
  testNormalisedRecord("record_rms_576_0", 576, 0, false);
}
TEST(Records, OfLayerNormalisedRowsWithOutliers) {
  NEEDS_GPU();
  testNormalisedRecord("record_layer_300_11", 300, 11, true);
}

TEST(Functions, AreCanonical) {
  NEEDS_GPU();
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 10007) {
    uint32_t word = uint32_t(bits);
    float value;
    std::memcpy(&value, &word, 4);
    if (std::fabs(value) <= otf::cpu::kTurnsLimit)
      x.push_back(value);
  }
  Buffer xb(x), y(x.size() * 4 * 6);
  launch("map_functions", {xb.pointer, y.pointer}, {int64_t(x.size())}, 100);
  std::vector<float> want;
  for (auto f : {+[](float v) { return otf::cpu::exp(v); }, +[](float v) { return otf::cpu::log(v); },
                 +[](float v) { return otf::cpu::tanh(v); }, +[](float v) { return otf::cpu::erf(v); },
                 +[](float v) { return otf::cpu::sinTurned(v, 0); },
                 +[](float v) { return otf::cpu::sinTurned(v, 1); }})
    for (float v : x)
      want.push_back(f(v));
  expectSame(y.get<float>(), want);
}

} // namespace
