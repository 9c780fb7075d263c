// SPDX-License-Identifier: Apache-2.0
//
// planes: bytes against the drawing, the search against its definition, ragged shapes, and distortion at real bits.
#include "Encoding/Codec.h"
#include "Encoding/Rotation.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace otf;

namespace {

constexpr EncodingKind kPlanes[] = {EncodingKind::Planes3x1, EncodingKind::Planes3x2, EncodingKind::Planes3x3,
                                    EncodingKind::Planes3x4, EncodingKind::Planes4x1, EncodingKind::Planes4x2,
                                    EncodingKind::Planes4x3};

std::vector<float> gaussian(int64_t count, unsigned seed, float sigma = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, sigma);
  std::vector<float> w(static_cast<size_t>(count));
  for (float &v : w)
    v = normal(random);
  return w;
}

/// A tile of 8 × columns weights, encoded and decoded.
struct Tile {
  WeightLayout layout;
  std::vector<uint32_t> index;
  std::vector<uint8_t> bytes;
  std::vector<double> decoded;
  EncodeStatus status;

  Tile(EncodingKind kind, int64_t group, int64_t rows, int64_t columns, int64_t outliers, const std::vector<float> &w) {
    Encoding encoding{kind, group};
    EXPECT_EQ(makeLayout(encoding, rows, columns, outliers, layout), EncodeStatus::Ok);
    for (int64_t c = 0; outliers != 0 && c < columns; ++c) // the outliers are the first columns
      index.push_back(uint32_t((c + outliers) % columns));
    bytes.assign(size_t(layout.tileBytes), 0xcd);
    decoded.assign(size_t(8 * columns), NAN);
    const uint32_t *at = index.empty() ? nullptr : index.data();
    status = encodeTile(encoding, layout, at, w.data(), columns, rows, bytes.data());
    if (status == EncodeStatus::Ok)
      decodeTile(encoding, layout, at, bytes.data(), decoded.data());
  }
};

/// Σ weight · error² of blocks whose scale is `scale`.
std::vector<double> costs(EncodingKind kind, const std::vector<float> &targets, float scale, const float *weights,
                          std::vector<uint32_t> &words, TrellisEncoder::Level level = TrellisEncoder::best()) {
  int64_t count = int64_t(targets.size()) / 32;
  std::vector<float> scales(size_t(count), scale), decoded(targets.size());
  words.assign(size_t(count * planesCode(kind).planes), 0);
  TrellisBlocks blocks{.count = count, .targets = targets.data(), .scales = scales.data(), .weights = weights};
  blocks.words = words.data();
  blocks.decoded = decoded.data();
  TrellisEncoder(kind, level).encode(blocks);
  std::vector<double> result;
  for (int64_t b = 0; b < count; ++b) {
    double cost = 0;
    for (int64_t i = 0; i < 32; ++i)
      cost += (weights ? weights[i] : 1) * std::pow(double(targets[size_t(32 * b + i)]) - decoded[size_t(32 * b + i)], 2);
    result.push_back(cost);
  }
  return result;
}

/// The search costs at most `worst` times what the definition finds, and `mean` times on average.
void expectNearBest(EncodingKind kind, const std::vector<float> &targets, const float *weights, double mean, double worst) {
  SCOPED_TRACE(int(kind));
  float scale = float(planesCode(kind).step);
  std::vector<uint32_t> words;
  std::vector<double> found = costs(kind, targets, scale, weights, words);
  double sum = 0;
  for (size_t b = 0; b < found.size(); ++b) {
    uint32_t best[4];
    double least = searchTrellis(kind, targets.data() + 32 * b, scale, weights, best);
    EXPECT_GE(found[b], least * (1 - 1e-5));
    EXPECT_LE(found[b], least * worst + 1e-9) << "block " << b;
    sum += found[b] / least / double(found.size());
  }
  EXPECT_LE(sum, mean);
}

constexpr bool isExact(EncodingKind kind) {
  return kind != EncodingKind::Planes3x3 && kind != EncodingKind::Planes3x4 && kind != EncodingKind::Planes4x3;
}

constexpr int64_t kColumns = 4096;

std::vector<float> gaussianTile(unsigned seed) { return gaussian(8 * kColumns, seed, 0.02f); }

