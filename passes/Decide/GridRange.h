// SPDX-License-Identifier: Apache-2.0
//
// The range of a grid of 256 values that loses least, from a histogram.
#ifndef OTF_PASSES_DECIDE_GRIDRANGE_H
#define OTF_PASSES_DECIDE_GRIDRANGE_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace otf {

/// As `otf.on_grid` has it: codes rint(x / scale) + zero, from -128 to 127.
struct Grid {
  float scale, zero;
};

/// `histogram` is that of lib/Analysis/Statistics.h, `least` <= 0 <= `largest` the range of all values.
Grid chooseGrid(llvm::ArrayRef<int64_t> histogram, double least, double largest);

/// For values that a rotation mixes, which no histogram shows: `meanSquare` is that of all of them, before as after.
Grid rotatedGrid(double meanSquare);

} // namespace otf

#endif // OTF_PASSES_DECIDE_GRIDRANGE_H
