// SPDX-License-Identifier: Apache-2.0
//
// Weights that are no noise: rows of zeros, rows of one value, one huge weight, a single column, groups longer than a row, and what
// is not finite; for every encoding, rounded to nearest and with feedback. What is coded loses no more than zeros would.
#include "Encoding/Codec.h"
#include "Encoding/FeedbackPlanes.h"
#include "Encoding/FeedbackTile.h"
#include "Encoding/Rotation.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace otf;

namespace {

constexpr EncodingKind kFed[] = {EncodingKind::Int8,      EncodingKind::Int4,      EncodingKind::Codebook2, EncodingKind::TernarySign,
                                 EncodingKind::Planes3x1, EncodingKind::Planes3x2, EncodingKind::Planes3x3, EncodingKind::Planes3x4,
                                 EncodingKind::Planes4x1, EncodingKind::Planes4x2, EncodingKind::Planes4x3};

/// Inputs of 12 causes and a little noise: H[i][j] = Σ a_i a_j + δ/10.
struct Moments {
  int64_t columns;
  std::vector<double> causes;
  explicit Moments(int64_t columns) : columns(columns), causes(size_t(12 * columns)) {
    std::mt19937 random{unsigned(columns)};
    std::normal_distribution<double> one;
    for (double &cause : causes)
      cause = one(random);
  }
  double operator()(int64_t i, int64_t j) const {
    double sum = i == j ? 0.1 : 0;
    for (int64_t c = 0; c < 12; ++c)
      sum += causes[size_t(c * columns + i)] * causes[size_t(c * columns + j)];
    return sum;
  }
};

struct Coder {
  EncodingKind kind;
  int64_t columns;
  WeightLayout layout;
  Feedback feedback; ///< of Moments, or of nothing
  bool feeds;

  Coder(EncodingKind kind, int64_t columns, int64_t group, bool feeds) : kind(kind), columns(columns), feeds(feeds) {
    EXPECT_EQ(makeLayout({kind, group}, 8, columns, 0, layout), EncodeStatus::Ok);
    std::string error;
    EXPECT_TRUE(feedback.factor(columns, Moments(columns), nullptr, 0.01, error)) << error;
  }

  EncodeStatus encode(const std::vector<float> &w, std::vector<double> &decoded) const {
    std::vector<uint8_t> tile(size_t(layout.tileBytes), 0xcd);
    EncodeStatus status =
        !feeds          ? encodeTile({kind, layout.group}, layout, nullptr, w.data(), columns, 8, tile.data())
        : isPlanes(kind) ? encodePlanesWithFeedback(kind, layout, nullptr, w.data(), columns, 8, feedback, tile.data())
                         : encodeTileWithFeedback({kind, layout.group}, layout, nullptr, w.data(), columns, 8, feedback, tile.data());
    decoded.assign(w.size(), NAN);
    if (status == EncodeStatus::Ok)
      decodeTile({kind, layout.group}, layout, nullptr, tile.data(), decoded.data());
    return status;
  }

  /// Of an error of one row: its square, or what it costs with these inputs.
  double loss(const double *error) const {
    if (feeds)
      return feedback.loss(error);
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i)
      sum += error[i] * error[i];
    return sum;
  }

  /// At most `part` of the loss that zeros have, in every row.
  void expectKept(const std::vector<float> &w, double part) const {
    std::vector<double> decoded, error(w.size()), zeros(w.begin(), w.end());
    ASSERT_EQ(encode(w, decoded), EncodeStatus::Ok);
    for (size_t i = 0; i < w.size(); ++i) {
      ASSERT_TRUE(std::isfinite(decoded[i]));
      error[i] = decoded[i] - w[i];
    }
    for (int64_t row = 0; row < 8; ++row)
      EXPECT_LE(loss(&error[size_t(row * columns)]), part * loss(&zeros[size_t(row * columns)])) << "row " << row;
  }
};

/// Calls `check` for every encoding, several widths and groups, without and with feedback.
template <typename Check> void forAll(Check check) {
  for (EncodingKind kind : kFed)
    for (int64_t columns : {1, 2, 31, 33, 96})
      for (int64_t group : {0, 32, 128}) // 128 is longer than a row
        for (bool feeds : {false, true}) {
          SCOPED_TRACE(testing::Message() << "kind " << int(kind) << ", " << columns << " columns, group " << group
                                          << (feeds ? ", feedback" : ""));
          check(Coder(kind, columns, group, feeds));
          if (testing::Test::HasFatalFailure())
            return;
        }
}

std::vector<float> filled(const Coder &coder, float value) { return std::vector<float>(size_t(8 * coder.columns), value); }

TEST(Degenerate, ZerosStayZeros) {
  forAll([](const Coder &coder) {
    std::vector<double> decoded;
    ASSERT_EQ(coder.encode(filled(coder, 0), decoded), EncodeStatus::Ok);
    for (double value : decoded)
      ASSERT_EQ(value, 0);
  });
}

TEST(Degenerate, RowsOfOneValue) {
  forAll([](const Coder &coder) { coder.expectKept(filled(coder, -0.375f), 1); });
}

// With a rotation a row of one value is a row of a few.
TEST(Degenerate, RotatedRowsOfOneValue) {
  for (EncodingKind kind : kFed)
    for (bool feeds : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kind " << int(kind) << (feeds ? ", feedback" : ""));
      Rotation rotation{32, 3, 1};
      std::vector<double> factor = rotationFactor(rotation), row(96, 0.375);
      rotateExact(rotation, factor.data(), 96, row.data());
      std::vector<float> w;
      for (int i = 0; i < 8; ++i)
        w.insert(w.end(), row.begin(), row.end());
      Coder(kind, 96, 0, feeds).expectKept(w, 1);
    }
}

TEST(Degenerate, OneHugeWeight) {
  forAll([](const Coder &coder) {
    std::mt19937 random(1);
    std::normal_distribution<float> one(0, 0.02f);
    std::vector<float> w(size_t(8 * coder.columns));
    for (float &value : w)
      value = one(random);
    w[size_t(3 * coder.columns + coder.columns / 2)] = 30000;
    coder.expectKept(w, 1);
  });
}

TEST(Degenerate, OneColumnIsKept) {
  for (EncodingKind kind : kFed)
    for (bool feeds : {false, true}) {
      SCOPED_TRACE(testing::Message() << "kind " << int(kind) << (feeds ? ", feedback" : ""));
      Coder coder(kind, 1, 0, feeds);
      coder.expectKept({1, -2, 0.5f, 3, 1e-3f, -7, 100, -0.25f}, 0.01);
    }
}

TEST(Degenerate, WhatIsNotFiniteIsRefused) {
  forAll([](const Coder &coder) {
    std::vector<double> decoded;
    for (float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> w = filled(coder, 1);
      w[size_t(8 * coder.columns - 1)] = bad;
      EXPECT_EQ(coder.encode(w, decoded), EncodeStatus::NotFinite);
    }
    EXPECT_EQ(coder.encode(filled(coder, 1e30f), decoded), EncodeStatus::OutOfRange);
  });
}

} // namespace
