// SPDX-License-Identifier: Apache-2.0
//
// Records to the byte, norms against float64, rotary embedding and cache appends.
#include "Encoding/Half.h"
#include "Encoding/Layout.h"
#include "KernelLibrary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace otf;
using namespace otf::test;

namespace {

class Record : public KernelTest {};

std::vector<double> normed(std::span<const float> x, int64_t norm, double eps, const float *gamma,
                           const float *beta) {
  double k = double(x.size()), mean = 0, square = 0;
  if (norm == OTF_NORM_LAYER)
    for (float v : x)
      mean += v / k;
  for (float v : x)
    square += (v - mean) * (v - mean) / k;
  std::vector<double> out;
  for (size_t i = 0; i < x.size(); ++i) {
    double value = norm ? (x[i] - mean) / std::sqrt(square + eps) : double(x[i]);
    if (norm && gamma)
      value *= gamma[i];
    if (norm && beta)
      value += beta[i];
    out.push_back(value);
  }
  return out;
}

} // namespace

TEST_P(Record, HasTheBytesOfTheArchitecture) {
  for (int64_t k : {1, 5, 31, 32, 33, 100, 576, 4304})
    for (int64_t outliers : {int64_t(0), k / 7, k}) {
      Guarded<float> x(static_cast<size_t>(k));
      fillActivations({x.data(), x.size()}, unsigned(k));
      // Any order will do here; the reversed one is not the identity.
      Guarded<uint32_t> index(static_cast<size_t>(k));
      std::iota(index.begin(), index.end(), 0u);
      if (outliers)
        std::reverse(index.begin(), index.end());
      int64_t kb = k - outliers;
      RecordLayout r = recordLayout(kb, outliers);
      Guarded<uint8_t> rec(static_cast<size_t>(r.bytes));
      std::memset(rec.data(), 0xcd, rec.size());
      kernels->record_i8(x.data(), k, 0, 0, nullptr, nullptr, outliers ? index.data() : nullptr, nullptr, kb,
                         outliers, rec.data());

      std::vector<uint8_t> want(size_t(r.bytes), 0);
      for (int64_t c = 0; c < r.chunks; ++c) {
        float largest = 0;
        int32_t sum = 0;
        int64_t end = std::min(kb, 32 * c + 32);
        for (int64_t i = 32 * c; i < end; ++i)
          largest = std::max(largest, std::abs(x[index[size_t(i)]]));
        float scale = largest / 127.0f;
        for (int64_t i = 32 * c; i < end; ++i) {
          int q = int(std::nearbyintf(x[index[size_t(i)]] / scale));
          want[size_t(i)] = uint8_t(int8_t(q));
          sum += q;
        }
        std::memcpy(&want[size_t(r.scaleOffset + 4 * c)], &scale, 4);
        std::memcpy(&want[size_t(r.sumOffset + 4 * c)], &sum, 4);
      }
      for (int64_t i = 0; i < outliers; ++i)
        std::memcpy(&want[size_t(r.outlierOffset + 4 * i)], &x[index[size_t(kb + i)]], 4);
      EXPECT_EQ(std::vector<uint8_t>(rec.begin(), rec.end()), want) << k << " " << outliers;
    }
}

TEST_P(Record, DegenerateGroups) {
  RecordLayout r = recordLayout(32, 0);
  Guarded<uint8_t> rec(static_cast<size_t>(r.bytes));
  Guarded<float> x(32);
  float scale;
  auto make = [&] {
    kernels->record_i8(x.data(), 32, 0, 0, nullptr, nullptr, nullptr, nullptr, 32, 0, rec.data());
    std::memcpy(&scale, rec.data() + r.scaleOffset, 4);
  };
  make();
  EXPECT_EQ(scale, 0);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(rec[size_t(i)], 0);
  // A scale of one unit of the smallest subnormal: 190 / 1 does not fit and is clipped.
  x[3] = 190 * 0x1p-149f;
  make();
  EXPECT_EQ(scale, 0x1p-149f);
  EXPECT_EQ(rec[3], 127);
  for (float bad : {NAN, INFINITY}) {
    x[3] = bad;
    make();
    EXPECT_FALSE(std::isfinite(scale));
  }
}

/// On a grid of the file's: its codes, saturated; NaN is the least; the padding is 0 and in no sum.
TEST_P(Record, TakesAGrid) {
  const float grid[2] = {0.5f, 40};
  constexpr int64_t k = 37;
  RecordLayout r = recordLayout(k, 0);
  Guarded<uint8_t> rec(static_cast<size_t>(r.bytes));
  Guarded<float> x(k);
  fillActivations({x.data(), x.size()}, 5);
  x[0] = 0;
  x[1] = 0.25f, x[2] = 0.75f; // ties go to even
  x[3] = 1e9f, x[4] = -1e9f, x[5] = NAN;
  kernels->record_i8(x.data(), k, 0, 0, nullptr, nullptr, nullptr, grid, k, 0, rec.data());
  int32_t sums[2] = {};
  for (int64_t i = 0; i < k; ++i) {
    float q = std::isnan(x[size_t(i)]) ? -128 : std::clamp(std::rint(x[size_t(i)] / 0.5f) + 40, -128.0f, 127.0f);
    EXPECT_EQ(int8_t(rec[size_t(i)]), int(q)) << i;
    sums[i / 32] += int(q);
  }
  EXPECT_EQ(int8_t(rec[1]), 40);
  EXPECT_EQ(int8_t(rec[2]), 42);
  for (size_t i = k; i < 64; ++i)
    EXPECT_EQ(rec[i], 0);
  for (size_t c = 0; c < 2; ++c) {
    float scale;
    int32_t sum;
    std::memcpy(&scale, rec.data() + r.scaleOffset + 4 * int64_t(c), 4);
    std::memcpy(&sum, rec.data() + r.sumOffset + 4 * int64_t(c), 4);
    EXPECT_EQ(scale, 1);
    EXPECT_EQ(sum, sums[c]);
  }
}

