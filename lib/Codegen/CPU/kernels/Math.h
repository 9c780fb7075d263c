// SPDX-License-Identifier: Apache-2.0
//
// The device library has a copy of these, operation for operation (CUDA/device/Prelude.cuh): change
// both. exp, log, tanh and erf without branches or tables, so that loops over them vectorise. Each
// reduces its argument to a short interval and takes a polynomial there. The polynomials are
// weighted minimax fits (Lawson iteration on Chebyshev nodes), whose own error, given beside each,
// is far below half an ulp of f32 (6e-8); what remains is rounding.
#ifndef OTF_CODEGEN_CPU_MATH_H
#define OTF_CODEGEN_CPU_MATH_H

#include <stdint.h>

namespace otf::cpu {

inline float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bitsOf(float value) { return __builtin_bit_cast(uint32_t, value); }

// ln 2 in two parts: the first has 15 bits, so that its product with an exponent is exact.
inline constexpr float kLn2High = 0.693145751953125f;
inline constexpr float kLn2Low = 1.428606765330187e-06f;

__attribute__((always_inline)) inline float exp(float x) {
  // Below −104 the result rounds to 0, above 89 to infinity. Written so that NaN passes.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  // Adding 1.5·2^23 rounds to an integer, which then is in the low bits.
  constexpr float magic = 0x1.8p23f;
  float shifted = __builtin_fmaf(x, 1.44269504088896341f, magic);
  float n = shifted - magic;
  float r = __builtin_fmaf(n, -kLn2High, x);
  r = __builtin_fmaf(n, -kLn2Low, r);
  // (e^r − 1 − r) / r² on |r| ≤ ln2 / 2; 3.2e-9 of e^r.
  float p = 1.395060033e-03f;
  p = __builtin_fmaf(p, r, 8.368953708e-03f);
  p = __builtin_fmaf(p, r, 4.166620417e-02f);
  p = __builtin_fmaf(p, r, 1.666651830e-01f);
  p = __builtin_fmaf(p, r, 5.000000096e-01f);
  p = __builtin_fmaf(p, r * r, r) + 1.0f;
  // 2^n in two factors, as n reaches from −150 to 128 and beyond what one float exponent holds.
  int32_t exponent = int32_t(bitsOf(shifted) - bitsOf(magic));
  int32_t half = exponent >> 1;
  return p * floatOf(uint32_t(half + 127) << 23) *
         floatOf(uint32_t(exponent - half + 127) << 23);
}

__attribute__((always_inline)) inline float log(float x) {
  bool subnormal = x < 0x1p-126f;
  uint32_t bits = bitsOf(subnormal ? x * 0x1p25f : x);
  // x = 2^e · (1 + f) with 1 + f in [√½, √2).
  int32_t e = int32_t(bits - 0x3f3504f3) >> 23;
  float f = floatOf(bits - (uint32_t(e) << 23)) - 1.0f;
  float exponent = float(e - (subnormal ? 25 : 0));
  // (log(1 + f) − f + f²/2) / f³; 7.5e-10 of log(1 + f).
  float p = 6.746602432e-02f;
  p = __builtin_fmaf(p, f, -1.167564228e-01f);
  p = __builtin_fmaf(p, f, 1.188817461e-01f);
  p = __builtin_fmaf(p, f, -1.240559124e-01f);
  p = __builtin_fmaf(p, f, 1.421955088e-01f);
  p = __builtin_fmaf(p, f, -1.666799568e-01f);
  p = __builtin_fmaf(p, f, 2.000211873e-01f);
  p = __builtin_fmaf(p, f, -2.500000960e-01f);
  p = __builtin_fmaf(p, f, 3.333331260e-01f);
  float square = f * f;
  float tail = __builtin_fmaf(p * f, square, exponent * kLn2Low);
  tail = __builtin_fmaf(-0.5f, square, tail);
  float result = __builtin_fmaf(exponent, kLn2High, f + tail);
  constexpr float infinity = __builtin_inff();
  result = x == infinity ? infinity : result;
  result = x == 0 ? -infinity : result;
  return x >= 0 ? result : __builtin_nanf("");
}

__attribute__((always_inline)) inline float tanh(float x) {
  float a = __builtin_fabsf(x), s = x * x;
  // (tanh x − x) / x³ in x², |x| ≤ 0.625; 1.5e-10 of tanh x.
  float p = 2.147523252e-03f;
  p = __builtin_fmaf(p, s, -8.182659532e-03f);
  p = __builtin_fmaf(p, s, 2.170296155e-02f);
  p = __builtin_fmaf(p, s, -5.394720330e-02f);
  p = __builtin_fmaf(p, s, 1.333320976e-01f);
  p = __builtin_fmaf(p, s, -3.333333091e-01f);
  float small = __builtin_fmaf(p * s, a, a);
  float large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? small : large, x);
}

