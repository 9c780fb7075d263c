// SPDX-License-Identifier: Apache-2.0
//
// A linear that reads windows in place has the bits of one that reads them written down, whatever lies outside, for f32 rows and
// for records of positions.

#include "lib/Encoding/Codec.h"
#include "test/Codegen/CPUEmit/Harness.h"

#include <algorithm>
#include <array>

namespace otf::test {
namespace {

class Windows : public LevelTest {};
OTF_LEVELS(Windows);

constexpr int64_t kRows = 19, kChannels = 32, kTaps = 6, kColumns = kTaps * kChannels;
constexpr int64_t kKernel[] = {3, 2}, kStride[] = {2, 1}, kDilation[] = {1, 2}, kBefore[] = {1, 1};

std::string text(EncodingKind kind) {
  bool plain = isPlain(kind);
  auto rows = [&](int64_t columns, const std::string &dims) {
    std::string element = plain ? std::to_string(columns) + "xf32"
                                : std::to_string(recordLayout(columns, 0).bytes) + "xi8";
    return "tensor<?x?x?x" + element + ", #otf.dims<" + dims + ">>";
  };
  auto floats = [&](int64_t columns) {
    return "tensor<?x" + std::to_string(columns) + "xf32, #otf.dims<\"d0\">>";
  };
  auto records = [&](int64_t columns) {
    return "tensor<?x" + std::to_string(recordLayout(columns, 0).bytes) + "xi8, #otf.dims<\"d0\">>";
  };
  std::string w = "!otf.matrix<19x192, #otf.encoding<" + std::string(plain ? "f32" : "int8, group = 32") + ">>";
  std::string in = R"("d0", "d1", "d2")", out = R"("d0", "d3", "d4")";
  std::string pixels = rows(kChannels, in), windows = rows(kColumns, in);
  std::string y = "tensor<?x?x?x19xf32, #otf.dims<" + out + ">>", z = "tensor<?x?x?x19xf32, #otf.dims<" + in + ">>";
  std::string all = "plan.kernel @in_place(%x: " + pixels + ", %w: " + w + ") -> " + y + " {\n" +
                    "  %y = otf.linear %x, %w {window = #otf.window<[3, 2] stride [2, 1] dilation [1, 2] before [1, 1]>} : (" +
                    pixels + ", " + w + ") -> " + y + "\n  plan.return %y : " + y + "\n}\n" +
                    "plan.kernel @written(%x: " + windows + ", %w: " + w + ") -> " + z + " {\n" +
                    "  %y = otf.linear %x, %w : (" + windows + ", " + w + ") -> " + z + "\n  plan.return %y : " + z + "\n}\n";
  for (int64_t columns : {kChannels, kColumns})
    all += "plan.kernel @record" + std::to_string(columns) + "(%x: " + floats(columns) + ") -> " + records(columns) +
           " {\n  %r = otf.prologue none %x : (" + floats(columns) + ") -> " + records(columns) +
           "\n  plan.return %r : " + records(columns) + "\n}\n";
  return all;
}

std::vector<float> blobOf(EncodingKind kind, const std::vector<float> &values) {
  Encoding encoding;
  encoding.kind = kind;
  encoding.group = isPlain(kind) ? 0 : 32;
  WeightLayout layout;
  EXPECT_EQ(makeLayout(encoding, kRows, kColumns, 0, layout), EncodeStatus::Ok);
  std::vector<uint32_t> index(kColumns);
  for (uint32_t c = 0; c < kColumns; ++c)
    index[c] = c;
  std::vector<float> blob(size_t(layout.blobBytes + 3) / 4);
  for (int64_t t = 0; t < layout.tiles; ++t)
    EXPECT_EQ(encodeTile(encoding, layout, index.data(), values.data() + 8 * t * kColumns, kColumns,
                         std::min<int64_t>(8, kRows - 8 * t),
                         reinterpret_cast<uint8_t *>(blob.data()) + layout.tileOffset(t)),
              EncodeStatus::Ok);
  return blob;
}

TEST_P(Windows, InPlaceAreAsWritten) {
  for (EncodingKind kind : {EncodingKind::F32, EncodingKind::Int8}) {
    SCOPED_TRACE(isPlain(kind) ? "f32" : "int8");
    OTF_KERNEL(inPlace, text(kind), "in_place");
    OTF_KERNEL(written, text(kind), "written");
    OTF_KERNEL(recordPixel, text(kind), "record32");
    OTF_KERNEL(recordWindow, text(kind), "record192");
    std::vector<float> blob = blobOf(kind, floats(kRows * kColumns));
    for (auto [n, h, w] : {std::array<int64_t, 3>{1, 7, 9}, {2, 5, 3}, {1, 1, 2}, {3, 16, 11}}) {
      int64_t oh = (h + 2 - 3) / 2 + 1, ow = w + 2 - 3 + 1, rows = n * oh * ow;
      std::vector<float> x = floats(n * h * w * kChannels), copied(size_t(rows * kColumns), 0);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          int64_t i = r / ow % oh * kStride[0] + tap / 2 * kDilation[0] - kBefore[0];
          int64_t j = r % ow * kStride[1] + tap % 2 * kDilation[1] - kBefore[1];
          if (i >= 0 && i < h && j >= 0 && j < w)
            std::copy_n(&x[size_t(((r / (oh * ow) * h + i) * w + j) * kChannels)], kChannels,
                        &copied[size_t(r * kColumns + tap * kChannels)]);
        }
      const void *pixels = x.data(), *windows = copied.data();
      std::vector<uint8_t> a, b;
      if (!isPlain(kind)) {
        a = run<uint8_t>(recordPixel, {x.data()}, {n * h * w}, n * h * w,
                         size_t(n * h * w * recordLayout(kChannels, 0).bytes));
        b = run<uint8_t>(recordWindow, {copied.data()}, {rows}, rows, size_t(rows * recordLayout(kColumns, 0).bytes));
        pixels = a.data();
        windows = b.data();
      }
      std::vector<float> y = run<float>(inPlace, {pixels, blob.data()}, {n, h, w, oh, ow}, rows, size_t(rows * kRows));
      std::vector<float> z = run<float>(written, {windows, blob.data()}, {n, oh, ow}, rows, size_t(rows * kRows));
      ASSERT_EQ(y, z) << n << " x " << h << " x " << w;
    }
  }
}

} // namespace
} // namespace otf::test