/// Error over energy of 256 rows, which `draw` gives eight at a time.
template <typename Draw> double distortion(EncodingKind kind, double &bits, Draw draw) {
  constexpr int64_t rows = 256, columns = kColumns;
  double error = 0, power = 0;
  for (int64_t t = 0; t < rows / 8; ++t) {
    std::vector<float> w = draw(unsigned(t + 1));
    Tile tile(kind, 0, 8, columns, 0, w);
    EXPECT_EQ(tile.status, EncodeStatus::Ok);
    bits = tile.layout.bitsPerWeight();
    for (size_t i = 0; i < w.size(); ++i) {
      error += (w[i] - tile.decoded[i]) * (w[i] - tile.decoded[i]);
      power += double(w[i]) * w[i];
    }
  }
  return error / power;
}

} // namespace

TEST(Planes, SumsStayBelow128) {
  for (EncodingKind kind : kPlanes) {
    const PlanesCode &code = planesCode(kind);
    int most = 0;
    for (int p = 0; p < code.planes; ++p)
      most += *std::max_element(code.table[p], code.table[p] + (1 << code.window));
    EXPECT_LE(most, 127) << int(kind);
    EXPECT_GT(most - code.offset, 0) << int(kind);
    EXPECT_EQ(chunkBytes(kind), 32 * code.planes);
  }
}

// Bit by bit from the drawing, with nothing of the codec but the tables.
TEST(Planes, BytesAreThoseOfTheDrawing) {
  for (EncodingKind kind : kPlanes)
    for (int64_t columns : {1, 31, 33, 100, 192})
      for (int64_t group : {32, 64, 0}) {
        const PlanesCode &code = planesCode(kind);
        Tile t(kind, group, 5, columns, 0, gaussian(5 * columns, unsigned(columns)));
        ASSERT_EQ(t.status, EncodeStatus::Ok);
        const WeightLayout &l = t.layout;
        for (int row = 0; row < 8; ++row)
          for (int64_t column = 0; column < columns; ++column) {
            int64_t chunk = column / 32, g = column / l.group;
            int64_t end = std::min((g + 1) * l.group / 32, l.chunks);
            const uint8_t *at = t.bytes.data() + chunk * 32 * code.planes + g * 16;
            const uint8_t *scale = t.bytes.data() + end * 32 * code.planes + g * 16 + 2 * row;
            int sum = 0;
            for (int p = 0; p < code.planes; ++p) {
              unsigned window = 0;
              for (int j = 0; j < code.window; ++j) {
                int64_t bit = (column + j) % 32;
                window |= unsigned(at[32 * p + 4 * row + bit / 8] >> bit % 8 & 1) << j;
              }
              sum += code.table[p][window];
            }
            double want = double(halfToFloat(uint16_t(scale[0] | scale[1] << 8))) * (sum - code.offset);
            ASSERT_EQ(t.decoded[size_t(row * columns + column)], want) << int(kind) << " " << row << " " << column;
          }
      }
}

TEST(Planes, TheSearchIsTheBestThereIsWhereStatesAreFew) {
  std::vector<float> weights = gaussian(32, 8);
  for (float &w : weights)
    w = w * w;
  for (EncodingKind kind : kPlanes)
    if (isExact(kind)) {
      expectNearBest(kind, gaussian(32 * 50, 5), nullptr, 1.0001, 1.001);
      expectNearBest(kind, gaussian(32 * 50, 6), weights.data(), 1.001, 1.01);
    }
}

TEST(Planes, TheSearchIsCloseWhereStatesAreMany) {
  expectNearBest(EncodingKind::Planes3x3, gaussian(32 * 40, 5), nullptr, 1.03, 1.2);
  expectNearBest(EncodingKind::Planes3x4, gaussian(32 * 4, 5), nullptr, 1.05, 1.2);
  // Where some columns count a thousand times what others do, costs are beyond 8 bits.
  std::vector<float> weights = gaussian(32, 8);
  for (float &w : weights)
    w = std::exp(3 * w);
  expectNearBest(EncodingKind::Planes3x3, gaussian(32 * 40, 6), weights.data(), 1.15, 3);
}

