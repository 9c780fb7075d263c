// SPDX-License-Identifier: Apache-2.0
//
// Values for tensors whose file is absent, so that a model can be measured on a machine that has no weights of it.
//
// Speed and memory do not depend on values, but codecs, norms and softmax should meet what they are made for: matrices
// are Gaussian of deviation 1/sqrt(K), which keeps a product of unit inputs at unit size, and vectors are gains of norms
// around 1, or, where their name says bias, small. An element is a function of the tensor's name (with the seed in it)
// and its place alone, so any block of rows can be made at any time, by any thread, and memory holds no more than it.

#ifndef OTF_LIB_IMPORT_SYNTHETICVALUES_H
#define OTF_LIB_IMPORT_SYNTHETICVALUES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace otf {

class SyntheticValues {
public:
  /// Of a tensor with `rows` rows of `columns` columns, as y = W x sees it. A tensor with one row or column is a vector.
  SyntheticValues(llvm::StringRef name, int64_t rows, int64_t columns);

  /// Elements [first, first + count) in the order of the file.
  void make(int64_t first, int64_t count, float *out) const;

private:
  uint64_t stream;
  float mean = 0, deviation;
};

/// The x at which a Gaussian's distribution function is p, 0 < p < 1; relative error 1.2e-9 (Acklam's approximation).
double gaussianQuantile(double p);

} // namespace otf

#endif
