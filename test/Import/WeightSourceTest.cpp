// SPDX-License-Identifier: Apache-2.0
//
// Rows of floats from every storage type, and the bounds of blobs.

#include "lib/Import/WeightSource.h"

#include "TestModel.h"
#include "dialects/ONNX/ElementType.h"
#include "lib/Import/FileSet.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace otf;
using namespace otf::test;
namespace ElementType = otf::onnx::ElementType;

namespace {

struct WeightSourceTest : testing::Test {
  TemporaryFolder folder;
  FileSet files = llvm::cantFail(FileSet::in(folder.path.string()));
  WeightSource source{files};

  /// The values behind one byte, so that nothing is aligned.
  template <typename T> Blob blob(const std::vector<T> &values, int64_t type, std::vector<int64_t> dims) {
    std::vector<std::byte> bytes(1 + values.size() * sizeof(T));
    std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
    int64_t length = bytes.size() - 1;
    unsigned file = files.addPacked("t", std::move(bytes));
    return {file, 1, length, type, {dims.begin(), dims.end()}};
  }
  template <typename T> std::vector<float> all(const std::vector<T> &values, int64_t type) {
    std::vector<float> out(values.size());
    Blob b = blob(values, type, {int64_t(values.size()), 1});
    llvm::cantFail(source.readRows(b, 0, values.size(), false, out.data()));
    return out;
  }
};

TEST_F(WeightSourceTest, RowsOfAPlainMatrix) {
  Blob b = blob<float>({1, 2, 3, 4, 5, 6}, ElementType::Float, {3, 2});
  float out[4];
  llvm::cantFail(source.readRows(b, 1, 2, false, out));
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{3, 4, 5, 6}));
}

TEST_F(WeightSourceTest, SyntheticRowsAreGaussianAndTheSameInAnyBlocks) {
  constexpr int64_t kN = 400, kK = 256;
  files.synthesize(7);
  Blob b{int64_t(files.addSynthetic("w")), 0, kN * kK * 4, ElementType::Float, {kN, kK}}, turned = b;
  turned.dims = {kK, kN};
  std::vector<float> all(kN * kK), part(10 * kK), other(kN * kK);
  llvm::cantFail(source.readRows(b, 0, kN, false, all.data()));
  llvm::cantFail(source.readRows(b, 390, 10, false, part.data()));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - 10 * kK));
  llvm::cantFail(source.readRows(turned, 0, kN, true, other.data()));
  EXPECT_EQ(other[3 * kK + 5], all[5 * kN + 3]); // element (5, 3) of the file
  double sum = 0, squares = 0, fourth = 0;
  for (float value : all) {
    double unit = value * 16.0; // 1 / sqrt(256)
    sum += unit, squares += unit * unit, fourth += unit * unit * unit * unit;
  }
  EXPECT_NEAR(sum / double(all.size()), 0, 0.02);
  EXPECT_NEAR(squares / double(all.size()), 1, 0.02);
  EXPECT_NEAR(fourth / double(all.size()), 3, 0.15);
  Blob gain{b.file, 0, kK * 4, ElementType::Float, {1, kK}};
  llvm::cantFail(source.readRows(gain, 0, 1, false, part.data()));
  EXPECT_NEAR(part[0], 1, 0.6);
  EXPECT_NE(part[0], part[1]);
  llvm::Expected<const std::byte *> bytes = source.data(b);
  EXPECT_NE(llvm::toString(bytes.takeError()).find("synthetic 7:w"), std::string::npos);
}

TEST_F(WeightSourceTest, TransposedRowsAreColumns) {
  constexpr int64_t kK = 5, kN = 700; // more than one run of columns
  std::vector<float> values(kK * kN);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i);
  Blob b = blob(values, ElementType::Float, {kK, kN});
  std::vector<float> out((kN - 3) * kK);
  llvm::cantFail(source.readRows(b, 3, kN - 3, true, out.data()));
  for (int64_t row = 3; row < kN; ++row)
    for (int64_t k = 0; k < kK; ++k)
      ASSERT_EQ(out[(row - 3) * kK + k], values[k * kN + row]);
}

