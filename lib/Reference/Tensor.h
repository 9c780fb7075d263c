// SPDX-License-Identifier: Apache-2.0
//
// Values of the reference interpreter: tensors, weight matrices and caches. No MLIR here, so that a
// test can make them and read them without it.
#ifndef OTF_LIB_REFERENCE_TENSOR_H
#define OTF_LIB_REFERENCE_TENSOR_H

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace otf::reference {

using Shape = std::vector<int64_t>;

inline int64_t elementCount(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Elements in row-major order. Floats of every width are doubles. Integers are int64: signed ones
/// extended, i1 as 0 or 1, and a record of otf.prologue as its bytes.
struct Tensor {
  Shape shape;
  std::variant<std::vector<double>, std::vector<int64_t>> elements;

  static Tensor ofReals(Shape shape, std::vector<double> elements) {
    return {std::move(shape), std::move(elements)};
  }
  static Tensor ofIntegers(Shape shape, std::vector<int64_t> elements) {
    return {std::move(shape), std::move(elements)};
  }
  /// Zeros.
  static Tensor zeros(Shape shape, bool real) {
    size_t count = size_t(elementCount(shape));
    if (real)
      return {std::move(shape), std::vector<double>(count)};
    return {std::move(shape), std::vector<int64_t>(count)};
  }

  int64_t count() const { return elementCount(shape); }
  bool isReal() const { return elements.index() == 0; }
  const std::vector<double> &reals() const { return std::get<0>(elements); }
  std::vector<double> &reals() { return std::get<0>(elements); }
  const std::vector<int64_t> &integers() const { return std::get<1>(elements); }
  std::vector<int64_t> &integers() { return std::get<1>(elements); }
};

/// A weight as a contraction reads it.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> weights;   ///< rows × columns, decoded
  std::vector<int64_t> outliers; ///< columns kept in f16, ascending
  std::vector<uint8_t> blob;     ///< its bytes in a plan, for kernels under test
};

/// A key or value cache: [batch, heads, length, width], as long as it is filled.
struct Cache {
  std::string name; ///< the symbol of its otf.cache; empty for a kernel's argument
  Tensor content;
};

/// What an IR value of tensor, matrix or state type holds.
using Content = std::variant<Tensor, Matrix, Cache>;

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_TENSOR_H
