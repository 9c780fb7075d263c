// SPDX-License-Identifier: Apache-2.0
//
// The operators of the otf dialect on whole tensors, in double, written from their descriptions in
// OTFOps.td and not for speed. Names of shapes are those of that file. An error is a clause that says
// which operand does not fit.
#ifndef OTF_LIB_REFERENCE_OPERATORS_H
#define OTF_LIB_REFERENCE_OPERATORS_H

#include "dialects/OTF/OTF.h"
#include "lib/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace otf::reference {

using Result = llvm::Expected<Tensor>;

/// x Wᵀ + bias, before an epilogue. x has floats, or records where it has integers.
Result linear(const Tensor &x, const Matrix &w, const Tensor *bias);

/// Rows of windows of `columns` elements at each output position, from x or its records [N, S..., C]; `result` is the shape
/// of the product.
Result windows(const Tensor &x, WindowAttr window, int64_t columns, const Shape &result);

/// Ids outside of the table are an error.
Result embedding(const Tensor &ids, const Matrix &table);

/// `kind` none passes x, with scale and bias.
Result norm(NormKind kind, const Tensor &x, const Tensor *scale, const Tensor *bias, double epsilon);

/// Rows multiplied by the rotation.
Result rotate(const Tensor &x, RotationAttr rotation);

/// Records of x, which is normalised already; `grid` is null or [scale, zero].
Result prologue(const Tensor &x, const Matrix *columns, const Tensor *grid = nullptr);

/// x rounded to the grid [scale, zero].
Result onGrid(const Tensor &x, const Tensor &grid);

Result rope(const Tensor &x, const Tensor &cos, const Tensor &sin, bool positionsFirst);

/// The cache after a step. An empty past takes its batch from `update`. `at`: where each batch entry's new positions begin.
/// What a cache of this type gives back for `content`: its rows as `lib/Encoding/CacheRow.h` rounds them. f32 is left as it is.
enum class Held { f32, f16, i8 };
Tensor held(Tensor content, Held type);

Result append(const Tensor &past, const Tensor &update, const Tensor *at, bool positionsFirst);

struct AttentionOptions {
  double scale = 1, softcap = 0;
  bool positionsFirst = false;
};
Result attention(const Tensor &query, const Tensor &key, const Tensor &value, const Tensor *mask,
                 const Tensor *sink, const AttentionOptions &options);

Result gatedActivation(Activation function, const Tensor &gate, const Tensor &up);

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_OPERATORS_H
