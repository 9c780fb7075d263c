// SPDX-License-Identifier: Apache-2.0
//
// The encoder of planes<w,k> (Planes.h): a search for the k circular words whose 32 decoded weights are nearest to 32 targets. Bits
// of neighbours overlap, so the words are a closed walk in a trellis of 2^((w−1)k) states with 2^k branches each.
//
// - With few states (planes3x1, 3x2, 4x1, 4x2) every state is tried as the first one, and the walk found is the best there is.
// - With more, an open search says the state at a column, and a search that is closed there gives a walk; that from two columns, and the
//   better walk (TrellisNarrow.h).
//
// Costs are integers of 16 bits, or of 8 with many states, and many blocks are searched at once, one a lane. A block's result depends on that block only: not on its
// neighbours, the number of threads or the machine.
#ifndef OTF_ENCODING_TRELLIS_H
#define OTF_ENCODING_TRELLIS_H

#include "Layout.h"

#include <memory>

namespace otf {

/// Blocks of 32 columns to encode: those of many rows at the same columns, or of one row, in any mixture.
struct TrellisBlocks {
  int64_t count = 0;
  const float *targets = nullptr; ///< f32[32] of block b at targets + b · targetStride; finite
  int64_t targetStride = 32;      ///< floats
  const float *scales = nullptr;  ///< f32[count], not negative: weight = scale · (sum − offset); a scale of 0 gives words of 0
  /// What the square of an error counts in each column, not negative, or null for 1: f32[32] of block b at weights + b · weightStride;
  /// with a stride of 0 all blocks have the same. Only ratios within a block matter.
  const float *weights = nullptr;
  int64_t weightStride = 0;
  bool draft = false;           ///< one search from one place: errors are a few percent larger, and it takes a fraction of the time
  uint32_t *words = nullptr;    ///< out: u32[count][k]
  float *decoded = nullptr;     ///< out: f32[32] of block b at decoded + b · decodedStride, exact; or null
  int64_t decodedStride = 32;
};

/// Memory and tables of a search. Not for two threads at once.
class TrellisEncoder {
public:
  /// How wide to compute. Results are the same.
  enum class Level { Baseline, Avx2 };
  static Level best();

  explicit TrellisEncoder(EncodingKind planes, Level level = best());
  ~TrellisEncoder();
  void encode(const TrellisBlocks &blocks);

  class Engine;

private:
  std::unique_ptr<Engine> engine;
};

/// The scale to start with for weights of this mean square: that which a Gaussian of the variance wants.
double planesScale(EncodingKind kind, double meanSquare);

/// As encodeTile in Codec.h, for one of the planes kinds. Scales: that of the group's deviation gives a draft, whose least-squares
/// scale the group is searched with; the better of both is kept.
EncodeStatus encodePlanesTile(EncodingKind kind, const WeightLayout &layout, const uint32_t *index, const float *weights,
                              int64_t rowStride, int64_t rows, uint8_t *tile);

/// The search in float64, one block at a time and every state tried first, from the definition: what the fast one is tested against.
/// Returns Σ weight · error² and the words of the best walk.
double searchTrellis(EncodingKind kind, const float *targets, double scale, const float *weights, uint32_t *words);

} // namespace otf

#endif // OTF_ENCODING_TRELLIS_H
