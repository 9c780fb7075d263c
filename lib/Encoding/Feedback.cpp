// SPDX-License-Identifier: Apache-2.0
//
// The factorisation, in float64. U D Uᵀ is the Cholesky factorisation of H with rows and columns
// reversed: J H J = L Lᵀ, so H = (J L J)(J L J)ᵀ, and J L J is upper triangular.

#include "Encoding/Feedback.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstring>

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
  forms.clear();
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    int64_t count = std::min(kBlock, size - begin);
    forms.push_back(form(begin, count, begin + count));
    forms.push_back(form(begin, count, size));
  }
  return true;
}

BlockForm Feedback::form(int64_t begin, int64_t count, int64_t last) const {
  double products[kBlock * kBlock];
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      const float *a = upper(begin + i), *b = upper(begin + j);
      double sum = 0;
      for (int64_t k = begin + i; k < last; ++k)
        sum += double(a[k]) * b[k] * variances[size_t(k)];
      products[i * count + j] = products[j * count + i] = sum;
    }
  return BlockForm(products, int(count));
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

typedef float Lanes __attribute__((vector_size(32)));

/// sums[r · sumStride + i] = Σ_j factors[i · stride + j] · values[r · valueStride + j]: eight sums that stay in registers for each
/// pair, which are added at the end.
template <int height, int width>
[[gnu::always_inline]] inline void dots(const float *factors, int64_t stride, const float *values, int64_t valueStride,
                                        int64_t length, float *sums, int64_t sumStride) {
  constexpr int64_t lanes = 8;
  Lanes acc[height][width] = {};
  int64_t j = 0;
  for (; j + lanes <= length; j += lanes) {
    Lanes factor[width];
    for (int i = 0; i < width; ++i)
      std::memcpy(&factor[i], factors + i * stride + j, sizeof(Lanes));
    for (int r = 0; r < height; ++r) {
      Lanes value;
      std::memcpy(&value, values + r * valueStride + j, sizeof(Lanes));
      for (int i = 0; i < width; ++i)
        acc[r][i] += value * factor[i];
    }
  }
  for (int r = 0; r < height; ++r)
    for (int i = 0; i < width; ++i) {
      float rest = 0;
      for (int64_t k = j; k < length; ++k)
        rest += values[r * valueStride + k] * factors[i * stride + k];
      for (int l = 0; l < lanes; ++l)
        rest += acc[r][i][l];
      sums[r * sumStride + i] = rest;
    }
}

[[gnu::target_clones("avx2", "default")]]
void gatherColumns(const float *factors, int64_t stride, int64_t count, const float *values, int64_t valueStride,
                   int64_t length, int64_t rows, float *sums, int64_t sumStride) {
  constexpr int height = 2, width = 4;
  int64_t row = 0;
  for (; row + height <= rows; row += height) {
    int64_t i = 0;
    for (; i + width <= count; i += width)
      dots<height, width>(factors + i * stride, stride, values + row * valueStride, valueStride, length,
                          sums + row * sumStride + i, sumStride);
    for (; i < count; ++i)
      dots<height, 1>(factors + i * stride, stride, values + row * valueStride, valueStride, length,
                      sums + row * sumStride + i, sumStride);
  }
  for (; row < rows; ++row)
    for (int64_t i = 0; i < count; ++i)
      dots<1, 1>(factors + i * stride, stride, values + row * valueStride, valueStride, length,
                 sums + row * sumStride + i, sumStride);
}

} // namespace

void Feedback::gather(int64_t begin, int64_t count, const float *values, int64_t valueStride, int64_t rows, float *sums,
                      int64_t sumStride) const {
  gatherColumns(upper(begin) + begin, size, count, values + begin, valueStride, size - begin, rows, sums, sumStride);
}

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
