// SPDX-License-Identifier: Apache-2.0
//
// What every kernel of the device library stands on: fixed-width types, the argument block, 16-bit
// floats, the few instructions that have no C++ spelling, and reductions. NVRTC compiles this
// library alone: no header of CUDA or of the host is included, because a target machine may have
// the NVRTC library and nothing else. The files are pasted in front of the generated entries in
// the order Prelude, Codec, Norm, Record, Linear, Embedding, Rope, Attention, Append, Map.
//
// Every kernel runs blocks of kThreads threads in x, and loops over its work with the grid as
// stride, so any grid is right and a captured graph outlives a change of sizes.

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
OTF_DEVICE float4 load4(const float *p) { return __ldg(reinterpret_cast<const float4 *>(p)); }
OTF_DEVICE float4 load4(const half_t *p) {
  uint2 v = __ldg(reinterpret_cast<const uint2 *>(p));
  return make_float4(toFloat(half_t{uint16_t(v.x)}), toFloat(half_t{uint16_t(v.x >> 16)}),
                     toFloat(half_t{uint16_t(v.y)}), toFloat(half_t{uint16_t(v.y >> 16)}));
}

// Reductions. The order of additions depends on the launch only, so results repeat bit for bit.
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
/// Sum over the block, the same in every thread. `shared`: kWarps floats.
OTF_DEVICE float blockSum(float x, float *shared) {
  x = warpSum(x);
  __syncthreads(); // the last reader of `shared` is done
  if ((threadIdx.x & 31) == 0)
    shared[threadIdx.x >> 5] = x;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    sum += shared[w];
  return sum;
}

// Programmatic dependent launch (sm_90 and later, when the launch asks for it): a kernel may start
// while its predecessor drains, and waits here before it reads what that one wrote.
OTF_DEVICE void waitForInputs() {
#if defined(OTF_PDL) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
OTF_DEVICE void releaseDependents() {
#if defined(OTF_PDL) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace otf
