// SPDX-License-Identifier: Apache-2.0
//
// The factorisation, in float64. U D Uᵀ is the Cholesky factorisation of H with rows and columns
// reversed: J H J = L Lᵀ, so H = (J L J)(J L J)ᵀ, and J L J is upper triangular.

#include "Encoding/Feedback.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>

namespace otf {

bool Feedback::factor(int64_t columns, const std::function<double(int64_t, int64_t)> &hessian,
                      const uint32_t *order, double damping, std::string &error) {
  size = columns;
  auto place = [&](int64_t i) { return order ? int64_t(order[i]) : i; };
  auto entry = [&](int64_t i, int64_t j) {
    int64_t a = place(i), b = place(j);
    return hessian(std::max(a, b), std::min(a, b));
  };
  double trace = 0;
  for (int64_t i = 0; i < size; ++i)
    trace += entry(i, i);
  if (!std::isfinite(trace)) {
    error = "its inputs' second moments are not finite";
    return false;
  }
  if (trace <= 0) {
    error = "its inputs were zero throughout the calibration";
    return false;
  }

  // Eigen sizes its blocks by the machine's caches, and the order of its sums with them.
  Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20);
  Eigen::MatrixXd lower(size, size);
  bool done = false;
  for (double fraction = damping; !done && fraction <= 1; fraction *= 10) {
    damped = fraction;
    for (int64_t j = 0; j < size; ++j)
      for (int64_t i = j; i < size; ++i)
        lower(i, j) = entry(size - 1 - i, size - 1 - j);
    lower.diagonal().array() += fraction * trace / double(size);
    done = Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>>(lower).info() == Eigen::Success;
  }
  if (!done) {
    error = "its inputs' second moments are no positive definite matrix, however damped";
    return false;
  }

  traceH = trace * (1 + damped);
  traceD = 0;
  factors.assign(size_t(size * size), 0.0f);
  variances.resize(size_t(size));
  for (int64_t j = 0; j < size; ++j) {
    double pivot = lower(size - 1 - j, size - 1 - j);
    variances[size_t(j)] = pivot * pivot;
    traceD += pivot * pivot;
    for (int64_t i = 0; i <= j; ++i)
      factors[size_t(i * size + j)] = float(lower(size - 1 - i, size - 1 - j) / pivot);
  }
  weights.resize(size_t(size));
  for (int64_t j = 0; j < size; ++j) {
    double sum = 0;
    for (int64_t k = j; k < std::min(j / kBlock * kBlock + kBlock, size); ++k)
      sum += double(upper(j)[k]) * upper(j)[k] * variances[size_t(k)];
    weights[size_t(j)] = float(sum);
  }
  return true;
}

void Feedback::solveBlock(int64_t begin, int64_t count, float *sums) const {
  // y U = s: the first columns of y are known first.
  for (int64_t i = 0; i < count; ++i) {
    const float *row = upper(begin + i) + begin;
    for (int64_t j = i + 1; j < count; ++j)
      sums[j] -= sums[i] * row[j];
  }
}

namespace {

/// acc += Σ_i errors[i] · factors[i · stride], `width` columns that stay in registers.
template <int width>
[[gnu::always_inline]] inline void accumulate(float *sums, const float *errors, int64_t count,
                                              const float *factors, int64_t stride) {
  float acc[width];
  for (int j = 0; j < width; ++j)
    acc[j] = sums[j];
  for (int64_t i = 0; i < count; ++i)
    for (int j = 0; j < width; ++j)
      acc[j] += errors[i] * factors[i * stride + j];
  for (int j = 0; j < width; ++j)
    sums[j] = acc[j];
}

/// Without fma in either clone, so that both round alike.
[[gnu::target_clones("avx2", "default")]]
void spreadColumns(const float *factors, int64_t stride, int64_t count, const float *errors,
                   int64_t errorStride, int64_t rows, float *sums, int64_t sumStride,
                   int64_t columns) {
  constexpr int width = 64;
  int64_t j = 0;
  for (; j + width <= columns; j += width)
    for (int64_t row = 0; row < rows; ++row)
      accumulate<width>(sums + row * sumStride + j, errors + row * errorStride, count, factors + j, stride);
  for (; j < columns; ++j)
    for (int64_t row = 0; row < rows; ++row)
      accumulate<1>(sums + row * sumStride + j, errors + row * errorStride, count, factors + j, stride);
}

} // namespace

void Feedback::spread(int64_t begin, int64_t count, const float *errors, int64_t errorStride,
                      int64_t rows, float *sums, int64_t sumStride, int64_t first,
                      int64_t last) const {
  spreadColumns(upper(begin) + first, size, count, errors, errorStride, rows, sums + first,
                sumStride, last - first);
}

double Feedback::loss(const double *error) const {
  double total = 0;
  for (int64_t j = 0; j < size; ++j) {
    double bracket = 0;
    for (int64_t i = 0; i <= j; ++i)
      bracket += error[i] * double(upper(i)[j]);
    total += variances[size_t(j)] * bracket * bracket;
  }
  return total;
}

} // namespace otf
