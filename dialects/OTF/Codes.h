// SPDX-License-Identifier: Apache-2.0
//
// What otf-keep-given says of an otf.weight that linears multiply by activations on a grid of the file (`otf.on_grid`), as
// attributes. Sums of products of codes are integers, which f32 holds exactly below 2^24; so zero points and scales wait for the sum.
#ifndef OTF_DIALECTS_OTF_CODES_H
#define OTF_DIALECTS_OTF_CODES_H

#include "dialects/OTF/OTF.h"

#include <algorithm>
#include <cmath>

namespace otf {

/// f32[N]: the plan holds codes, of those of the file less their zero points, with scales of 1, and these are the scales of the rows. Only where a row has
/// one scale and no other reader wants the weight itself.
inline constexpr llvm::StringLiteral kRowScalesAttribute = "otf.row_scales";

/// f32[N]: Σ_k of each row as the plan holds it.
inline constexpr llvm::StringLiteral kRowSumsAttribute = "otf.row_sums";

/// unit, of an otf.weight with row scales: Σ |codes| · 128 of no row exceeds 2^24, so that sums of products with bytes are exact in f32, in any order. Of an
/// otf.linear, by otf-encode: its weight is one of these, and its record has scales of 1, so that a kernel may add integers.
inline constexpr llvm::StringLiteral kExactSumsAttribute = "otf.exact_sums";

/// Of an otf.linear, array<f32: scale, zero>: otf-choose-grids decided that it reads its input on this grid.
inline constexpr llvm::StringLiteral kGridAttribute = "otf.grid";

/// Of an otf.weight with outliers: by what otf-choose-outliers ranked its columns.
inline constexpr llvm::StringLiteral kScoredByAttribute = "otf.scored_by";

/// unit, of an otf.weight: otf-keep-nonfinite found NaN or an infinity in it, so it is f32 and meets its inputs as they are.
inline constexpr llvm::StringLiteral kNonfiniteAttribute = "otf.nonfinite";

/// Whether a row of codes of these magnitudes has exact sums.
inline bool hasExactSums(double magnitudes) { return magnitudes * 128 <= double(1 << 24); }
/// Of an otf.weight, f64: what the model loses by this weight's errors, as otf-spend-budget expects. Of a module, in words: all of them.
inline constexpr llvm::StringLiteral kForetoldAttribute = "otf.foretold";

/// The code of a weight that has a row scale: of which the plan holds Σ codes · x, and otf.row_sums are sums.
inline double codeOf(float weight, float scale) { return std::clamp(std::rint(double(weight) / double(scale)), -127.0, 127.0); }

} // namespace otf

#endif // OTF_DIALECTS_OTF_CODES_H
