// SPDX-License-Identifier: Apache-2.0
//
// Scalar functions against libm in double, over bit patterns of the whole range of f32.
#include "KernelLibrary.h"

#include <bit>
#include <cmath>

using namespace otf::test;

namespace {

class Math : public KernelTest {
protected:
  /// The largest error in units in the last place of the result.
  template <typename Reference> double worst(float (*f)(float), Reference reference) {
    double worst = 0;
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 1009) {
      float x = std::bit_cast<float>(uint32_t(bits));
      double want = reference(double(x));
      float rounded = float(want), got = f(x);
      if (std::isnan(rounded)) {
        EXPECT_TRUE(std::isnan(got)) << x;
        continue;
      }
      if (std::isinf(rounded)) {
        EXPECT_EQ(got, rounded) << x;
        continue;
      }
      double ulp = std::ldexp(1.0, std::max(std::ilogb(rounded == 0 ? 1e-45f : rounded), -126) - 23);
      double error = std::abs(got - want) / ulp;
      EXPECT_LT(error, 4) << "at " << x;
      worst = std::max(worst, error);
    }
    return worst;
  }
};

} // namespace

TEST_P(Math, StayWithinTwoUlps) {
  double e = worst(kernels->exp, [](double x) { return std::exp(x); });
  double l = worst(kernels->log, [](double x) { return std::log(x); });
  double t = worst(kernels->tanh, [](double x) { return std::tanh(x); });
  double r = worst(kernels->erf, [](double x) { return std::erf(x); });
  EXPECT_LE(e, 2);
  EXPECT_LE(l, 2);
  EXPECT_LE(t, 2);
  EXPECT_LE(r, 2);
  std::cout << "ulps: exp " << e << " log " << l << " tanh " << t << " erf " << r << "\n";
}

TEST_P(Math, TakeSpecialValues) {
  EXPECT_EQ(kernels->exp(-INFINITY), 0);
  EXPECT_EQ(kernels->exp(0), 1);
  EXPECT_EQ(kernels->exp(INFINITY), INFINITY);
  EXPECT_EQ(kernels->log(0), -INFINITY);
  EXPECT_EQ(kernels->log(-0.0f), -INFINITY);
  EXPECT_EQ(kernels->log(1), 0);
  EXPECT_TRUE(std::isnan(kernels->log(-1)));
  EXPECT_EQ(kernels->tanh(INFINITY), 1);
  EXPECT_EQ(kernels->erf(-INFINITY), -1);
  EXPECT_TRUE(std::signbit(kernels->tanh(-0.0f)));
  EXPECT_TRUE(std::signbit(kernels->erf(-0.0f)));
  for (auto f : {kernels->exp, kernels->log, kernels->tanh, kernels->erf, kernels->sin, kernels->cos})
    EXPECT_TRUE(std::isnan(f(NAN)));
  EXPECT_EQ(kernels->sin(1), sinf(1));
  EXPECT_EQ(kernels->cos(1), cosf(1));
}

OTF_INSTANTIATE(Math);
