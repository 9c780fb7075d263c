// SPDX-License-Identifier: Apache-2.0
//
// linear, prologue, embedding and norm against weights that lib/Encoding wrote and decoded. Rows
// and columns are ragged: 19 outputs are two tiles and three rows, 100 columns three groups and
// four.

#include "lib/Encoding/Codec.h"
#include "test/Codegen/CPUEmit/Harness.h"

#include <algorithm>

namespace otf::test {
namespace {

class Contraction : public LevelTest {};
OTF_LEVELS(Contraction);

constexpr int64_t kRows = 19, kColumns = 100;
const char *const names[] = {"f32",       "f16",       "int8",      "int4",      "codebook2", "grid8",
                             "grid4",     "grid2",     "grid8z",    "grid4z",    "grid2z",    "planes3x1",
                             "planes3x2", "planes3x3", "planes3x4", "planes4x1", "planes4x2", "planes4x3"};

/// A random matrix, its blob and what the blob means.
struct Weight {
  Encoding encoding;
  WeightLayout layout;
  std::vector<uint32_t> index; ///< column index of the blob, outliers last
  std::vector<float> blob;     ///< floats for their alignment only
  std::vector<double> decoded; ///< kRows × kColumns

  Weight(EncodingKind kind, int64_t group, std::vector<uint32_t> outliers,
         const std::vector<float> &values) {
    encoding.kind = kind;
    encoding.group = group;
    EXPECT_EQ(makeLayout(encoding, kRows, kColumns, int64_t(outliers.size()), layout),
              EncodeStatus::Ok);
    for (uint32_t c = 0; c < kColumns; ++c)
      if (!std::count(outliers.begin(), outliers.end(), c))
        index.push_back(c);
    index.insert(index.end(), outliers.begin(), outliers.end());
    blob.resize(size_t(layout.blobBytes + 3) / 4);
    auto *bytes = reinterpret_cast<uint8_t *>(blob.data());
    if (layout.indexBytes)
      std::memcpy(bytes, index.data(), index.size() * 4);
    decoded.resize(kRows * kColumns);
    for (int64_t t = 0; t < layout.tiles; ++t) {
      int64_t rows = std::min<int64_t>(8, kRows - 8 * t);
      uint8_t *tile = bytes + layout.tileOffset(t);
      EXPECT_EQ(encodeTile(encoding, layout, index.data(), values.data() + 8 * t * kColumns,
                           kColumns, rows, tile),
                EncodeStatus::Ok);
      std::vector<double> out(8 * kColumns);
      decodeTile(encoding, layout, index.data(), tile, out.data());
      std::copy_n(out.begin(), rows * kColumns, decoded.begin() + 8 * t * kColumns);
    }
  }
};

std::string matrixType(EncodingKind kind, int64_t group, int64_t outliers) {
  std::string text = "!otf.matrix<19x100, #otf.encoding<" + std::string(names[int(kind)]);
  if (!isPlain(kind))
    text += ", group = " + std::to_string(group);
  text += ">";
  if (outliers)
    text += ", outliers = " + std::to_string(outliers);
  return text + ">";
}

/// linear, embedding and prologue for one matrix type.
std::string matrixKernels(EncodingKind kind, int64_t group, int64_t outliers) {
  std::string w = matrixType(kind, group, outliers);
  int64_t record = recordLayout(kColumns - outliers, outliers).bytes;
  std::string x = isPlain(kind)
                      ? "tensor<?x?x100xf32, #otf.dims<\"d0\", \"d1\">>"
                      : "tensor<?x?x" + std::to_string(record) + "xi8, #otf.dims<\"d0\", \"d1\">>";
  std::string y = "tensor<?x?x19xf32, #otf.dims<\"d0\", \"d1\">>";
  std::string f = "tensor<?x100xf32, #otf.dims<\"d0\">>";
  std::string r = "tensor<?x" + std::to_string(record) + "xi8, #otf.dims<\"d0\">>";
  std::string columns = outliers ? " columns %w" : "";
  std::string types = "(" + f + (outliers ? ", " + w : "") + ") -> " + r;
  std::string text = R"mlir(
plan.kernel @plain(%x: )mlir" +
                     x + ", %w: " + w + ") -> " + y + R"mlir( {
  %y = otf.linear %x, %w : ()mlir" +
                     x + ", " + w + ") -> " + y + R"mlir(
  plan.return %y : )mlir" +
                     y + R"mlir(
}
plan.kernel @fused(%x: )mlir" +
                     x + ", %w: " + w + ", %b: tensor<19xf32>, %residual: " + y +
                     ", %gate: tensor<?xf32, #otf.dims<\"d1\">>) -> " + y + R"mlir( {
  %two = arith.constant 2.0 : f32
  %y = otf.linear %x, %w bias %b : ()mlir" +
                     x + ", " + w + ", tensor<19xf32>) -> " + y + R"mlir( epilogue {
  ^bb0(%v: f32, %i: index, %j: index, %n: index):
    %g = tensor.extract %gate[%j] : tensor<?xf32, #otf.dims<"d1">>
    %r = tensor.extract %residual[%i, %j, %n] : )mlir" +
                     y + R"mlir(
    %t = math.tanh %v : f32
    %p = arith.mulf %t, %g : f32
    %q = arith.mulf %p, %two : f32
    %s = arith.addf %q, %r : f32
    otf.yield %s : f32
  }
  plan.return %y : )mlir" +
                     y + R"mlir(
}
plan.kernel @rows(%ids: tensor<?xi64, #otf.dims<"d0">>, %w: )mlir" +
                     w + ") -> " + f + R"mlir( {
  %y = otf.embedding %ids, %w : (tensor<?xi64, #otf.dims<"d0">>, )mlir" +
                     w + ") -> " + f + R"mlir(
  plan.return %y : )mlir" +
                     f + R"mlir(
}
)mlir";
  if (!isPlain(kind))
    text += "plan.kernel @record(%x: " + f + ", %w: " + w + ") -> " + r +
            " {\n  %r = otf.prologue none %x" + columns + " : " + types +
            "\n  plan.return %r : " + r + "\n}\n";
  return text;
}

