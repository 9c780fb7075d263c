// SPDX-License-Identifier: Apache-2.0
//
// The weight section: bytes equal to encoding the whole matrix at once, whatever the blocks; folds,
// outliers, sharing, and refusals.

#include "test/EndToEnd/PlannedModule.h"

#include "lib/Compile/StreamEncoder.h"

#include <cmath>
#include <limits>

using namespace otf;

namespace {

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::sin(float(i) * 0.37f) * float(1 + i % 7);
  return values;
}

/// Declares @w and uses it as `content`.
std::string text(const std::string &declarations, const std::string &uses) {
  return "module {\n" + declarations + "\nfunc.func @main() {\n" + uses + "\nreturn\n}\n}";
}

std::string use(const std::string &name, const std::string &content) {
  return "%" + name + " = plan.weight @" + name + " : !plan.buffer<" + content + ">\n";
}

std::vector<std::byte> write(PlannedModule &planned, unsigned threads = 2,
                             StreamEncoder *kept = nullptr) {
  std::vector<std::byte> bytes;
  auto encoder = StreamEncoder::plan(*planned.module);
  if (failed(encoder))
    return bytes;
  auto sink = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return true;
  };
  if (failed(encoder->write(planned.files, /*statistics=*/nullptr, sink, {.threads = threads})))
    bytes.clear();
  else
    EXPECT_EQ(bytes.size(), encoder->sectionBytes());
  if (kept)
    *kept = std::move(*encoder);
  return bytes;
}

std::vector<std::byte> encodeWhole(int kind, const std::vector<float> &weights, int64_t rows,
                                   int64_t columns, std::vector<int64_t> outliers = {}) {
  std::string error;
  auto tiles = TileEncoder::create(kind, kind > 1 ? 32 : 0, rows, columns, outliers, error);
  EXPECT_TRUE(tiles) << error;
  std::vector<std::byte> bytes(tiles->index().begin(), tiles->index().end());
  size_t index = bytes.size();
  bytes.resize(size_t(tiles->blobBytes()));
  CodingError unused;
  EXPECT_EQ(tiles->encode(weights.data(), rows, bytes.data() + index, unused), nullptr);
  return bytes;
}

TEST(WeightSection, BlocksGiveTheBytesOfTheWholeMatrix) {
  // 3001 x 1000 floats are three blocks, the last one ragged.
  PlannedModule planned(
      text("otf.weight @w : tensor<3001x1000xf32> = #otf.blob<file = 0, offset = 0, "
           "length = 12004000, type = f32>",
           use("w", "!otf.matrix<3001x1000, #otf.encoding<int4, group = 32>>")));
  std::vector<float> weights = ramp(3001 * 1000);
  planned.file(weights);
  std::vector<std::byte> bytes = write(planned);
  EXPECT_EQ(bytes, encodeWhole(3, weights, 3001, 1000));
  EXPECT_EQ(bytes, write(planned, 1));
  EXPECT_EQ(bytes, write(planned, 3));
}

/// Forty weights of several shapes and forms.
std::string many() {
  const char *contents[] = {"!otf.matrix<200x96, #otf.encoding<planes3x2, group = 0>>", "!otf.matrix<200x96, #otf.encoding<int4, group = 32>>",
                            "tensor<200x96xf32>", "!otf.matrix<200x96, #otf.encoding<f16>>", "tensor<200x96xf16>"};
  std::string declarations, uses;
  for (int i = 0; i < 40; ++i) {
    std::string name = "w" + std::to_string(i);
    declarations += "otf.weight @" + name + " : tensor<200x96xf32> = #otf.blob<file = 0, offset = " + std::to_string(i / 5 * 16) +
                    ", length = 76800, type = f32" + (i % 3 ? "" : ", transposed") + ">\n";
    uses += use(name, contents[i % 5]);
  }
  return text(declarations, uses);
}

