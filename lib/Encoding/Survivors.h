// SPDX-License-Identifier: Apache-2.0
//
// A search of the trellis of planes<w,k> (Planes.h) where errors of a block's columns are weighed
// together, as error feedback has them: 32 errors e lose e G eᵀ, and G is anything but diagonal
// where inputs share a direction.
//
// Problem: the Viterbi algorithm adds costs of single columns. Approach: with G = U D Uᵀ in the
// order in which columns are taken, the loss is Σ_n D_n (e_n + Σ_{m<n} e_m U_mn)², and what a
// column's bracket adds to its error is known to each survivor, the best walk into a state, which
// keeps what its errors ask of the columns to come ("per-survivor processing"). It is no longer
// exact: what a walk that was dropped would have asked is not looked at.
//
// Walks close as in Trellis.h: an open search that begins at column 16 says the state at column 0,
// a search that is closed there gives a walk, and another, closed at column 16 with the state of
// that walk, a second; the better one is taken.
#ifndef OTF_ENCODING_SURVIVORS_H
#define OTF_ENCODING_SURVIVORS_H

#include "BlockForm.h"
#include "Layout.h"

#include <memory>

namespace otf {

/// Memory of a search. Not for two threads at once; results are the same for either level.
class SurvivorEncoder {
public:
  enum class Level { Baseline, Avx2 };
  static Level best();

  explicit SurvivorEncoder(EncodingKind planes, Level level = best());
  ~SurvivorEncoder();

  /// Words whose sums are near `wanted`, f32[32], in units of a sum (target / scale + offset).
  /// Returns the form's cost() of them.
  float search(const BlockForm &form, const float *wanted, uint32_t *words);
  /// The same, in two thirds of the time, from words that are nearly right: walks pass where theirs
  /// does.
  float improve(const BlockForm &form, const float *wanted, uint32_t *words);

  class Engine;

private:
  std::unique_ptr<Engine> engine;
};

} // namespace otf

#endif // OTF_ENCODING_SURVIVORS_H
