// SPDX-License-Identifier: Apache-2.0
//
// What every kernel of the device library stands on: fixed-width types, the argument block, 16-bit
// floats, the few instructions that have no C++ spelling, and reductions. NVRTC compiles this
// library alone: no header of CUDA or of the host is included, because a target machine may have
// the NVRTC library and nothing else. The files are pasted in front of the generated entries in
// the order of CMakeLists.txt, this one first.
//
// Every kernel runs blocks of kThreads threads in x (those of one row may have more: OneRow.cuh), and loops over its work with the
// grid as stride, so any grid is right and a captured graph outlives a change of sizes.
//
// Nothing is contracted (--fmad=false). The arithmetic of what may end in int8 activations is
// canonical: the same operations in the same order as lib/Codegen/CPU/kernels, whatever the launch.

#define OTF_DEVICE static __device__ __forceinline__

namespace otf {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
static_assert(sizeof(int64_t) == 8 && sizeof(void *) == 8, "the plan format is 64-bit");

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
/// Second argument of __launch_bounds__: two blocks a multiprocessor, so at most 128 registers.
constexpr int kBlocks = 2;
constexpr uint32_t kAllLanes = 0xffffffffu;

/// The one parameter of a kernel (include/otf/KernelABI.h). `dims` is device memory.
template <int N> struct Args {
  void *buffers[N];
  const int64_t *dims;
};

/// Storage of a 16-bit float: a bit pattern that only the conversions below interpret.
struct half_t {
  uint16_t bits;
};
struct bhalf_t {
  uint16_t bits;
};

constexpr int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t divideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }
template <class T> __device__ __forceinline__ constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T> __device__ __forceinline__ constexpr T larger(T a, T b) { return a < b ? b : a; }

