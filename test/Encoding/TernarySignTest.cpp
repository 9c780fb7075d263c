// SPDX-License-Identifier: Apache-2.0
//
// ternary_sign against the recipe, written out from its text, and against the drawing of its bits.
#include "Encoding/Codec.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace otf;

namespace {

std::vector<float> normals(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, .05f);
  std::vector<float> w(static_cast<size_t>(count));
  for (float &v : w)
    v = normal(random);
  return w;
}

struct Coded {
  WeightLayout layout;
  std::vector<uint8_t> tile;
  std::vector<double> decoded;
};

Coded encode(Encoding encoding, int64_t rows, int64_t columns, const std::vector<float> &w) {
  Coded c;
  EXPECT_EQ(makeLayout(encoding, rows, columns, 0, c.layout), EncodeStatus::Ok);
  c.tile.assign(size_t(c.layout.tileBytes), 0xcd);
  EXPECT_EQ(encodeTile(encoding, c.layout, nullptr, w.data(), columns, rows, c.tile.data()),
            EncodeStatus::Ok);
  c.decoded.resize(size_t(8 * columns));
  decodeTile(encoding, c.layout, nullptr, c.tile.data(), c.decoded.data());
  return c;
}

} // namespace

/// s = f16(mean|v|), t = clip(rint(v/s)), e = v − s t, bit = [e ≥ 0], m = f16(mean|e|); a short
/// last group has its own.
TEST(TernarySign, IsTheRecipe) {
  for (int64_t columns : {1, 5, 31, 32, 33, 64, 100, 576})
    for (int64_t group : {32, 64, 128, 0}) {
      int64_t rows = columns % 8 + 1;
      std::vector<float> w = normals(rows * columns, unsigned(columns + group));
      Coded c = encode({EncodingKind::TernarySign, group}, rows, columns, w);
      int64_t wide = group == 0 ? c.layout.chunks * 32 : std::min(group, c.layout.chunks * 32);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t begin = 0; begin < columns; begin += wide) {
          int64_t end = std::min(begin + wide, columns);
          auto v = [&](int64_t k) { return double(w[size_t(row * columns + k)]); };
          double sum = 0, rest = 0;
          for (int64_t k = begin; k < end; ++k)
            sum += std::abs(v(k));
          double s = halfToFloat(doubleToHalf(sum / double(end - begin)));
          auto t = [&](int64_t k) {
            return std::max(-1.0, std::min(1.0, std::nearbyint(v(k) / s)));
          };
          for (int64_t k = begin; k < end; ++k)
            rest += std::abs(v(k) - s * t(k));
          double m = halfToFloat(doubleToHalf(rest / double(end - begin)));
          for (int64_t k = begin; k < end; ++k) {
            double want = s * t(k) + (v(k) - s * t(k) >= 0 ? m : -m);
            ASSERT_EQ(c.decoded[size_t(row * columns + k)], want)
                << columns << " " << group << " " << row << " " << k;
          }
        }
    }
}

/// Every bit of a chunk and of the parameters, from the drawing alone.
TEST(TernarySign, BitsAreThoseOfTheDrawing) {
  constexpr int64_t columns = 64;
  std::vector<float> w = normals(8 * columns, 5);
  Coded c = encode({EncodingKind::TernarySign, 64}, 8, columns, w);
  ASSERT_EQ(c.tile.size(), 2 * 96 + 16 + 16u);
  ASSERT_DOUBLE_EQ(c.layout.bitsPerWeight(), 3.5);
  for (int row = 0; row < 8; ++row) {
    double s = halfToFloat(loadHalf(&c.tile[size_t(192 + 2 * row)])),
           m = halfToFloat(loadHalf(&c.tile[size_t(208 + 2 * row)]));
    for (int column = 0; column < columns; ++column) {
      const uint8_t *chunk = &c.tile[size_t(column / 32 * 96)];
      int i = column % 32;
      int pair = chunk[32 * (i / 16) + 4 * row + i % 4] >> 2 * (i % 16 / 4) & 3;
      int bit = chunk[64 + 4 * row + i % 4] >> i / 4 & 1;
      ASSERT_NE(pair, 3);
      ASSERT_EQ(c.decoded[size_t(row * columns + column)], s * (pair - 1) + (bit ? m : -m))
          << row << " " << column;
    }
  }
}

/// The joint fit is better than the published one in every group of a few dozen weights.
TEST(TernarySign, JointFitIsBetter) {
  for (int64_t columns : {33, 64})
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::vector<float> w = normals(columns, seed);
      auto error = [&](bool joint) {
        Coded c = encode({EncodingKind::TernarySign, 64, kCodebook2Table, joint}, 1, columns, w);
        double sum = 0;
        for (int64_t k = 0; k < columns; ++k)
          sum += (w[size_t(k)] - c.decoded[size_t(k)]) * (w[size_t(k)] - c.decoded[size_t(k)]);
        return sum;
      };
      ASSERT_LT(error(true), .75 * error(false)) << columns << " " << seed;
    }
}

/// A group of ±c, and of zeros, is exact in both fits.
TEST(TernarySign, EqualMagnitudesAreExact) {
  for (bool joint : {false, true})
    for (float magnitude : {0.0f, 0.375f}) {
      std::vector<float> w(64);
      for (size_t i = 0; i < w.size(); ++i)
        w[i] = i % 3 ? magnitude : -magnitude;
      Coded c = encode({EncodingKind::TernarySign, 64, kCodebook2Table, joint}, 1, 64, w);
      for (size_t i = 0; i < w.size(); ++i)
        ASSERT_EQ(c.decoded[i], w[i]) << joint << " " << i;
    }
}

TEST(TernarySign, RefusesWhatF16CannotHold) {
  WeightLayout layout;
  Encoding encoding{EncodingKind::TernarySign, 64};
  ASSERT_EQ(makeLayout(encoding, 1, 2, 0, layout), EncodeStatus::Ok);
  std::vector<uint8_t> tile(size_t(layout.tileBytes));
  float large[] = {2e5f, 0};
  for (bool joint : {false, true}) {
    encoding.jointFit = joint;
    EXPECT_EQ(encodeTile(encoding, layout, nullptr, large, 2, 1, tile.data()),
              EncodeStatus::OutOfRange);
  }
}
