// SPDX-License-Identifier: Apache-2.0
//
// Values of symbolic sizes. Types give equations, "past + sequence = 7"; each one with a single
// unknown, to the power one, is solved, and an equation that does not hold is an error.
#ifndef OTF_LIB_REFERENCE_SYMBOLS_H
#define OTF_LIB_REFERENCE_SYMBOLS_H

#include "dialects/OTF/OTF.h"
#include "lib/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace otf::reference {

class Symbols {
public:
  explicit Symbols(std::map<std::string, int64_t> values = {}) : values(std::move(values)) {}

  void set(const std::string &name, int64_t value) { values[name] = value; }
  /// Adds the equations of a tensor named `what` (for errors) of this type and shape.
  llvm::Error add(const std::string &what, mlir::RankedTensorType type, const Shape &shape);
  /// Solves what can be solved. Symbols that stay unknown are an error only where they are read.
  llvm::Error solve();

  llvm::Expected<int64_t> evaluate(const Size &size) const;
  llvm::Expected<Shape> shapeOf(mlir::RankedTensorType type) const;

private:
  struct Equation {
    std::string what;
    Size size;
    int64_t value;
  };

  std::map<std::string, int64_t> values;
  std::vector<Equation> equations;
};

} // namespace otf::reference

#endif // OTF_LIB_REFERENCE_SYMBOLS_H
