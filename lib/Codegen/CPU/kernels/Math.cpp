// SPDX-License-Identifier: Apache-2.0
//
// The scalar functions under the names that generated code calls. always_inline, because a loop
// over a call does not vectorise.
#include "Math.h"
#include "Kernels.h"

extern "C" float sinf(float);
extern "C" float cosf(float);

#define OTF_INLINE __attribute__((always_inline))

OTF_INLINE float otf_exp(float x) { return otf::cpu::exp(x); }
OTF_INLINE float otf_log(float x) { return otf::cpu::log(x); }
OTF_INLINE float otf_tanh(float x) { return otf::cpu::tanh(x); }
OTF_INLINE float otf_erf(float x) { return otf::cpu::erf(x); }
OTF_INLINE float otf_sin(float x) {
  return __builtin_fabsf(x) <= otf::cpu::kTurnsLimit ? otf::cpu::sinTurned(x, 0) : sinf(x);
}
OTF_INLINE float otf_cos(float x) {
  return __builtin_fabsf(x) <= otf::cpu::kTurnsLimit ? otf::cpu::sinTurned(x, 1) : cosf(x);
}
