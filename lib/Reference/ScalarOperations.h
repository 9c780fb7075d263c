// SPDX-License-Identifier: Apache-2.0
//
// What each operation of arith, math and index computes: floats in double, integers in their width.
#ifndef OTF_LIB_REFERENCE_SCALAROPERATIONS_H
#define OTF_LIB_REFERENCE_SCALAROPERATIONS_H

#include "mlir/IR/Operation.h"

#include <functional>

namespace otf::reference {

/// A float is real. An integer or index is sign-extended; i1 is 0 or 1.
union Scalar {
  double real;
  int64_t integer = 0;
};

/// Computes on the slots of a program. Returns null, or a clause that says what went wrong.
using Compute = std::function<const char *(Scalar *slots)>;

/// The computation of `op`, which reads the slots `from` and writes `to`. Null if there is none.
Compute scalarOperation(mlir::Operation *op, llvm::ArrayRef<unsigned> from, unsigned to);

/// The value of a scalar constant; false if `constant` is none.
bool scalarConstant(mlir::Attribute constant, Scalar &value);

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_SCALAROPERATIONS_H
