// SPDX-License-Identifier: Apache-2.0
//
// The constants added to lengths are roundings that do not grow with them: of scales, of the weight
// itself where a gain was folded in, of a polynomial for exp.

#include "test/Reference/Bounds.h"

#include "lib/Encoding/Layout.h"
#include "lib/Reference/Record.h"
#include "test/Reference/Fixture.h"

#include <cmath>
#include <cstring>

namespace otf::reference::test {

static constexpr double u = 0x1p-24;

static double sumOfMagnitudes(const Tensor &x, const Matrix &w, const Tensor *bias, bool zeros) {
  std::vector<int64_t> order = columnOrder(w.columns, w.outliers);
  std::vector<double> row(size_t(w.columns));
  int64_t width = x.shape.back();
  double worst = 0;
  for (int64_t m = 0, rows = width ? x.count() / width : 0; m < rows; ++m) {
    if (x.isReal())
      row.assign(x.reals().begin() + m * width, x.reals().begin() + (m + 1) * width);
    else
      readRecord(x.integers().data() + m * width, order, int64_t(w.outliers.size()), row.data());
    for (int64_t n = 0; n < w.rows; ++n) {
      const double *weights = &w.weights[size_t(n * w.columns)];
      double largest = 0, sum = bias ? std::abs(bias->reals()[size_t(n)]) : 0;
      for (int64_t k = 0; k < w.columns; ++k)
        largest = std::max(largest, std::abs(weights[k]));
      // |zero| and |scale · table| are within a few times the row's largest weight.
      for (int64_t k = 0; k < w.columns; ++k)
        sum += std::abs(row[size_t(k)]) * (std::abs(weights[k]) + (zeros ? 4 * largest : 0));
      worst = std::max(worst, sum);
    }
  }
  return worst;
}

double linearMagnitude(const Tensor &x, const Matrix &w, const Tensor *bias) {
  return sumOfMagnitudes(x, w, bias, false);
}

double linearBound(const Tensor &x, const Matrix &w, const Tensor *bias, bool zeros) {
  return double(w.columns + 16) * u * sumOfMagnitudes(x, w, bias, zeros);
}

double normBound(const Tensor &x, const Tensor *scale, const Tensor *bias, double epsilon,
                 bool centred) {
  int64_t width = x.shape.back();
  double worst = 0;
  for (int64_t m = 0, rows = width ? x.count() / width : 0; m < rows; ++m) {
    const double *row = x.reals().data() + m * width;
    double mean = 0, square = 0, largest = 0;
    for (int64_t k = 0; k < width; ++k) {
      mean += centred ? row[k] / double(width) : 0;
      largest = std::max(largest, std::abs(row[k]));
    }
    for (int64_t k = 0; k < width; ++k)
      square += (row[k] - mean) * (row[k] - mean) / double(width);
    // z bounds |x| / σ. The mean errs by n u max|x|, so 1/σ by a factor of 1 + n u (1 + 2z).
    double z = largest / std::sqrt(square + epsilon);
    worst = std::max(worst, double(width + 16) * u * (z + 2 * z * (1 + 2 * z)));
  }
  return worst * (scale ? magnitude(*scale) : 1) + 4 * u * (bias ? magnitude(*bias) : 0);
}

double attentionBound(const Tensor &query, const Tensor &key, const Tensor &value,
                      const Tensor *mask, double scale) {
  double width = double(query.shape[3]), positions = double(key.shape[2]);
  double score = width * magnitude(query) * magnitude(key) * std::abs(scale);
  double error = (width + 8) * u * score;
  if (mask && mask->isReal()) { // what is added to a score that counts; masked ones do not
    double added = 0;
    for (double element : mask->reals())
      if (element > -1e4)
        added = std::max(added, std::abs(element));
    error += u * (score + added);
  }
  // An error e of each score changes each probability by a factor of at most exp(2e).
  return magnitude(value) * (2 * error + (2 * positions + 32) * u * (1 + score));
}

std::string compareRecords(const Tensor &wanted, const Tensor &got, int64_t background,
                           int64_t outliers, double bound) {
  if (wanted.shape != got.shape)
    return "shapes differ";
  RecordLayout layout = recordLayout(background, outliers);
  for (int64_t row = 0; row < wanted.count() / layout.bytes; ++row) {
    std::vector<uint8_t> a, b;
    for (int64_t i = 0; i < layout.bytes; ++i) {
      a.push_back(uint8_t(wanted.integers()[size_t(row * layout.bytes + i)]));
      b.push_back(uint8_t(got.integers()[size_t(row * layout.bytes + i)]));
    }
    auto at = [](const std::vector<uint8_t> &bytes, int64_t offset, auto value) {
      std::memcpy(&value, bytes.data() + offset, sizeof(value));
      return value;
    };
    for (int64_t i = 0; i < layout.padded; ++i)
      if (std::abs(int8_t(a[size_t(i)]) - int8_t(b[size_t(i)])) > (bound == 0 ? 0 : 1))
        return "code " + std::to_string(i) + " differs";
    for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
      int64_t place = layout.scaleOffset + 4 * chunk;
      double one = at(a, place, 0.0f), other = at(b, place, 0.0f);
      if (std::abs(one - other) > bound / 127 + (bound == 0 ? 0 : 2 * u * one))
        return "scale " + std::to_string(chunk) + " differs";
      int32_t sum = 0;
      for (int64_t i = 0; i < kChunkColumns; ++i)
        sum += int8_t(b[size_t(chunk * kChunkColumns + i)]);
      if (sum != at(b, layout.sumOffset + 4 * chunk, int32_t()))
        return "sum " + std::to_string(chunk) + " is not that of its codes";
    }
    for (int64_t i = 0; i < outliers; ++i) {
      int64_t place = layout.outlierOffset + 4 * i;
      if (std::abs(double(at(a, place, 0.0f)) - double(at(b, place, 0.0f))) > bound * (1 + 2 * u))
        return "outlier " + std::to_string(i) + " differs";
    }
  }
  return {};
}

} // namespace otf::reference::test