TEST_F(WeightSourceTest, EveryHalfIsExact) {
  std::vector<uint16_t> halves(65536);
  for (unsigned i = 0; i < 65536; ++i)
    halves[i] = uint16_t(i);
  std::vector<float> out = all(halves, ElementType::Float16);
  for (unsigned i = 0; i < 65536; ++i) {
    _Float16 half;
    std::memcpy(&half, &halves[i], 2);
    float expected = float(half);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[i]) : std::memcmp(&expected, &out[i], 4) == 0) << i;
  }
}

TEST_F(WeightSourceTest, OtherTypes) {
  EXPECT_EQ(all<uint16_t>({0x3f80, 0xc000}, ElementType::BFloat16), (std::vector<float>{1, -2}));
  EXPECT_EQ(all<double>({0.5, -3}, ElementType::Double), (std::vector<float>{0.5, -3}));
  EXPECT_EQ(all<int8_t>({-128, 127}, ElementType::Int8), (std::vector<float>{-128, 127}));
  EXPECT_EQ(all<uint8_t>({255}, ElementType::UInt8), (std::vector<float>{255}));
}

TEST_F(WeightSourceTest, PackedElementsComeFromTheLowBitsUp) {
  auto unpacked = [&](std::vector<uint8_t> bytes, int64_t type, int64_t count, int64_t first) {
    std::vector<int8_t> out(size_t(count - first));
    EXPECT_EQ(messageOf(source.unpack(blob<uint8_t>(bytes, type, {count}), first, count - first, out.data())), "");
    return out;
  };
  EXPECT_EQ(unpacked({0x8f, 0x07}, ElementType::Int4, 3, 0), (std::vector<int8_t>{-1, -8, 7}));
  EXPECT_EQ(unpacked({0x8f, 0x07}, ElementType::UInt4, 3, 1), (std::vector<int8_t>{8, 7}));
  EXPECT_EQ(unpacked({0x8f}, ElementType::Float4E2M1, 2, 0), (std::vector<int8_t>{15, 8}));
  EXPECT_EQ(unpacked({0xe4, 0x03}, ElementType::Int2, 5, 0), (std::vector<int8_t>{0, 1, -2, -1, -1}));
  EXPECT_EQ(unpacked({0xe4, 0x03}, ElementType::UInt2, 5, 0), (std::vector<int8_t>{0, 1, 2, 3, 3}));
  int8_t out[2];
  EXPECT_NE(messageOf(source.unpack(blob<uint8_t>({1}, ElementType::Int4, {2}), 1, 2, out)), "");
  EXPECT_NE(messageOf(source.unpack(blob<uint8_t>({1}, ElementType::UInt8, {1}), 0, 1, out)), "");
}

TEST_F(WeightSourceTest, BlobOutsideItsFileIsRefused) {
  Blob good = blob<float>({1, 2}, ElementType::Float, {2});
  for (auto change : {+[](Blob &b) { b.offset = 2; }, +[](Blob &b) { b.file = 9; }, +[](Blob &b) { b.offset = -1; },
                      +[](Blob &b) { b.offset = INT64_MAX; }, +[](Blob &b) { b.length = 4; },
                      +[](Blob &b) { b.elementType = 9999; }, +[](Blob &b) { b.dims = {INT64_MAX, INT64_MAX}; }}) {
    Blob bad = good;
    change(bad);
    llvm::Expected<const std::byte *> data = source.data(bad);
    EXPECT_FALSE(bool(data));
    llvm::consumeError(data.takeError());
  }
}

TEST_F(WeightSourceTest, RowsOutsideAreRefused) {
  Blob b = blob<float>({1, 2, 3, 4}, ElementType::Float, {2, 2});
  float out[8];
  EXPECT_NE(messageOf(source.readRows(b, 1, 2, false, out)), "");
  EXPECT_NE(messageOf(source.readRows(b, -1, 1, true, out)), "");
  EXPECT_NE(messageOf(source.readRows(b, INT64_MAX, 1, false, out)), "");
  Blob packed = blob<uint8_t>({1}, ElementType::Int4, {2});
  EXPECT_NE(messageOf(source.readRows(packed, 0, 1, false, out)).find("int4"), std::string::npos);
}

} // namespace