TEST_P(Record, NormsMatchFloat64) {
  for (int64_t k : {1, 5, 8, 33, 576, 4304})
    for (int64_t norm : {OTF_NORM_NONE, OTF_NORM_RMS, OTF_NORM_LAYER})
      for (bool affine : {false, true}) {
        Guarded<float> x(static_cast<size_t>(k)), gamma(static_cast<size_t>(k));
        Guarded<float> beta(static_cast<size_t>(k)), out(static_cast<size_t>(k));
        fillActivations({x.data(), x.size()}, 1);
        fillActivations({gamma.data(), gamma.size()}, 2);
        fillActivations({beta.data(), beta.size()}, 3);
        const float *g = affine ? gamma.data() : nullptr, *b = affine ? beta.data() : nullptr;
        std::vector<double> want = normed({x.data(), x.size()}, norm, 1e-5, g, b);
        kernels->norm(x.data(), k, norm, 1e-5f, g, b, out.data());
        Guarded<float> plain(static_cast<size_t>(plainRecordBytes(k) / 4));
        kernels->record_f32(x.data(), k, norm, 1e-5f, g, b, plain.data());
        RecordLayout r = recordLayout(k, 0);
        Guarded<uint8_t> rec(static_cast<size_t>(r.bytes));
        kernels->record_i8(x.data(), k, norm, 1e-5f, g, b, nullptr, nullptr, k, 0, rec.data());
        // A norm of one element divides by sqrt(0 + eps) where rounding of the mean shows most.
        double scale = norm == OTF_NORM_LAYER && k == 1 ? 1e5 : 1;
        for (int64_t i = 0; i < k; ++i) {
          double w = want[size_t(i)];
          double magnitude = std::abs(w) + (affine ? std::abs(beta[size_t(i)]) : 0) +
                             (affine ? std::abs(gamma[size_t(i)]) : 1);
          double bound = (double(k) / 32 + 16) * 0x1p-24 * magnitude * scale;
          ASSERT_NEAR(out[size_t(i)], w, bound) << k << " " << norm;
          ASSERT_EQ(out[size_t(i)], plain[size_t(i)]);
          float step;
          std::memcpy(&step, rec.data() + r.scaleOffset + i / 32 * 4, 4);
          ASSERT_NEAR(int8_t(rec[size_t(i)]) * double(step), w, bound + step * .500001);
        }
        for (size_t i = size_t(k); i < plain.size(); ++i)
          EXPECT_EQ(plain[i], 0);
        kernels->norm(x.data(), k, norm, 1e-5f, g, b, x.data());
        EXPECT_EQ(std::memcmp(x.data(), out.data(), size_t(k * 4)), 0);
      }
}

TEST_P(Record, RopeMatchesFloat64AndWorksInPlace) {
  for (auto [d, rotary] : {std::pair<int64_t, int64_t>{64, 64}, {80, 32}, {5, 4}, {7, 0}, {96, 96}}) {
    Guarded<float> x(static_cast<size_t>(d)), out(static_cast<size_t>(d));
    Guarded<float> cosine(static_cast<size_t>(rotary)), sine(static_cast<size_t>(rotary));
    fillActivations({x.data(), x.size()}, 1);
    fillActivations({cosine.data(), cosine.size()}, 2);
    fillActivations({sine.data(), sine.size()}, 3);
    kernels->rope(x.data(), d, rotary, cosine.data(), sine.data(), out.data());
    int64_t half = rotary / 2;
    for (int64_t i = 0; i < d; ++i) {
      double want = x[size_t(i)], magnitude = 0;
      if (i < rotary) {
        double other = i < half ? -double(x[size_t(i + half)]) : double(x[size_t(i - half)]);
        want = double(x[size_t(i)]) * cosine[size_t(i)] + other * sine[size_t(i)];
        magnitude = std::abs(double(x[size_t(i)]) * cosine[size_t(i)]) +
                    std::abs(other * sine[size_t(i)]);
      }
      EXPECT_NEAR(out[size_t(i)], want, magnitude * 0x1p-23);
    }
    kernels->rope(x.data(), d, rotary, cosine.data(), sine.data(), x.data());
    EXPECT_EQ(std::memcmp(x.data(), out.data(), size_t(d * 4)), 0);
  }
}

TEST_P(Record, AppendsRoundToNearestEven) {
  for (int64_t d : {1, 7, 8, 64, 83}) {
    int64_t rows = 3, xStride = d + 2, stride = d + 5;
    Guarded<float> x(size_t((rows - 1) * xStride + d)), wide(size_t((rows - 1) * stride + d));
    Guarded<uint16_t> narrow(wide.size());
    fillActivations({x.data(), x.size()}, unsigned(d));
    x[0] = 1e6f; // becomes the largest that f16 has
    kernels->append_f32(x.data(), xStride, rows, d, wide.data(), stride);
    kernels->append_f16(x.data(), xStride, rows, d, narrow.data(), stride);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < d; ++i) {
        float value = x[size_t(row * xStride + i)];
        EXPECT_EQ(wide[size_t(row * stride + i)], value);
        EXPECT_EQ(narrow[size_t(row * stride + i)], floatToHalf(std::clamp(value, -65504.0f, 65504.0f)));
      }
    EXPECT_EQ(wide[0 + size_t(rows > 1 ? d : 0)], 0) << "wrote between rows";
  }
}

OTF_INSTANTIATE(Record);