// Bits and numbers.
template <class To, class From> OTF_DEVICE To bitsOf(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  union {
    From from;
    To to;
  } u = {from};
  return u.to;
}
OTF_DEVICE float toFloat(float x) { return x; }
OTF_DEVICE float toFloat(half_t x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}
OTF_DEVICE float toFloat(int8_t x) { return float(x); }
OTF_DEVICE float toFloat(bhalf_t x) { return __uint_as_float(uint32_t(x.bits) << 16); }
template <class T> struct Float {}; // fromFloat needs the target as a tag: no return overloads
OTF_DEVICE float fromFloat(float x, Float<float>) { return x; }
OTF_DEVICE half_t fromFloat(float x, Float<half_t>) {
  half_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
OTF_DEVICE bhalf_t fromFloat(float x, Float<bhalf_t>) {
  uint32_t bits = __float_as_uint(x);
  // Round to nearest even; a NaN keeps its top bits and one more, or it could become infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {uint16_t(bits >> 16 | 0x40u)};
  return {uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
template <class T> OTF_DEVICE T fromFloat(float x) { return fromFloat(x, Float<T>()); }

/// prmt.b32 in its raw form. __byte_perm masks its selectors again, an instruction in eight.
OTF_DEVICE uint32_t permuteBytes(uint32_t low, uint32_t high, uint32_t selectors) {
  uint32_t r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(selectors));
  return r;
}
/// c + sum of the products of four signed bytes.
OTF_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t c) {
  return __dp4a(int32_t(a), int32_t(b), c);
}

// Four values a load. The address is a multiple of four elements.
OTF_DEVICE float4 load4(const float *p) { return *reinterpret_cast<const float4 *>(p); }
OTF_DEVICE float4 load4(const half_t *p) {
  const uint2 v = *reinterpret_cast<const uint2 *>(p);
  return make_float4(toFloat(half_t{uint16_t(v.x)}), toFloat(half_t{uint16_t(v.x >> 16)}),
                     toFloat(half_t{uint16_t(v.y)}), toFloat(half_t{uint16_t(v.y >> 16)}));
}
OTF_DEVICE float4 load4(const int8_t *p) {
  const uint32_t v = *reinterpret_cast<const uint32_t *>(p);
  return make_float4(float(int8_t(v)), float(int8_t(v >> 8)), float(int8_t(v >> 16)), float(int8_t(v >> 24)));
}

// exp, log, tanh, erf, sin, cos: lib/Codegen/CPU/kernels/Math.h operation for operation, because what they
// give may end in int8 activations, and there the last bit matters. That file has the reasons and
// the errors of the polynomials.
constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-06f;

OTF_DEVICE float exp(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  constexpr float magic = 12582912.0f; // 1.5 * 2^23
  const float shifted = fmaf(x, 1.44269504088896341f, magic);
  const float n = shifted - magic;
  float r = fmaf(n, -kLn2High, x);
  r = fmaf(n, -kLn2Low, r);
  float p = 1.395060033e-03f;
  p = fmaf(p, r, 8.368953708e-03f);
  p = fmaf(p, r, 4.166620417e-02f);
  p = fmaf(p, r, 1.666651830e-01f);
  p = fmaf(p, r, 5.000000096e-01f);
  p = fmaf(p, r * r, r) + 1.0f;
  const int32_t exponent = __float_as_int(shifted) - __float_as_int(magic);
  const int32_t half = exponent >> 1;
  return p * __int_as_float((half + 127) << 23) * __int_as_float((exponent - half + 127) << 23);
}

OTF_DEVICE float log(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const uint32_t bits = __float_as_uint(subnormal ? x * 33554432.0f : x);
  const int32_t e = int32_t(bits - 0x3f3504f3u) >> 23;
  const float f = __uint_as_float(bits - (uint32_t(e) << 23)) - 1.0f;
  const float exponent = float(e - (subnormal ? 25 : 0));
  float p = 6.746602432e-02f;
  p = fmaf(p, f, -1.167564228e-01f);
  p = fmaf(p, f, 1.188817461e-01f);
  p = fmaf(p, f, -1.240559124e-01f);
  p = fmaf(p, f, 1.421955088e-01f);
  p = fmaf(p, f, -1.666799568e-01f);
  p = fmaf(p, f, 2.000211873e-01f);
  p = fmaf(p, f, -2.500000960e-01f);
  p = fmaf(p, f, 3.333331260e-01f);
  const float square = f * f;
  float tail = fmaf(p * f, square, exponent * kLn2Low);
  tail = fmaf(-0.5f, square, tail);
  float result = fmaf(exponent, kLn2High, f + tail);
  const float infinity = __int_as_float(0x7f800000);
  result = x == infinity ? infinity : result;
  result = x == 0 ? -infinity : result;
  return x >= 0 ? result : __int_as_float(0x7fc00000);
}

OTF_DEVICE float tanh(float x) {
  const float a = fabsf(x), s = x * x;
  float p = 2.147523252e-03f;
  p = fmaf(p, s, -8.182659532e-03f);
  p = fmaf(p, s, 2.170296155e-02f);
  p = fmaf(p, s, -5.394720330e-02f);
  p = fmaf(p, s, 1.333320976e-01f);
  p = fmaf(p, s, -3.333333091e-01f);
  const float small = fmaf(p * s, a, a);
  const float large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return copysignf(a < 0.625f ? small : large, x);
}

OTF_DEVICE float erf(float x) {
  const float a = fabsf(x), s = x * x;
  float p = -5.965797630e-04f;
  p = fmaf(p, s, 4.988306412e-03f);
  p = fmaf(p, s, -2.676332942e-02f);
  p = fmaf(p, s, 1.128172673e-01f);
  p = fmaf(p, s, -3.761248529e-01f);
  p = fmaf(p, s, 1.283791483e-01f);
  const float small = fmaf(p, x, x);
  const float t = a > 4.0f ? 4.0f : a;
  float q = -1.959320079e-04f;
  q = fmaf(q, t, 3.043172310e-03f);
  q = fmaf(q, t, -2.222676193e-02f);
  q = fmaf(q, t, 1.039313062e-01f);
  q = fmaf(q, t, 6.371825413e-01f);
  q = fmaf(q, t, 1.127675471e+00f);
  q = fmaf(q, t, 1.957093533e-04f);
  const float large = copysignf(1.0f - exp(-q), x);
  return a < 0.925f ? small : large;
}

OTF_DEVICE float sinTurned(float x, int32_t turn) {
  constexpr double magic = 6755399441055744.0; // 1.5 * 2^52
  const double shifted = ::fma(double(x), 0.63661977236758134308, magic);
  const double n = shifted - magic;
  const int32_t quarter = int32_t(__double_as_longlong(shifted)) + turn;
  // pi/2 in two parts.
  double r = ::fma(n, -1.5707963267948965580, double(x));
  r = ::fma(n, -6.1232339957367660e-17, r);
  // Degree 13 and 14 (fdlibm's coefficients) on |r| <= pi/4: far below half an ulp of f32.
  const double s = r * r;
  double p = 1.58969099521155010221e-10;
  p = ::fma(p, s, -2.50507602534068634195e-08);
  p = ::fma(p, s, 2.75573137070700676789e-06);
  p = ::fma(p, s, -1.98412698298579493134e-04);
  p = ::fma(p, s, 8.33333333332248946124e-03);
  p = ::fma(p, s, -1.66666666666666324348e-01);
  const double sine = ::fma(p * s, r, r);
  double q = -1.13596475577881948265e-11;
  q = ::fma(q, s, 2.08757232129817482790e-09);
  q = ::fma(q, s, -2.75573143513906633035e-07);
  q = ::fma(q, s, 2.48015872894767294178e-05);
  q = ::fma(q, s, -1.38888888888741095749e-03);
  q = ::fma(q, s, 4.16666666666666019037e-02);
  q = ::fma(q, s, -0.5);
  const double cosine = ::fma(q, s, 1.0);
  const double value = quarter & 1 ? cosine : sine;
  return float(quarter & 2 ? -value : value);
}
// Beyond 2^30 the library's.
OTF_DEVICE float sin(float x) { return fabsf(x) <= 1073741824.0f ? sinTurned(x, 0) : sinf(x); }
OTF_DEVICE float cos(float x) { return fabsf(x) <= 1073741824.0f ? sinTurned(x, 1) : cosf(x); }

// Reductions. The order of additions is that of the CPU kernels too: distances 16, 8, 4, 2, 1 in a
// warp, then the warps in order.
OTF_DEVICE float warpSum(float x) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    x += __shfl_xor_sync(kAllLanes, x, o);
  return x;
}
OTF_DEVICE float warpMax(float x) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, o));
  return x;
}
// Of integers no order matters, and since sm_80 each is one instruction.
OTF_DEVICE int warpTotal(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAllLanes, x);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1)
    x += __shfl_xor_sync(kAllLanes, x, o);
  return x;
