// SPDX-License-Identifier: Apache-2.0
//
// The order of a convolution's weight. A row of the file is [K / T][T], channels and then taps; with the attribute `otf.taps`
// = T on its otf.weight, a row of the matrix is [T][K / T], the order in which windows of channels-last tensors are copied.
// Whoever reads rows of the weight turns each of them.
#ifndef OTF_DIALECTS_OTF_TAPS_H
#define OTF_DIALECTS_OTF_TAPS_H

#include "dialects/OTF/OTF.h"

#include <vector>

namespace otf {

inline constexpr llvm::StringLiteral kTapsAttribute = "otf.taps";

/// 1 where the order is the file's. What does not divide the columns is no order.
inline int64_t tapsOf(WeightOp weight) {
  auto taps = weight->getAttrOfType<mlir::IntegerAttr>(kTapsAttribute);
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(weight.getType());
  if (!taps || taps.getInt() < 1 || !type || type.getRank() != 2 || type.getDimSize(1) % taps.getInt() != 0)
    return 1;
  return taps.getInt();
}

/// Turns `count` rows of `columns` elements from [columns / taps][taps] to [taps][columns / taps].
template <typename T> void turnTaps(T *rows, int64_t count, int64_t columns, int64_t taps) {
  if (taps == 1)
    return;
  std::vector<T> row(static_cast<size_t>(columns));
  int64_t channels = columns / taps;
  for (int64_t r = 0; r != count; ++r, rows += columns) {
    std::copy(rows, rows + columns, row.begin());
    for (int64_t c = 0; c != channels; ++c)
      for (int64_t t = 0; t != taps; ++t)
        rows[t * channels + c] = row[size_t(c * taps + t)];
  }
}

} // namespace otf

#endif // OTF_DIALECTS_OTF_TAPS_H
