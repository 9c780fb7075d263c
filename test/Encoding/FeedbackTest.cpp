// SPDX-License-Identifier: Apache-2.0
//
// What error feedback must gain: on inputs whose second moments have the spectrum 1/i in a random basis, loss falls from
// tr(H) to tr(D) times the variance of rounding.
#include "Encoding/Codec.h"
#include "Encoding/FeedbackPlanes.h"
#include "Encoding/FeedbackTile.h"

#include <Eigen/QR>

#include <gtest/gtest.h>
#include <random>

using namespace otf;

namespace {

Eigen::MatrixXd normal(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> one;
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return one(random); });
}

/// Second moments with eigenvalues 1/i.
Eigen::MatrixXd decaying(int64_t columns) {
  Eigen::MatrixXd basis = Eigen::HouseholderQR<Eigen::MatrixXd>(normal(columns, columns, 3)).householderQ();
  Eigen::VectorXd spectrum(columns);
  for (int64_t i = 0; i < columns; ++i)
    spectrum[i] = 1.0 / double(i + 1);
  return basis * spectrum.asDiagonal() * basis.transpose();
}

Feedback factored(const Eigen::MatrixXd &hessian, double damping, const uint32_t *order = nullptr) {
  Feedback feedback;
  std::string error;
  EXPECT_TRUE(feedback.factor(
      hessian.rows(), [&](int64_t i, int64_t j) { return hessian(i, j); }, order, damping, error))
      << error;
  return feedback;
}

struct Case {
  WeightLayout layout;
  std::vector<uint32_t> index;
  std::vector<float> weights; // 8 rows

  Case(Encoding encoding, int64_t columns, std::vector<uint32_t> outliers, unsigned seed = 5) : weights(size_t(8 * columns)) {
    EXPECT_EQ(makeLayout(encoding, 8, columns, int64_t(outliers.size()), layout), EncodeStatus::Ok);
    std::mt19937 random(seed);
    std::normal_distribution<float> one;
    for (float &w : weights)
      w = one(random);
    for (uint32_t i = 0; i < columns; ++i)
      if (std::find(outliers.begin(), outliers.end(), i) == outliers.end())
        index.push_back(i);
    index.insert(index.end(), outliers.begin(), outliers.end());
  }

  double loss(const Encoding &encoding, const std::vector<uint8_t> &tile, const Eigen::MatrixXd &hessian) const {
    std::vector<double> decoded(weights.size());
    decodeTile(encoding, layout, layout.outliers ? index.data() : nullptr, tile.data(), decoded.data());
    double total = 0;
    for (int64_t row = 0; row < 8; ++row) {
      Eigen::VectorXd error(layout.columns);
      for (int64_t i = 0; i < layout.columns; ++i)
        error[i] = weights[size_t(row * layout.columns + i)] - decoded[size_t(row * layout.columns + i)];
      total += error.dot(hessian * error);
    }
    return total;
  }
};

} // namespace