TEST(Planes, ValuesFarOutSaturateNothing) {
  std::vector<float> targets = gaussian(32 * 20, 9);
  for (size_t i = 0; i < targets.size(); i += 7)
    targets[i] *= i % 2 ? 1000.0f : 20.0f;
  for (EncodingKind kind : {EncodingKind::Planes3x1, EncodingKind::Planes3x2})
    expectNearBest(kind, targets, nullptr, 1.0001, 1.001);
}

TEST(Planes, EveryLevelGivesTheSameWords) {
  if (TrellisEncoder::best() == TrellisEncoder::Level::Baseline)
    GTEST_SKIP() << "this CPU has one level";
  for (EncodingKind kind : kPlanes) {
    std::vector<uint32_t> wide, narrow;
    std::vector<float> targets = gaussian(32 * 40, 3);
    costs(kind, targets, float(planesCode(kind).step), nullptr, wide, TrellisEncoder::Level::Avx2);
    costs(kind, targets, float(planesCode(kind).step), nullptr, narrow, TrellisEncoder::Level::Baseline);
    EXPECT_EQ(wide, narrow) << int(kind);
  }
}

TEST(Planes, ABlockDoesNotDependOnItsNeighbours) {
  for (EncodingKind kind : kPlanes) {
    std::vector<float> targets = gaussian(32 * 19, 4);
    targets[40] = 500; // a lane that is searched again
    std::vector<uint32_t> together, alone;
    costs(kind, targets, float(planesCode(kind).step), nullptr, together);
    for (size_t b = 0; b < 19; ++b) {
      std::vector<float> one(targets.begin() + long(32 * b), targets.begin() + long(32 * b + 32));
      costs(kind, one, float(planesCode(kind).step), nullptr, alone);
      for (size_t p = 0; p < alone.size(); ++p)
        EXPECT_EQ(alone[p], together[b * alone.size() + p]) << int(kind) << " block " << b;
    }
  }
}

TEST(Planes, RaggedShapesStayWithinTheBound) {
  for (EncodingKind kind : kPlanes)
    for (int64_t columns : {1, 5, 31, 32, 33, 100, 129, 576})
      for (int64_t rows : {1, 5, 8})
        for (int64_t group : {32, 256, 0})
          for (int64_t outliers : {int64_t(0), std::min<int64_t>(columns, 3)}) {
            SCOPED_TRACE(testing::Message() << "kind " << int(kind) << " columns " << columns << " group " << group
                                            << " rows " << rows << " outliers " << outliers);
            std::vector<float> w = gaussian(rows * columns, unsigned(columns), 0.05f);
            Tile t(kind, group, rows, columns, outliers, w);
            ASSERT_EQ(t.status, EncodeStatus::Ok);
            const WeightLayout &l = t.layout;
            double error = 0, power = 0;
            for (int64_t row = 0; row < 8; ++row)
              for (int64_t begin = 0; begin < l.background; begin += l.group) {
                int64_t count = std::min(l.group, l.background - begin);
                std::vector<float> group32;
                for (int64_t i = 0; row < rows && i < count; ++i)
                  group32.push_back(w[size_t(row * columns + outliers + begin + i)]);
                double bound = row < rows ? errorBound({kind}, group32.data(), count) : 0;
                for (int64_t i = 0; i < count; ++i) {
                  double want = row < rows ? group32[size_t(i)] : 0;
                  double off = want - t.decoded[size_t(row * columns + outliers + begin + i)];
                  ASSERT_LE(std::abs(off), bound) << "row " << row << " column " << begin + i;
                  error += off * off;
                  power += want * want;
                }
              }
            // A scale for few weights fits them better than for many.
            if (l.background > 0)
              EXPECT_LE(error, 1.4 * planesCode(kind).error * power);
            for (int64_t i = 0; i < outliers; ++i)
              EXPECT_EQ(t.decoded[size_t(i)], double(halfToFloat(floatToHalf(w[size_t(i)]))));
          }
}

