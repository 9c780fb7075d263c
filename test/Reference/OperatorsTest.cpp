// SPDX-License-Identifier: Apache-2.0
//
// Properties of operators and of records.

#include "lib/Reference/Operators.h"
#include "lib/Reference/Record.h"
#include "test/Reference/Fixture.h"

#include <gtest/gtest.h>

#include <cmath>

namespace otf::reference::test {
namespace {

/// Deterministic numbers within ±1.
Tensor some(Shape shape, double seed = 1) {
  Tensor x = Tensor::zeros(std::move(shape), true);
  for (size_t i = 0; i < x.reals().size(); ++i)
    x.reals()[i] = float(std::sin(seed + 12.9898 * double(i)));
  return x;
}

Tensor take(Result result) {
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

TEST(Record, GivesBackWithinHalfAStep) {
  for (int64_t columns : {1, 31, 32, 33, 65}) {
    Tensor x = some({columns});
    std::vector<int64_t> order = columnOrder(columns, {});
    std::vector<int64_t> record(size_t(recordBytes(columns, 0)));
    std::vector<double> back(size_t(columns), 9);
    writeRecord(x.reals().data(), order, 0, record.data());
    readRecord(record.data(), order, 0, back.data());
    for (int64_t i = 0; i < columns; ++i)
      EXPECT_NEAR(x.reals()[size_t(i)], back[size_t(i)], 0.5001 / 127) << columns;
  }
}

TEST(Record, KeepsOutliers) {
  Tensor x = some({40});
  x.reals()[3] = 1e4;
  std::vector<int64_t> order = columnOrder(40, {3, 39}), record(size_t(recordBytes(38, 2)));
  std::vector<double> back(40);
  writeRecord(x.reals().data(), order, 2, record.data());
  readRecord(record.data(), order, 2, back.data());
  EXPECT_EQ(back[3], 1e4);
  EXPECT_EQ(back[39], x.reals()[39]);
  EXPECT_NEAR(back[0], x.reals()[0], 0.5001 / 127);
}

TEST(Record, OfZerosIsZeros) {
  std::vector<double> x(32, 0);
  std::vector<int64_t> record(size_t(recordBytes(32, 0)), 1);
  writeRecord(x.data(), columnOrder(32, {}), 0, record.data());
  EXPECT_EQ(record, std::vector<int64_t>(record.size(), 0));
}

TEST(Operators, RopeKeepsLengthsAndPassesTheRest) {
  Tensor x = some({1, 2, 3, 6}), angle = some({1, 3, 4}), cos = angle, sin = angle;
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 4; ++i) {
      cos.reals()[row * 4 + i] = std::cos(angle.reals()[row * 4 + i % 2]);
      sin.reals()[row * 4 + i] = std::sin(angle.reals()[row * 4 + i % 2]);
    }
  Tensor y = take(rope(x, cos, sin, false));
  for (size_t row = 0; row < 6; ++row) {
    auto at = [&](const Tensor &t, size_t i) { return t.reals()[row * 6 + i]; };
    for (size_t i : {0u, 1u})
      EXPECT_NEAR(std::hypot(at(x, i), at(x, i + 2)), std::hypot(at(y, i), at(y, i + 2)), 1e-15);
    EXPECT_EQ(at(x, 4), at(y, 4));
    EXPECT_EQ(at(x, 5), at(y, 5));
  }
}

TEST(Operators, AttentionToOneKeyIsItsValue) {
  Tensor q = some({1, 4, 1, 8}), k = some({1, 2, 3, 8}, 2), v = some({1, 2, 3, 5}, 3);
  Tensor mask = Tensor::ofIntegers({1, 1, 1, 3}, {0, 1, 0});
  Tensor y = take(attention(q, k, v, &mask, nullptr, {}));
  ASSERT_EQ(y.shape, (Shape{1, 4, 1, 5}));
  for (size_t head = 0; head < 4; ++head)
    for (size_t d = 0; d < 5; ++d)
      EXPECT_EQ(y.reals()[head * 5 + d], v.reals()[(head / 2 * 3 + 1) * 5 + d]);
}

TEST(Operators, AttentionWithoutAKeyIsZero) {
  Tensor q = some({1, 1, 1, 8}), k = some({1, 1, 2, 8}, 2), v = some({1, 1, 2, 3}, 3);
  Tensor booleans = Tensor::zeros({1, 1, 1, 2}, false);
  Tensor reals = Tensor::ofReals({1, 1, 1, 2}, {-INFINITY, -INFINITY});
  EXPECT_EQ(magnitude(take(attention(q, k, v, &booleans, nullptr, {}))), 0);
  EXPECT_EQ(magnitude(take(attention(q, k, v, &reals, nullptr, {}))), 0);
}

TEST(Operators, SinkTakesItsShareAndHasNoValue) {
  Tensor q = Tensor::zeros({1, 1, 1, 2}, true), k = some({1, 1, 3, 2}, 2), v = some({1, 1, 3, 1}, 3);
  Tensor sink = Tensor::ofReals({1}, {0});
  double sum = v.reals()[0] + v.reals()[1] + v.reals()[2];
  EXPECT_NEAR(take(attention(q, k, v, nullptr, &sink, {})).reals()[0], sum / 4, 1e-15); // four equal scores
}

TEST(Operators, AppendAtPlacesWritesOverWhatIsThere) {
  Tensor past = Tensor::ofReals({2, 1, 2, 1}, {1, 2, 3, 4}), update = Tensor::ofReals({2, 1, 1, 1}, {5, 6});
  Tensor at = Tensor::ofIntegers({2}, {1, 2});
  Tensor y = take(append(past, update, &at, false));
  ASSERT_EQ(y.shape, (Shape{2, 1, 3, 1}));
  EXPECT_EQ(y.reals(), (std::vector<double>{1, 5, 0, 3, 4, 6}));
}

TEST(Operators, NormsOfARow) {
  Tensor x = Tensor::ofReals({1, 2}, {1, 3});
  Tensor layer = take(norm(NormKind::layer, x, nullptr, nullptr, 0));
  EXPECT_EQ(layer.reals(), (std::vector<double>{-1, 1}));
  Tensor rms = take(norm(NormKind::rms, x, nullptr, nullptr, 0));
  EXPECT_NEAR(rms.reals()[1], 3 / std::sqrt(5.0), 1e-15);
}

TEST(Operators, EmbeddingCountsNegativeIdsFromTheEnd) {
  Matrix table{3, 1, {10, 20, 30}, {}, {}};
  Tensor y = take(embedding(Tensor::ofIntegers({2}, {-1, 0}), table));
  EXPECT_EQ(y.reals(), (std::vector<double>{30, 10}));
  Result outside = embedding(Tensor::ofIntegers({1}, {3}), table);
  ASSERT_FALSE(outside);
  EXPECT_EQ(llvm::toString(outside.takeError()), "reads row 3 of 3");
}

TEST(Operators, AppendToAnEmptyCacheTakesItsBatch) {
  Tensor update = some({2, 3, 1, 4}); // positions first: 3 positions of 1 head
  Tensor y = take(append(Tensor::zeros({0, 1, 0, 4}, true), update, nullptr, true));
  EXPECT_EQ(y.shape, (Shape{2, 1, 3, 4}));
  EXPECT_EQ(y.reals(), update.reals());
}

TEST(Operators, LinearOfARecordIsThatOfTheRowItStandsFor) {
  Tensor x = some({2, 40});
  Matrix w{3, 40, some({3, 40}, 5).reals(), {7}, {}};
  Tensor record = take(prologue(x, &w)), row = Tensor::zeros({2, 40}, true);
  for (int64_t m : {0, 1})
    readRecord(record.integers().data() + m * record.shape[1], columnOrder(40, {7}), 1,
               row.reals().data() + m * 40);
  EXPECT_LE(distance(take(linear(record, w, nullptr)), take(linear(row, w, nullptr))), 1e-14);
}

} // namespace
} // namespace otf::reference::test
