// SPDX-License-Identifier: Apache-2.0
#include "lib/Import/SyntheticValues.h"

#include "llvm/Support/xxhash.h"

#include <cmath>

namespace otf {

double gaussianQuantile(double p) {
  constexpr double low = 0.02425;
  auto tail = [](double q) {
    return (((((-7.784894002430293e-03 * q - 3.223964580411365e-01) * q - 2.400758277161838e+00) * q - 2.549732539343734e+00) * q +
             4.374664141464968e+00) * q + 2.938163982698783e+00) /
           ((((7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996e+00) * q + 3.754408661907416e+00) * q + 1.0);
  };
  if (p < low)
    return tail(std::sqrt(-2.0 * std::log(p)));
  if (p > 1.0 - low)
    return -tail(std::sqrt(-2.0 * std::log(1.0 - p)));
  const double q = p - 0.5, r = q * q;
  return (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r + 1.383577518672690e+02) * r -
           3.066479806614716e+01) * r + 2.506628277459239e+00) * q /
         (((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r + 6.680131188771972e+01) * r -
           1.328068155288572e+01) * r + 1.0);
}

SyntheticValues::SyntheticValues(llvm::StringRef name, int64_t rows, int64_t columns) : stream(llvm::xxh3_64bits(name)) {
  if (rows > 1 && columns > 1) {
    deviation = float(1.0 / std::sqrt(double(columns)));
    return;
  }
  const bool isBias = name.contains_insensitive("bias");
  mean = isBias ? 0.0f : 1.0f;
  deviation = isBias ? 0.02f : 0.1f;
}

void SyntheticValues::make(int64_t first, int64_t count, float *out) const {
  for (int64_t i = 0; i < count; ++i) {
    // splitmix64 of the element's place in the tensor's stream.
    uint64_t bits = stream + uint64_t(first + i + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
    out[i] = mean + deviation * float(gaussianQuantile((double(bits >> 32) + 0.5) * 0x1p-32));
  }
}

} // namespace otf