TEST(Feedback, FactorsRebuildTheHessian) {
  Eigen::MatrixXd hessian = decaying(75);
  std::vector<uint32_t> order(75);
  for (uint32_t i = 0; i < 75; ++i)
    order[i] = (i * 31 + 4) % 75;
  Feedback feedback = factored(hessian, 0.01, order.data());
  EXPECT_EQ(feedback.damping(), 0.01);
  Eigen::MatrixXd upper = Eigen::MatrixXd::Zero(75, 75), variance = upper;
  for (int64_t i = 0; i < 75; ++i) {
    variance(i, i) = feedback.variance(i);
    for (int64_t j = 0; j < 75; ++j)
      upper(i, j) = feedback.upper(i)[j];
  }
  Eigen::MatrixXd again = upper * variance * upper.transpose();
  double damping = 0.01 * hessian.trace() / 75;
  for (int64_t i = 0; i < 75; ++i)
    for (int64_t j = 0; j < 75; ++j)
      EXPECT_NEAR(again(i, j), hessian(order[size_t(i)], order[size_t(j)]) + (i == j ? damping : 0), 1e-6);
  for (int64_t j : {0, 40, 74}) {
    int64_t begin = j / 32 * 32, count = std::min<int64_t>(32, 75 - begin);
    Eigen::MatrixXd block = upper.block(begin, begin, count, count);
    Eigen::MatrixXd conditional = block * variance.block(begin, begin, count, count) * block.transpose();
    Eigen::MatrixXd among = again.block(begin, begin, count, count);
    std::vector<float> some(32);
    Eigen::RowVectorXd errors(count);
    for (int64_t i = 0; i < count; ++i)
      errors[i] = some[size_t(i)] = float(i * i % 11) - 5;
    for (auto [form, of] : {std::pair(&feedback.ahead(j / 32), &conditional), {&feedback.among(j / 32), &among}})
      EXPECT_NEAR(form->cost(some.data()) * of->trace() / double(count), errors.dot(*of * errors.transpose()), 1e-4 * of->trace());
    std::vector<float> slope(size_t(count), 7.0f); // of (e D) Uᵀ, e of all columns
    std::vector<float> weighed(75);
    Eigen::RowVectorXd brackets(75);
    for (int64_t i = 0; i < 75; ++i)
      brackets[i] = weighed[size_t(i)] = float(i % 5) - 2;
    feedback.gather(begin, count, weighed.data(), 75, 1, slope.data(), 32);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_NEAR(slope[size_t(i)], (brackets * upper.transpose())[begin + i], 1e-5);
    std::vector<float> sums(size_t(count), 1.0f);
    feedback.solveBlock(begin, count, sums.data());
    Eigen::RowVectorXd solved(count);
    for (int64_t i = 0; i < count; ++i)
      solved[i] = sums[size_t(i)];
    EXPECT_LE((solved * block - Eigen::RowVectorXd::Ones(count)).norm(), 1e-5);
  }
  std::vector<double> error(75);
  Eigen::VectorXd reordered(75);
  for (int64_t i = 0; i < 75; ++i)
    reordered[order[size_t(i)]] = error[size_t(i)] = double(i % 7) - 3;
  EXPECT_NEAR(feedback.loss(error.data()), reordered.dot(hessian * reordered) + damping * reordered.squaredNorm(), 1e-4);
}

TEST(Feedback, GainsWhatTheoryLeaves) {
  Eigen::MatrixXd hessian = decaying(512);
  Feedback feedback = factored(hessian, 1e-6);
  EXPECT_NEAR(feedback.gain(), .42, .02); // what the spectrum leaves, computed elsewhere
  for (Encoding encoding : {Encoding{EncodingKind::Int4, 0}, Encoding{EncodingKind::Int8, 0}}) {
    double without = 0, with = 0;
    for (unsigned seed = 0; seed < 64; ++seed) { // the loss of one row is mostly that along one direction
      Case c(encoding, 512, {}, seed);
      std::vector<uint8_t> nearest(size_t(c.layout.tileBytes)), fed = nearest;
      ASSERT_EQ(encodeTile(encoding, c.layout, nullptr, c.weights.data(), 512, 8, nearest.data()), EncodeStatus::Ok);
      ASSERT_EQ(encodeTileWithFeedback(encoding, c.layout, nullptr, c.weights.data(), 512, 8, feedback, fed.data()),
                EncodeStatus::Ok);
      without += c.loss(encoding, nearest, hessian);
      with += c.loss(encoding, fed, hessian);
    }
    EXPECT_NEAR(with / without, feedback.gain(), .05 * feedback.gain()) << "kind " << int(encoding.kind);
  }
}