struct Case {
  EncodingKind kind;
  int64_t group;
  std::vector<uint32_t> outliers;
};

const Case cases[] = {{EncodingKind::F32, 0, {}},        {EncodingKind::F16, 0, {}},
                      {EncodingKind::Int8, 32, {}},      {EncodingKind::Int8, 0, {2}},
                      {EncodingKind::Int4, 32, {}},      {EncodingKind::Int4, 64, {0, 31, 99}},
                      {EncodingKind::Codebook2, 32, {}}, {EncodingKind::Codebook2, 32, {5, 6, 50}},
                      {EncodingKind::Planes3x1, 0, {}},  {EncodingKind::Planes3x2, 0, {}},
                      {EncodingKind::Planes3x3, 32, {}}, {EncodingKind::Planes3x4, 64, {0, 31, 99}},
                      {EncodingKind::Planes4x1, 0, {}},  {EncodingKind::Planes4x2, 0, {1}},
                      {EncodingKind::Planes4x3, 0, {}}};

std::string describe(const Case &c) {
  return std::string(names[int(c.kind)]) + " group " + std::to_string(c.group) + " outliers " +
         std::to_string(c.outliers.size());
}

/// The activations that a record stands for, in the order of the matrix.
std::vector<double> meaning(const Weight &w, const uint8_t *record) {
  RecordLayout layout = recordLayout(w.layout.background, w.layout.outliers);
  std::vector<double> x(kColumns);
  for (int64_t c = 0; c < kColumns; ++c) {
    float factor;
    if (c < w.layout.background)
      std::memcpy(&factor, record + layout.scaleOffset + c / 32 * 4, 4);
    else
      std::memcpy(&factor, record + layout.outlierOffset + (c - w.layout.background) * 4, 4);
    x[w.index[c]] = c < w.layout.background ? double(factor) * int8_t(record[c]) : factor;
  }
  return x;
}

TEST_P(Contraction, LinearAndItsEpilogue) {
  for (const Case &c : cases) {
    SCOPED_TRACE(describe(c));
    Weight weight(c.kind, c.group, c.outliers, floats(kRows * kColumns));
    std::string text = matrixKernels(c.kind, c.group, int64_t(c.outliers.size()));
    otf_kernel plain = kernel(text, "plain"), fused = kernel(text, "fused");
    if (!plain || !fused)
      continue; // every encoding is compiled, also where it cannot run
    otf_kernel record = isPlain(c.kind) ? nullptr : kernel(text, "record");
    for (auto [batch, length] :
         {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {2, 8}, {2, 9}, {3, 15}, {1, 0}}) {
      int64_t m = batch * length;
      std::vector<float> x = floats(m * kColumns), bias = floats(kRows), gate = floats(length);
      std::vector<float> residual = floats(m * kRows);
      std::vector<double> meant(x.begin(), x.end());
      std::vector<uint8_t> records;
      const void *input = x.data();
      if (record) {
        size_t bytes = size_t(recordLayout(weight.layout.background, weight.layout.outliers).bytes);
        records = run<uint8_t>(record, {x.data(), weight.blob.data()}, {m}, m, m * bytes);
        for (int64_t i = 0; i < m; ++i) {
          std::vector<double> row = meaning(weight, records.data() + i * bytes);
          for (int64_t k = 0; k < kColumns; ++k)
            EXPECT_NEAR(row[k], x[i * kColumns + k], 2.0 / 127 / 2 * 1.001);
          std::copy(row.begin(), row.end(), meant.begin() + i * kColumns);
        }
        input = records.data();
      }
      auto y = run<float>(plain, {input, weight.blob.data()}, {batch, length}, 3, m * kRows);
      auto z =
          run<float>(fused, {input, weight.blob.data(), bias.data(), residual.data(), gate.data()},
                     {batch, length}, 3, m * kRows);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t n = 0; n < kRows; ++n) {
          double sum = 0;
          for (int64_t k = 0; k < kColumns; ++k)
            sum += weight.decoded[n * kColumns + k] * meant[i * kColumns + k];
          int64_t at = i * kRows + n;
          ASSERT_NEAR(y[at], sum, 1e-4);
          ASSERT_NEAR(z[at], 2 * std::tanh(sum + bias[n]) * gate[i % length] + residual[at], 5e-4);
        }
    }
  }
}