__attribute__((always_inline)) inline float erf(float x) {
  float a = __builtin_fabsf(x), s = x * x;
  // erf x / x − 1 in x², |x| ≤ 0.925; 1.7e-8 of erf x.
  float p = -5.965797630e-04f;
  p = __builtin_fmaf(p, s, 4.988306412e-03f);
  p = __builtin_fmaf(p, s, -2.676332942e-02f);
  p = __builtin_fmaf(p, s, 1.128172673e-01f);
  p = __builtin_fmaf(p, s, -3.761248529e-01f);
  p = __builtin_fmaf(p, s, 1.283791483e-01f);
  float small = __builtin_fmaf(p, x, x);
  // −log(1 − erf t) for 0.92 ≤ t ≤ 4; 1.5e-9 of erf t. From 4 on erf rounds to 1.
  float t = a > 4.0f ? 4.0f : a;
  float q = -1.959320079e-04f;
  q = __builtin_fmaf(q, t, 3.043172310e-03f);
  q = __builtin_fmaf(q, t, -2.222676193e-02f);
  q = __builtin_fmaf(q, t, 1.039313062e-01f);
  q = __builtin_fmaf(q, t, 6.371825413e-01f);
  q = __builtin_fmaf(q, t, 1.127675471e+00f);
  q = __builtin_fmaf(q, t, 1.957093533e-04f);
  float large = __builtin_copysignf(1.0f - exp(-q), x);
  return a < 0.925f ? small : large;
}

// pi/2 in two parts; n * pi/2 leaves x with an error below 2^-76 up to n = 2^30.
inline constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
/// Up to here sine and cosine are ours; beyond, libm's.
inline constexpr float kTurnsLimit = 0x1p30f;

/// sin(x + turn · pi/2), |x| <= kTurnsLimit, in f64 and rounded once: rotary tables multiply large
/// positions, and both back ends must agree on them.
__attribute__((always_inline)) inline float sinTurned(float x, int32_t turn) {
  constexpr double magic = 0x1.8p52;
  double shifted = __builtin_fma(double(x), 0.63661977236758134308, magic);
  double n = shifted - magic;
  int32_t quarter = int32_t(__builtin_bit_cast(uint64_t, shifted)) + turn;
  double r = __builtin_fma(n, -kHalfPiHigh, double(x));
  r = __builtin_fma(n, -kHalfPiLow, r);
  // Degree 13 and 14 (fdlibm's coefficients) on |r| <= pi/4: far below half an ulp of f32.
  double s = r * r;
  double p = 1.58969099521155010221e-10;
  p = __builtin_fma(p, s, -2.50507602534068634195e-08);
  p = __builtin_fma(p, s, 2.75573137070700676789e-06);
  p = __builtin_fma(p, s, -1.98412698298579493134e-04);
  p = __builtin_fma(p, s, 8.33333333332248946124e-03);
  p = __builtin_fma(p, s, -1.66666666666666324348e-01);
  double sine = __builtin_fma(p * s, r, r);
  double q = -1.13596475577881948265e-11;
  q = __builtin_fma(q, s, 2.08757232129817482790e-09);
  q = __builtin_fma(q, s, -2.75573143513906633035e-07);
  q = __builtin_fma(q, s, 2.48015872894767294178e-05);
  q = __builtin_fma(q, s, -1.38888888888741095749e-03);
  q = __builtin_fma(q, s, 4.16666666666666019037e-02);
  q = __builtin_fma(q, s, -0.5);
  double cosine = __builtin_fma(q, s, 1.0);
  double value = quarter & 1 ? cosine : sine;
  return float(quarter & 2 ? -value : value);
}

} // namespace otf::cpu

#endif // OTF_CODEGEN_CPU_MATH_H