// The weighted error of the flagship code: .0843 and .0217 without feedback, times tr(D) / tr(H) = .41 is .0346 and .0089. Blocks lose
// little of that since errors are weighed together, and a sweep wins as much.
TEST(Feedback, PlanesGainInBlocks) {
  Eigen::MatrixXd hessian = decaying(512);
  Feedback feedback = factored(hessian, 1e-4);
  for (auto [kind, most] : {std::pair(EncodingKind::Planes3x2, .0350), {EncodingKind::Planes3x3, .0091}})
    for (int64_t group : {0, 256}) {
      Encoding encoding{kind, group};
      double loss = 0, power = 0;
      for (unsigned seed = 0; seed < 32; ++seed) {
        Case c(encoding, 512, {}, seed);
        std::vector<uint8_t> tile(size_t(c.layout.tileBytes)), zeros = tile;
        ASSERT_EQ(encodePlanesWithFeedback(kind, c.layout, nullptr, c.weights.data(), 512, 8, feedback, tile.data()), EncodeStatus::Ok);
        loss += c.loss(encoding, tile, hessian);
        power += c.loss(encoding, zeros, hessian); // scales of 0
      }
      EXPECT_LT(loss / power, most) << "kind " << int(kind) << " group " << group;
    }
}

// Ragged shapes: rows that fill no tile, columns that fill no block, outliers; and what rows give does not depend on their neighbours.
TEST(Feedback, PlanesOfAnyShape) {
  std::vector<uint32_t> outliers = {0, 31, 76};
  Encoding encoding{EncodingKind::Planes3x3, 64};
  Case c(encoding, 77, outliers);
  WeightLayout layout;
  ASSERT_EQ(makeLayout(encoding, 13, 77, 3, layout), EncodeStatus::Ok);
  std::mt19937 random(8);
  std::normal_distribution<float> one;
  std::vector<float> weights(13 * 77);
  for (float &w : weights)
    w = one(random);
  Feedback feedback = factored(decaying(77), 1e-3, c.index.data());
  std::vector<uint8_t> together(size_t(2 * layout.tileBytes)), apart = together;
  ASSERT_EQ(encodePlanesWithFeedback(encoding.kind, layout, c.index.data(), weights.data(), 77, 13, feedback, together.data()), EncodeStatus::Ok);
  ASSERT_EQ(encodePlanesWithFeedback(encoding.kind, layout, c.index.data(), weights.data(), 77, 8, feedback, apart.data()), EncodeStatus::Ok);
  ASSERT_EQ(encodePlanesWithFeedback(encoding.kind, layout, c.index.data(), weights.data() + 8 * 77, 77, 5, feedback,
                                     apart.data() + layout.tileBytes), EncodeStatus::Ok);
  EXPECT_EQ(together, apart);
  std::vector<double> decoded(8 * 77);
  double error = 0, power = 0;
  for (int64_t row = 0; row < 13; ++row) {
    decodeTile(encoding, layout, c.index.data(), together.data() + row / 8 * layout.tileBytes, decoded.data());
    for (int64_t i = 0; i < 77; ++i) {
      double w = weights[size_t(row * 77 + i)], d = w - decoded[size_t(row % 8 * 77 + i)];
      error += d * d;
      power += w * w;
    }
  }
  EXPECT_LT(error / power, .06); // feedback trades errors of single weights for those of sums
  weights[5 * 77 + 40] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encodePlanesWithFeedback(encoding.kind, layout, c.index.data(), weights.data(), 77, 13, feedback, together.data()), EncodeStatus::NotFinite);
}

TEST(Feedback, WithoutCorrelationItIsNearestRounding) {
  Eigen::MatrixXd hessian = Eigen::VectorXd::LinSpaced(75, 1, 4).asDiagonal();
  Feedback feedback = factored(hessian, 0.01);
  for (EncodingKind kind : {EncodingKind::Int8, EncodingKind::Int4, EncodingKind::Codebook2})
    for (int64_t group : {0, 32, 64}) {
      Encoding encoding{kind, group};
      Case c(encoding, 75, {});
      std::vector<uint8_t> nearest(size_t(c.layout.tileBytes)), fed = nearest;
      ASSERT_EQ(encodeTile(encoding, c.layout, nullptr, c.weights.data(), 75, 8, nearest.data()), EncodeStatus::Ok);
      ASSERT_EQ(encodeTileWithFeedback(encoding, c.layout, nullptr, c.weights.data(), 75, 8, feedback, fed.data()),
                EncodeStatus::Ok);
      EXPECT_EQ(nearest, fed);
    }
}