TEST_P(Contraction, EmbeddingTakesNegativeIdsAndStaysInside) {
  for (const Case &c : cases) {
    SCOPED_TRACE(describe(c));
    Weight weight(c.kind, c.group, c.outliers, floats(kRows * kColumns));
    OTF_KERNEL(rows, matrixKernels(c.kind, c.group, int64_t(c.outliers.size())), "rows");
    std::vector<int64_t> ids = {0, 18, -1, -19, 7, 19, -20, INT64_MAX, INT64_MIN};
    const int64_t expected[] = {0, 18, 18, 0, 7, 18, 0, 18, 0};
    int64_t n = int64_t(ids.size());
    auto y = run<float>(rows, {ids.data(), weight.blob.data()}, {n}, n, n * kColumns);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < kColumns; ++k)
        ASSERT_NEAR(y[i * kColumns + k], weight.decoded[expected[i] * kColumns + k], 1e-6);
  }
}

const std::string norms = R"mlir(
plan.kernel @rms(%x: tensor<?x100xf32, #otf.dims<"d0">>, %g: tensor<100xf32>) -> tensor<?x100xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<?x100xf32, #otf.dims<"d0">>, tensor<100xf32>) -> tensor<?x100xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x100xf32, #otf.dims<"d0">>
}
plan.kernel @layer(%x: tensor<?x100xf32, #otf.dims<"d0">>, %g: tensor<100xf32>, %b: tensor<100xf32>) -> tensor<?x100xf32, #otf.dims<"d0">> {
  %y = otf.norm layer %x scale %g bias %b {epsilon = 1.0e-5 : f32} : (tensor<?x100xf32, #otf.dims<"d0">>, tensor<100xf32>, tensor<100xf32>) -> tensor<?x100xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x100xf32, #otf.dims<"d0">>
}
plan.kernel @normed_record(%x: tensor<?x100xf32, #otf.dims<"d0">>, %g: tensor<100xf32>) -> tensor<?x192xi8, #otf.dims<"d0">> {
  %y = otf.prologue rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<?x100xf32, #otf.dims<"d0">>, tensor<100xf32>) -> tensor<?x192xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x192xi8, #otf.dims<"d0">>
}
)mlir";

TEST_P(Contraction, Norms) {
  OTF_KERNEL(rms, norms, "rms");
  OTF_KERNEL(layer, norms, "layer");
  OTF_KERNEL(record, norms, "normed_record");
  ASSERT_EQ(recordLayout(kColumns, 0).bytes, 192);
  for (int64_t m : {0, 1, 5, 12}) {
    std::vector<float> x = floats(m * kColumns), g = floats(kColumns), b = floats(kColumns);
    auto y = run<float>(rms, {x.data(), g.data()}, {m}, m, m * kColumns);
    auto z = run<float>(layer, {x.data(), g.data(), b.data()}, {m}, m, m * kColumns);
    auto r = run<uint8_t>(record, {x.data(), g.data()}, {m}, m, m * 192);
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0, squares = 0;
      for (int64_t k = 0; k < kColumns; ++k) {
        sum += x[i * kColumns + k];
        squares += double(x[i * kColumns + k]) * x[i * kColumns + k];
      }
      double mean = sum / kColumns, variance = squares / kColumns - mean * mean;
      for (int64_t k = 0; k < kColumns; ++k) {
        double v = x[i * kColumns + k], normed = v / std::sqrt(squares / kColumns + 1e-5) * g[k];
        ASSERT_NEAR(y[i * kColumns + k], normed, 1e-5);
        ASSERT_NEAR(z[i * kColumns + k], (v - mean) / std::sqrt(variance + 1e-5) * g[k] + b[k],
                    2e-5);
        float scale;
        std::memcpy(&scale, &r[i * 192 + 128 + k / 32 * 4], 4);
        ASSERT_NEAR(scale * int8_t(r[i * 192 + k]), normed, scale * 0.501);
      }
    }
  }
}

} // namespace
} // namespace otf::test