TEST(Planes, DegenerateRows) {
  for (EncodingKind kind : kPlanes) {
    std::vector<float> w(8 * 100, 0.0f);
    for (double v : Tile(kind, 0, 8, 100, 0, w).decoded)
      EXPECT_EQ(v, 0);
    w.assign(8 * 100, 1e-12f); // below any f16 scale
    for (double v : Tile(kind, 0, 8, 100, 0, w).decoded)
      EXPECT_EQ(v, 0);
    w.assign(8 * 100, -0.375f);
    Tile flat(kind, 0, 8, 100, 0, w);
    for (double v : flat.decoded)
      EXPECT_NEAR(v, -0.375, 0.375 * 0.75);
    w[333] = 3e4f;
    EXPECT_EQ(Tile(kind, 32, 8, 100, 0, w).status, EncodeStatus::Ok);
  }
}

TEST(Planes, Refusals) {
  for (EncodingKind kind : kPlanes) {
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> w = gaussian(8 * 40, 1);
      w[7 * 40 + 39] = bad;
      EXPECT_EQ(Tile(kind, 0, 8, 40, 0, w).status, EncodeStatus::NotFinite);
      w = gaussian(8 * 40, 1);
      w[0] = bad;
      EXPECT_EQ(Tile(kind, 0, 8, 40, 1, w).status, EncodeStatus::NotFinite);
    }
    EXPECT_EQ(Tile(kind, 0, 8, 40, 0, std::vector<float>(320, 1e30f)).status, EncodeStatus::OutOfRange);
    float scale = 1;
    GivenGroups given{&scale, nullptr, 0};
    std::vector<float> w = gaussian(32, 1);
    std::vector<uint8_t> tile(4096);
    WeightLayout layout;
    ASSERT_EQ(makeLayout({kind, 0}, 1, 32, 0, layout), EncodeStatus::Ok);
    EXPECT_EQ(encodeTile({kind, 0}, layout, nullptr, w.data(), 32, 1, tile.data(), &given), EncodeStatus::NoGivenGrid);
  }
}

// What the encoding promises: of i.i.d. Gaussian weights, decoded from the tiles, scales counted in the bits.
TEST(Planes, DistortionAtRealBits) {
  const struct {
    EncodingKind kind;
    double bits, most;
  } promised[] = {{EncodingKind::Planes3x1, 1.02, .315}, {EncodingKind::Planes3x2, 2.02, .086},
                  {EncodingKind::Planes3x3, 3.02, .0222}, {EncodingKind::Planes3x4, 4.02, .0057}};
  for (auto [kind, most, error] : promised) {
    double bits = 0, found = distortion(kind, bits, gaussianTile);
    EXPECT_LE(found, error) << int(kind);
    EXPECT_LE(bits, most) << int(kind);
    std::printf("  planes%dx%d: %.4f bits, distortion %.5f\n", planesCode(kind).window, planesCode(kind).planes, bits, found);
  }
}

// Rows of heavy tails lose little more than Gaussian ones once they are rotated as recipes do it. As they are, they lose far more: the rotation is what this is about.
TEST(Planes, HeavyTailsAfterARotation) {
  const Rotation rotation{1024, 1, 1};
  std::vector<double> factor = rotationFactor(rotation);
  for (bool student : {true, false}) {
    auto draw = [&](unsigned seed, bool rotated) {
      std::mt19937 random(seed);
      std::normal_distribution<double> normal;
      std::exponential_distribution<double> exponential;
      std::vector<double> w(size_t(8 * kColumns));
      for (double &value : w) {
        double a = normal(random), b = normal(random), c = normal(random), numerator = normal(random);
        value = student ? numerator / std::sqrt((a * a + b * b + c * c) / 3) : std::copysign(exponential(random), numerator);
      }
      for (int64_t row = 0; row < 8 && rotated; ++row)
        rotateExact(rotation, factor.data(), kColumns, w.data() + row * kColumns);
      return std::vector<float>(w.begin(), w.end());
    };
    double bits = 0, found = distortion(EncodingKind::Planes3x2, bits, [&](unsigned seed) { return draw(seed, true); });
    EXPECT_LE(found, .092) << student;
    EXPECT_LE(bits, 2.02);
    double plain = distortion(EncodingKind::Planes3x2, bits, [&](unsigned seed) { return draw(seed, false); });
    EXPECT_GT(plain, .11) << student;
    std::printf("  %s: %.5f, and %.5f without a rotation\n", student ? "Student's t of 3 degrees" : "Laplace", found, plain);
  }
}
