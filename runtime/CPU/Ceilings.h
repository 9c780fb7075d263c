// SPDX-License-Identifier: Apache-2.0
//
// What the machine could do at best: bytes read from memory and integer products a second, measured
// here and now with as many threads as a session has. A step's share of these says how much is left
// to gain in it; figures of another machine or another moment say nothing.
#ifndef OTF_RUNTIME_CPU_CEILINGS_H
#define OTF_RUNTIME_CPU_CEILINGS_H

#include "runtime/Status.h"

#include <cstddef>

namespace otf::runtime {

struct Ceilings {
  double readBytes = 0;    // a second, of memory far larger than the caches
  double integerMacs = 0;  // products of bytes, summed in 32 bits, a second, all in registers; 0: not known
  const char *integers;    // which instruction that is
};

/// `threads`: 0 for all available cores. Takes about a quarter of a second and 256 MiB, which it gives back.
Result<Ceilings> measureCeilings(unsigned threads);
/// Ceilings::readBytes alone, of `bytes` of memory: a multiple of 16 MiB, and at least twice that.
Result<double> measureReadBandwidth(unsigned threads, size_t bytes);

} // namespace otf::runtime

#endif // OTF_RUNTIME_CPU_CEILINGS_H