#endif
}
OTF_DEVICE uint32_t warpLargest(uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, x);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1)
    x = larger(x, __shfl_xor_sync(kAllLanes, x, o));
  return x;
#endif
}
/// Sum of what the first kThreads threads of a block have, the same in every thread. `shared`: kWarps floats.
OTF_DEVICE float blockSum(float x, float *shared) {
  x = warpSum(x);
  __syncthreads(); // the last reader of `shared` is done
  if ((threadIdx.x & 31) == 0 && threadIdx.x < kThreads)
    shared[threadIdx.x >> 5] = x;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    sum += shared[w];
  return sum;
}

// Programmatic dependent launch (sm_90 and later): a kernel starts when all blocks of its predecessor have begun, and waits before
// it reads what that one wrote. Until then it may do what depends on nothing: read sizes, bring weights to the second-level
// cache. What a kernel waits for is the end of its predecessor, which has waited for its own, and so on; so every kernel waits,
// whether it reads anything or not. What other kernels write is read by ordinary loads: __ldg may find what a first-level
// cache held before the wait.
OTF_DEVICE void waitForInputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
OTF_DEVICE void releaseDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Steps that share a launch have blocks of it each: `count` blocks, of which this one is number `index`.
struct Blocks {
  int64_t index, count;
};
OTF_DEVICE Blocks allBlocks() { return {int64_t(blockIdx.x), int64_t(gridDim.x)}; }

OTF_DEVICE void prefetchLine(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

} // namespace otf

/// Says that the kernels of a module wait for their inputs: who launches them may let them begin early.
extern "C" __device__ const int otf_waits_for_inputs = 1;
