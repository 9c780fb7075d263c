// SPDX-License-Identifier: Apache-2.0
//
// Equations are few, so they are tried again and again until a round gives nothing.

#include "lib/Reference/Symbols.h"

namespace otf::reference {

static std::string text(const Shape &shape) {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

llvm::Error Symbols::add(const std::string &what, mlir::RankedTensorType type, const Shape &shape) {
  if (type.getRank() != int64_t(shape.size()))
    return llvm::createStringError(what + " must have rank " + std::to_string(type.getRank()) +
                                   ", got " + text(shape));
  for (auto [size, value] : llvm::zip(sizesOf(type), shape))
    equations.push_back({what + " of shape " + text(shape), size, value});
  return llvm::Error::success();
}

/// The one symbol of `size` without a value, where it stands alone; its coefficient and the rest.
static bool isolate(const Size &size, const std::map<std::string, int64_t> &values,
                    std::string &name, int64_t &coefficient, Size &rest) {
  rest = size;
  for (auto &[monomial, factor] : size.terms()) {
    if (llvm::all_of(monomial, [&](const std::string &s) { return values.count(s) != 0; }))
      continue;
    if (monomial.size() != 1 || !name.empty())
      return false;
    name = monomial.front();
    coefficient = factor;
    rest = rest - Size(factor) * Size::symbol(name);
  }
  return !name.empty();
}

llvm::Error Symbols::solve() {
  for (bool progress = true; progress;) {
    progress = false;
    for (const Equation &equation : equations) {
      std::string name;
      int64_t coefficient = 0;
      Size rest;
      if (!isolate(equation.size, values, name, coefficient, rest))
        continue;
      std::optional<int64_t> known = rest.evaluate(values);
      if (!known || (equation.value - *known) % coefficient != 0 ||
          (equation.value - *known) / coefficient < 0)
        return llvm::createStringError(equation.what + " has " + std::to_string(equation.value) +
                                       " where " + equation.size.str() + " was expected");
      values[name] = (equation.value - *known) / coefficient;
      progress = true;
    }
  }
  for (const Equation &equation : equations)
    if (std::optional<int64_t> value = equation.size.evaluate(values);
        value && *value != equation.value)
      return llvm::createStringError(equation.what + " has " + std::to_string(equation.value) +
                                     " where " + equation.size.str() + " = " +
                                     std::to_string(*value) + " was expected");
  return llvm::Error::success();
}

llvm::Expected<int64_t> Symbols::evaluate(const Size &size) const {
  if (std::optional<int64_t> value = size.evaluate(values))
    return *value;
  return llvm::createStringError("the size " + size.str() + " does not follow from the inputs");
}

llvm::Expected<Shape> Symbols::shapeOf(mlir::RankedTensorType type) const {
  Shape shape;
  for (const Size &size : sizesOf(type)) {
    llvm::Expected<int64_t> value = evaluate(size);
    if (!value)
      return value.takeError();
    if (*value < 0)
      return llvm::createStringError("the size " + size.str() + " is negative, " +
                                     std::to_string(*value));
    shape.push_back(*value);
  }
  return shape;
}

} // namespace otf::reference
