// SPDX-License-Identifier: Apache-2.0
//
// Blocks of a model are what repeats: the shapes of the weights that linears read, in program
// order, are a word over an alphabet of shapes; its longest part of the form b b b … is the stack
// of blocks, and b one of them. No name says where blocks begin.
#ifndef OTF_PASSES_DECIDE_REPETITION_H
#define OTF_PASSES_DECIDE_REPETITION_H

#include "llvm/ADT/ArrayRef.h"

namespace otf {

struct Repetition {
  size_t start = 0, period = 0, count = 0;
};

/// The longest repetition in `word`; of equal ones that with the shortest period.
template <typename T> Repetition longestRepetition(llvm::ArrayRef<T> word) {
  Repetition best;
  for (size_t period = 1; 2 * period <= word.size(); ++period) {
    size_t run = 0; // places before `i` that are like those a period later
    for (size_t i = 0; i + period <= word.size(); ++i) {
      bool like = i + period < word.size() && word[i] == word[i + period];
      if (like) {
        ++run;
        continue;
      }
      size_t count = run / period + 1;
      if (count > 1 && count * period > best.count * best.period)
        best = {i - run, period, count};
      run = 0;
    }
  }
  return best;
}

} // namespace otf

#endif // OTF_PASSES_DECIDE_REPETITION_H
