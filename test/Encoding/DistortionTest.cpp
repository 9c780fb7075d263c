// SPDX-License-Identifier: Apache-2.0
//
// Relative squared error on unit normals, from encode through the bytes to decode, against the
// figures of the recipes. They hold to 1 %.
#include "Encoding/Codec.h"

#include <gtest/gtest.h>
#include <random>
#include <tuple>
#include <vector>

using namespace otf;

namespace {

double distortion(Encoding encoding) {
  constexpr int64_t rows = 1024, columns = 4096;
  WeightLayout layout;
  EXPECT_EQ(makeLayout(encoding, rows, columns, 0, layout), EncodeStatus::Ok);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> weights(8 * columns);
  std::vector<double> decoded(8 * columns);
  std::vector<uint8_t> tile(size_t(layout.tileBytes));
  double error = 0, power = 0;
  for (int64_t t = 0; t < rows / 8; ++t) {
    for (float &w : weights)
      w = normal(random);
    EXPECT_EQ(encodeTile(encoding, layout, nullptr, weights.data(), columns, 8, tile.data()),
              EncodeStatus::Ok);
    decodeTile(encoding, layout, nullptr, tile.data(), decoded.data());
    for (size_t i = 0; i < weights.size(); ++i) {
      error += (weights[i] - decoded[i]) * (weights[i] - decoded[i]);
      power += double(weights[i]) * weights[i];
    }
  }
  return error / power;
}

} // namespace

TEST(Distortion, Codebook2) {
  EXPECT_NEAR(distortion({EncodingKind::Codebook2}), .1019, .001);
}

TEST(Distortion, Int4) {
  EXPECT_NEAR(distortion({EncodingKind::Int4, 32}), .00941, .0001);
  EXPECT_NEAR(distortion({EncodingKind::Int4, 64}), .01158, .0001);
  EXPECT_NEAR(distortion({EncodingKind::Int4, 128}), .01377, .0001);
}

TEST(Distortion, TernarySign) {
  for (auto [group, published, joint] : {std::tuple(64, .1316, .0553), {128, .1337, .0577}}) {
    EXPECT_NEAR(distortion({EncodingKind::TernarySign, group}), published, .0013) << group;
    EXPECT_NEAR(distortion({EncodingKind::TernarySign, group, kCodebook2Table, true}), joint, .00055) << group;
  }
}

TEST(Distortion, Int8) {
  EXPECT_NEAR(distortion({EncodingKind::Int8, 128}), 4.2e-5, .05e-5);
  EXPECT_NEAR(distortion({EncodingKind::Int8, 0}), 7.5e-5, .1e-5);
}
