// SPDX-License-Identifier: Apache-2.0
//
// Rotations of rows, and the numbers they are made of: the one definition that compiler, reference,
// kernels and tests share.
//
// A row is cut into segments of block · factor columns, and column i · block + j of a segment
// becomes
//
//   y[i', j'] = Σ_i F[i', i] / sqrt(block) · Σ_j H[j', j] · (±x[i, j])
//
// H is the Sylvester Hadamard matrix (entries ±1, H_2 = [[1, 1], [1, −1]]); F is orthogonal of
// order `factor`, so any width that has a divisor of that form has a rotation: 576 = 64 · 9, 11008
// = 256 · 43. It spreads a large column over its segment, and products do not change: (R x) · (R w)
// = x · w. So a linear rotates its input while it runs and its weight while the plan is written.
//
// Everything is a function of three numbers, in integers and IEEE f64, so the same bits everywhere.
#ifndef OTF_ENCODING_ROTATION_H
#define OTF_ENCODING_ROTATION_H

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace otf {

/// Of a factor: a CUDA thread holds as many values in registers.
inline constexpr int64_t kMostFactor = 63;
/// Columns of a segment, which lies in the shared memory of a CUDA block as f32: 44 KiB of 48.
inline constexpr int64_t kMostSegment = 11264;

struct Rotation {
  int64_t block = 1;  ///< order of the Hadamard matrix, a power of two
  int64_t factor = 1; ///< order of F
  uint64_t seed = 0;  ///< of signs and F; 0: no signs

  constexpr int64_t segment() const { return block * factor; }
};

/// Why there is no such rotation, or null.
constexpr const char *problemOf(const Rotation &rotation) {
  if (rotation.block < 1 || rotation.block > kMostSegment ||
      (rotation.block & (rotation.block - 1)) != 0)
    return "the block of a rotation must be a power of two of at most 8192";
  if (rotation.factor < 1 || rotation.factor > kMostFactor)
    return "the factor of a rotation must be from 1 to 63";
  if (rotation.segment() > kMostSegment)
    return "a rotation takes at most 11264 columns together";
  return nullptr;
}

/// A number for each i, of splitmix64.
constexpr uint64_t rotationNumber(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/// Bit j says that column 32 · word + j of a row changes its sign.
constexpr uint32_t rotationSigns(uint64_t seed, uint64_t word) {
  return seed == 0 ? 0 : uint32_t(rotationNumber(seed, word) >> 32);
}

namespace detail {

/// Whether q is a prime, and which numbers are squares modulo q.
inline bool squaresModulo(int64_t q, std::vector<bool> &isSquare) {
  for (int64_t d = 2; d * d <= q; ++d)
    if (q % d == 0)
      return false;
  isSquare.assign(size_t(q), false);
  for (int64_t i = 1; i < q; ++i)
    isSquare[size_t(i * i % q)] = true;
  return q > 2;
}

/// Rows of sums of four uniform numbers, made orthogonal twice.
inline std::vector<double> randomOrthogonal(int64_t m, uint64_t seed, uint64_t attempt) {
  std::vector<double> f(size_t(m * m));
  auto uniform = [&](int64_t i) { // −1 to 1, exact; signs take the numbers below 2^32
    uint64_t number = rotationNumber(seed, ((attempt + 1) << 32) + uint64_t(i));
    return double(int64_t(number >> 11)) * 0x1p-52 - 1;
  };
  for (int64_t i = 0; i < m * m; ++i)
    f[size_t(i)] =
        (uniform(4 * i) + uniform(4 * i + 1)) + (uniform(4 * i + 2) + uniform(4 * i + 3));
  auto dot = [&](const double *a, const double *b) {
    double sum = 0;
    for (int64_t j = 0; j < m; ++j)
      sum += a[j] * b[j];
    return sum;
  };
  for (int64_t row = 0; row < m; ++row) {
    double *r = &f[size_t(row * m)];
    for (int round = 0; round < 2; ++round) {
      for (int64_t before = 0; before < row; ++before) {
        const double *b = &f[size_t(before * m)];
        double along = dot(r, b);
        for (int64_t j = 0; j < m; ++j)
          r[j] -= along * b[j];
      }
      double length = std::sqrt(dot(r, r));
      for (int64_t j = 0; j < m; ++j)
        r[j] /= length;
    }
  }
  return f;
}

} // namespace detail

/// F / sqrt(block), factor × factor, row-major. Where factor is 12, 20, … (a multiple of 4, one
/// more than a prime) F is Paley's Hadamard matrix, whose entries are all as small as they can be;
/// else random.
inline std::vector<double> rotationFactor(const Rotation &rotation) {
  int64_t m = rotation.factor;
  double hadamard = 1 / std::sqrt(double(rotation.block));
  if (m == 1)
    return {hadamard};
  std::vector<double> f(size_t(m * m));
  std::vector<bool> isSquare;
  if (m % 4 == 0 && detail::squaresModulo(m - 1, isSquare)) {
    double unit = 1 / std::sqrt(double(m) * double(rotation.block));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < m; ++j) {
        bool positive = i == j || i == 0 || (j != 0 && isSquare[size_t((j - i + m - 1) % (m - 1))]);
        f[size_t(i * m + j)] = positive ? unit : -unit;
      }
    return f;
  }
  // A small matrix is easily close to one that mixes nothing; of a few the one with the least
  // largest entry is taken.
  double least = 2;
  for (uint64_t attempt = 0, attempts = m <= 16 ? 32 : 1; attempt != attempts; ++attempt) {
    std::vector<double> tried = detail::randomOrthogonal(m, rotation.seed, attempt);
    double largest = 0;
    for (double entry : tried)
      largest = std::fmax(largest, std::abs(entry));
    if (largest >= least)
      continue;
    least = largest;
    f = std::move(tried);
  }
  for (double &entry : f)
    entry *= hadamard;
  return f;
}

/// rotationFactor() as kernels have it.
inline std::vector<float> rotationFactor32(const Rotation &rotation) {
  std::vector<double> f = rotationFactor(rotation);
  return std::vector<float>(f.begin(), f.end());
}

/// Rotates a row of `columns` values, a multiple of the segment, in place. `factor`: that of the
/// rotation. This order of operations is the canonical one (docs/Architecture.md): signs, then
/// neighbours at distance 1, 2, 4, … meet as a + b and a − b, then the terms of F one after
/// another, which `multiplyAdd(a, b, c)` joins: fma in f32.
template <class T, class MultiplyAdd>
void rotateRow(const Rotation &rotation, const T *factor, int64_t columns, T *x,
               MultiplyAdd multiplyAdd) {
  int64_t block = rotation.block, m = rotation.factor;
  if (rotation.seed != 0)
    for (int64_t k = 0; k < columns; ++k)
      if (rotationSigns(rotation.seed, uint64_t(k / 32)) >> (k % 32) & 1)
        x[k] = -x[k];
  for (int64_t distance = 1; distance < block; distance *= 2)
    for (int64_t first = 0; first < columns; first += 2 * distance)
      for (int64_t k = first; k < first + distance; ++k) {
        T a = x[k], b = x[k + distance];
        x[k] = a + b;
        x[k + distance] = a - b;
      }
  std::vector<T> column(static_cast<size_t>(m));
  for (int64_t segment = 0; segment < columns; segment += block * m)
    for (int64_t j = 0; j < block; ++j) {
      T *at = x + segment + j;
      for (int64_t i = 0; i < m; ++i)
        column[size_t(i)] = at[i * block];
      for (int64_t i = 0; i < m; ++i) {
        T sum = factor[i * m] * column[0];
        for (int64_t n = 1; n < m; ++n)
          sum = multiplyAdd(factor[i * m + n], column[size_t(n)], sum);
        at[i * block] = sum;
      }
    }
}

/// What happens to activations, to the bit.
inline void rotateCanonical(const Rotation &rotation, const float *factor, int64_t columns,
                            float *x) {
  rotateRow(rotation, factor, columns, x,
            [](float a, float b, float c) { return std::fma(a, b, c); });
}

/// What happens to weights.
inline void rotateExact(const Rotation &rotation, const double *factor, int64_t columns,
                        double *x) {
  rotateRow(rotation, factor, columns, x, [](double a, double b, double c) { return a * b + c; });
}

/// How far off a linear with rotated input and weight is, as both are computed: |(R w) · (R x) − w
/// · x| / (|w| |x|), the largest of a few rows. One row is x itself, since products of unlike rows
/// hide a wrong length.
inline double rotationError(const Rotation &rotation, int64_t columns) {
  std::vector<float> factor32 = rotationFactor32(rotation);
  std::vector<double> factor = rotationFactor(rotation);
  auto row = [&](uint64_t seed) {
    std::vector<double> r(static_cast<size_t>(columns));
    for (int64_t k = 0; k < columns; ++k) {
      float value = float(int32_t(rotationNumber(seed, uint64_t(k)) >> 32)) * 0x1p-31f;
      r[size_t(k)] = k % 100 == 7 ? 30 * value : value;
    }
    return r;
  };
  auto dot = [&](const auto &a, const auto &b) {
    double sum = 0;
    for (int64_t k = 0; k < columns; ++k)
      sum += double(a[size_t(k)]) * double(b[size_t(k)]);
    return sum;
  };
  std::vector<double> x = row(1);
  std::vector<float> rotated(x.begin(), x.end());
  rotateCanonical(rotation, factor32.data(), columns, rotated.data());
  double worst = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<double> w = row(seed);
    double length = std::sqrt(dot(w, w) * dot(x, x)), want = dot(w, x);
    rotateExact(rotation, factor.data(), columns, w.data());
    std::vector<float> stored(w.begin(), w.end());
    worst = std::fmax(worst, std::abs(dot(stored, rotated) - want) / length);
  }
  return worst;
}

/// rotationError() at most.
inline constexpr double kRotationTolerance = 2e-6;

} // namespace otf

#endif // OTF_ENCODING_ROTATION_H
