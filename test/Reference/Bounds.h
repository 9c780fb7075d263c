// SPDX-License-Identifier: Apache-2.0
//
// How far a kernel in f32 may be from the same kernel in exact arithmetic, by counting roundings:
// n of them in a row change a sum Σ a by at most n u Σ|a|, where u = 2^-24.
#ifndef OTF_TEST_REFERENCE_BOUNDS_H
#define OTF_TEST_REFERENCE_BOUNDS_H

#include "lib/Reference/Tensor.h"

#include <string>

namespace otf::reference::test {

/// For the sums of x Wᵀ + bias; the largest over all elements. `zeros`: the encoding has zero points,
/// which add up apart from the scaled codes.
double linearBound(const Tensor &x, const Matrix &w, const Tensor *bias, bool zeros);
/// The largest Σ|x||w| + |bias|.
double linearMagnitude(const Tensor &x, const Matrix &w, const Tensor *bias);

double normBound(const Tensor &x, const Tensor *scale, const Tensor *bias, double epsilon,
                 bool centred);

double attentionBound(const Tensor &query, const Tensor &key, const Tensor &value,
                      const Tensor *mask, double scale);

/// What differs between records beyond `bound`, the error of what was quantized; or nothing. Codes
/// may differ by one, since an error may cross a tie; sums must be those of the codes.
std::string compareRecords(const Tensor &wanted, const Tensor &got, int64_t background,
                           int64_t outliers, double bound);

} // namespace otf::reference::test

#endif // OTF_TEST_REFERENCE_BOUNDS_H