TEST(WeightSection, ThreadsChangeNoByteOfManyWeights) {
  PlannedModule planned(many());
  planned.file(ramp(200 * 96 + 100));
  StreamEncoder one;
  std::vector<std::byte> bytes = write(planned, 1, &one);
  ASSERT_FALSE(bytes.empty());
  for (unsigned threads : {2, 3, 8, 33}) {
    StreamEncoder more;
    EXPECT_EQ(bytes, write(planned, threads, &more));
    for (size_t i = 0; i < one.stored().size(); ++i) // sums have one order too
      EXPECT_EQ(one.stored()[i].error.difference, more.stored()[i].error.difference);
  }
}

TEST(WeightSection, MemoryIsKeptOrSaid) {
  PlannedModule planned(many());
  planned.file(ramp(200 * 96 + 100));
  std::vector<std::byte> expected = write(planned), bytes;
  auto sink = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return true;
  };
  int64_t needed = 0;
  auto refuse = [&](int64_t bytes) { needed = bytes; };
  WriteOptions options;
  options.threads = 3;
  options.memory = 1;
  options.refuse = refuse;
  EXPECT_TRUE(failed(StreamEncoder::plan(*planned.module)->write(planned.files, nullptr, sink, options)));
  EXPECT_GT(needed, 3 << 20);
  EXPECT_TRUE(bytes.empty());
  options.memory = needed;
  EXPECT_TRUE(succeeded(StreamEncoder::plan(*planned.module)->write(planned.files, nullptr, sink, options)));
  EXPECT_EQ(bytes, expected);
}

TEST(WeightSection, WhatIsDoneIsNotWrittenAgain) {
  PlannedModule planned(many());
  planned.file(ramp(200 * 96 + 100));
  std::vector<std::byte> expected = write(planned), bytes;
  auto encoder = StreamEncoder::plan(*planned.module);
  for (size_t i = 0; i < 7; ++i)
    encoder->setDone(i, {}, -1, "");
  auto sink = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return true;
  };
  ASSERT_TRUE(succeeded(encoder->write(planned.files, nullptr, sink)));
  const StoredWeight &last = encoder->stored()[6];
  ASSERT_LT(last.offset + last.size, expected.size());
  EXPECT_EQ(bytes, std::vector<std::byte>(expected.begin() + int64_t(last.offset + last.size), expected.end()));
}

TEST(WeightSection, ATransposedBlobIsTurned) {
  PlannedModule planned(text("otf.weight @w : tensor<70x33xf32> = #otf.blob<file = 0, offset = 0, "
                             "length = 9240, type = f32, transposed>",
                             use("w", "!otf.matrix<70x33, #otf.encoding<f32>>")));
  std::vector<float> weights = ramp(70 * 33), turned(weights.size());
  for (size_t n = 0; n < 70; ++n)
    for (size_t k = 0; k < 33; ++k)
      turned[k * 70 + n] = weights[n * 33 + k];
  planned.file(turned);
  EXPECT_EQ(write(planned), encodeWhole(0, weights, 70, 33));
}

TEST(WeightSection, AScaleMultipliesColumns) {
  PlannedModule planned(text(
      "otf.weight @g : tensor<64xf32> = #otf.blob<file = 1, offset = 0, length = 256, type = f32>\n"
      "otf.weight @w : tensor<16x64xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = "
      "f32> "
      "{scale = @g}",
      use("w", "!otf.matrix<16x64, #otf.encoding<int8, group = 32>>")));
  std::vector<float> weights = ramp(16 * 64), gain = ramp(64), scaled = weights;
  for (size_t i = 0; i < scaled.size(); ++i)
    scaled[i] *= gain[i % 64];
  planned.file(weights);
  planned.file(gain);
  EXPECT_EQ(write(planned), encodeWhole(2, scaled, 16, 64));
}

TEST(WeightSection, OutlierColumnsComeWithTheirIndex) {
  PlannedModule planned(
      text("otf.weight @w : tensor<9x70xf32> = #otf.blob<file = 0, offset = 0, length = 2520, type "
           "= f32> "
           "{encoding = #otf.encoding<codebook2, group = 32>, outliers = #otf.outliers<[3, 69]>}",
           use("w", "!otf.matrix<9x70, #otf.encoding<codebook2, group = 32>, outliers = 2>")));
  std::vector<float> weights = ramp(9 * 70);
  planned.file(weights);
  std::vector<std::byte> bytes = write(planned);
  EXPECT_EQ(bytes, encodeWhole(4, weights, 9, 70, {3, 69}));
  uint32_t index[70];
  ASSERT_GE(bytes.size(), sizeof index);
  std::memcpy(index, bytes.data(), sizeof index);
  EXPECT_EQ(index[2], 2u);
  EXPECT_EQ(index[3], 4u);
  EXPECT_EQ(index[68], 3u);
  EXPECT_EQ(index[69], 69u);
}