// f16 columns that come last take up what the others have lost, so they help more than by what they hold.
TEST(Feedback, OutliersTakeUpErrors) {
  Eigen::MatrixXd hessian = decaying(300);
  Encoding encoding{EncodingKind::Codebook2, 32};
  Case c(encoding, 300, {7, 130, 131, 299});
  std::vector<uint8_t> nearest(size_t(c.layout.tileBytes)), fed = nearest;
  Feedback feedback = factored(hessian, 1e-6, c.index.data());
  ASSERT_EQ(encodeTile(encoding, c.layout, c.index.data(), c.weights.data(), 300, 8, nearest.data()), EncodeStatus::Ok);
  ASSERT_EQ(encodeTileWithFeedback(encoding, c.layout, c.index.data(), c.weights.data(), 300, 8, feedback, fed.data()),
            EncodeStatus::Ok);
  EXPECT_LT(c.loss(encoding, fed, hessian), .6 * c.loss(encoding, nearest, hessian));
}

// Inputs that never have a part along w do not see w, but would see its errors.
TEST(Feedback, RowsThatInputsDoNotSeeLoseNoMoreThanZeros) {
  constexpr int64_t columns = 96;
  for (EncodingKind kind : {EncodingKind::Codebook2, EncodingKind::Int4}) {
    Encoding encoding{kind, 32};
    Case c(encoding, columns, {});
    Eigen::Map<Eigen::VectorXf> unseen(c.weights.data(), columns);
    Eigen::VectorXd direction = unseen.cast<double>().normalized();
    Eigen::MatrixXd hessian = Eigen::MatrixXd::Identity(columns, columns) - direction * direction.transpose();
    Feedback feedback = factored(hessian, 1e-4);
    std::vector<uint8_t> tile(size_t(c.layout.tileBytes));
    ASSERT_EQ(encodeTileWithFeedback(encoding, c.layout, nullptr, c.weights.data(), columns, 8, feedback, tile.data()), EncodeStatus::Ok);
    std::vector<double> decoded(c.weights.size()), error(columns), all(columns);
    decodeTile(encoding, c.layout, nullptr, tile.data(), decoded.data());
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        all[size_t(i)] = c.weights[size_t(row * columns + i)];
        error[size_t(i)] = all[size_t(i)] - decoded[size_t(row * columns + i)];
      }
      EXPECT_LE(feedback.loss(error.data()), feedback.loss(all.data()) * (1 + 1e-5)) << row;
      EXPECT_EQ(row == 0, std::all_of(decoded.begin() + row * columns, decoded.begin() + (row + 1) * columns, [](double x) { return x == 0; })) << row;
    }
  }
}

TEST(Feedback, SaysWhatIsWrong) {
  Feedback feedback;
  std::string error;
  EXPECT_FALSE(feedback.factor(4, [](int64_t, int64_t) { return 0.0; }, nullptr, 0.01, error));
  EXPECT_EQ(error, "its inputs were zero throughout the calibration");
  EXPECT_FALSE(feedback.factor(4, [](int64_t, int64_t) { return std::nan(""); }, nullptr, 0.01, error));
  EXPECT_EQ(error, "its inputs' second moments are not finite");
  // One sample: of rank 1, so nothing but damping makes it definite.
  EXPECT_TRUE(feedback.factor(4, [](int64_t, int64_t) { return 1.0; }, nullptr, 1e-20, error));
  EXPECT_GT(feedback.damping(), 1e-20);
}
