// SPDX-License-Identifier: Apache-2.0
//
// ONNX's element types (TensorProto.DataType) as numbers, and the size of tensors in checked arithmetic.
//
// The installed onnx.proto is older than the models we read, so the numbers are listed here and not taken from it.
// Nothing of MLIR is needed: readers of weights use this too.

#ifndef OTF_DIALECTS_ONNX_ELEMENTTYPE_H
#define OTF_DIALECTS_ONNX_ELEMENTTYPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace otf::onnx {

namespace ElementType {
enum : int64_t {
  Undefined = 0, Float = 1, UInt8 = 2, Int8 = 3, UInt16 = 4, Int16 = 5, Int32 = 6, Int64 = 7, String = 8, Bool = 9,
  Float16 = 10, Double = 11, UInt32 = 12, UInt64 = 13, Complex64 = 14, Complex128 = 15, BFloat16 = 16,
  Float8E4M3FN = 17, Float8E4M3FNUZ = 18, Float8E5M2 = 19, Float8E5M2FNUZ = 20, UInt4 = 21, Int4 = 22,
  Float4E2M1 = 23, Float8E8M0 = 24, UInt2 = 25, Int2 = 26,
};
}

/// Bits of an element; 0 for types without a fixed size and for unknown numbers. Elements below a byte are packed.
unsigned elementBits(int64_t type);

/// ONNX's name of the type, or "unknown".
std::string elementTypeName(int64_t type);

/// Product of the sizes; none if one is negative or the product of those that are not 0 leaves 63 bits.
std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> dims);

/// Bytes of a tensor in a file; none where elementCount has none, the bytes leave 63 bits, or elementBits is 0.
std::optional<uint64_t> tensorBytes(int64_t type, llvm::ArrayRef<int64_t> dims);

} // namespace otf::onnx

#endif