TEST(WeightSection, EqualWeightsAreStoredOnce) {
  std::string blob =
      " : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>\n";
  PlannedModule planned(
      text("otf.weight @a" + blob + "otf.weight @b" + blob + "otf.weight @c" + blob,
           use("a", "!otf.matrix<8x32, #otf.encoding<f32>>") +
               use("b", "!otf.matrix<8x32, #otf.encoding<f32>>") +
               use("c", "!otf.matrix<8x32, #otf.encoding<f16>>")));
  planned.file(ramp(256));
  StreamEncoder encoder = std::move(*StreamEncoder::plan(*planned.module));
  ASSERT_EQ(encoder.stored().size(), 2u);
  EXPECT_EQ(encoder.stored()[0].name, "a");
  EXPECT_EQ(encoder.stored()[1].name, "c");
  EXPECT_EQ(encoder.stored()[1].offset, 1024u);
  EXPECT_EQ(encoder.sectionBytes(), 1024u + 512u);
}

TEST(WeightSection, PlainTensorsStayAsTheyAreAndStartAtSixtyFour) {
  std::string blob = "xf32> = #otf.blob<file = 0, offset = 0, length = 12, type = f32>\n";
  PlannedModule planned(
      text("otf.weight @a : tensor<3" + blob + "otf.weight @b : tensor<1x3" + blob,
           use("a", "tensor<3xf32>") + use("b", "tensor<1x3xf32>")));
  std::vector<float> values = {1, std::numeric_limits<float>::infinity(), -3};
  planned.file(values);
  std::vector<std::byte> bytes = write(planned);
  ASSERT_EQ(bytes.size(), 76u);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), 12), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 64, values.data(), 12), 0);
}

TEST(WeightSection, TheErrorIsThatOfTheBytes) {
  PlannedModule planned(text("otf.weight @w : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, "
                             "length = 1024, type = f32>",
                             use("w", "!otf.matrix<8x32, #otf.encoding<int8, group = 32>>")));
  planned.file(ramp(256));
  StreamEncoder encoder;
  write(planned, 2, &encoder);
  // A step of int8 is max/127; its error is at most half of it and about 0.29 of it.
  EXPECT_GT(encoder.stored()[0].error.relative(), 1e-3);
  EXPECT_LT(encoder.stored()[0].error.relative(), 0.5 / 127 * std::sqrt(32.0));
}

void expectRefusal(float bad, const char *mention) {
  PlannedModule planned(text("otf.weight @w : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, "
                             "length = 1024, type = f32>",
                             use("w", "!otf.matrix<8x32, #otf.encoding<f16>>")));
  std::vector<float> weights = ramp(256);
  weights[77] = bad;
  planned.file(weights);
  EXPECT_TRUE(write(planned).empty());
  EXPECT_NE(planned.errors.find(mention), std::string::npos) << planned.errors;
}

TEST(WeightSection, RefusesNaN) { expectRefusal(std::nanf(""), "NaN"); }
TEST(WeightSection, RefusesWhatHalfCannotHold) { expectRefusal(70000, "range of f16"); }

TEST(WeightSection, RefusesABlobOutsideItsFile) {
  PlannedModule planned(text("otf.weight @w : tensor<8x32xf32> = #otf.blob<file = 0, offset = 4, "
                             "length = 1024, type = f32>",
                             use("w", "!otf.matrix<8x32, #otf.encoding<f32>>")));
  planned.file(ramp(256));
  EXPECT_TRUE(write(planned).empty());
  EXPECT_NE(planned.errors.find("leaves the file"), std::string::npos) << planned.errors;
}

} // namespace
