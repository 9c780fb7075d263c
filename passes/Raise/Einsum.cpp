// SPDX-License-Identifier: Apache-2.0
//
// Einsum: one generate over the labels of the output, with a loop over each label that only inputs have. A label that one
// term repeats is read along the diagonal. The labels of "..." are negative numbers, counted from the last dimension, so that
// they broadcast from the right.

#include "passes/Raise/Numbers.h"

#include <map>

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

using Term = SmallVector<int>; // a label for each dimension

struct Equation {
  SmallVector<Term> inputs;
  Term output;
};

/// The labels of one term; `rank`: that of its operand, where there is one. Empty if the text is no term.
std::optional<Term> parseTerm(StringRef text, std::optional<size_t> rank, int ellipsisRank) {
  Term term;
  bool sawEllipsis = false;
  size_t letters = llvm::count_if(text, [](char c) { return llvm::isAlpha(c); });
  while (!text.empty()) {
    if (text.consume_front("...")) {
      if (sawEllipsis || (rank && *rank < letters))
        return std::nullopt;
      sawEllipsis = true;
      for (int i = rank ? int(*rank - letters) : ellipsisRank; i > 0; --i)
        term.push_back(-i);
      continue;
    }
    char c = text.front();
    text = text.drop_front();
    if (c == ' ')
      continue;
    if (!llvm::isAlpha(c))
      return std::nullopt;
    term.push_back(c);
  }
  if (rank && term.size() != *rank)
    return std::nullopt;
  return term;
}

std::optional<Equation> parse(StringRef text, ArrayRef<Known *> operands) {
  auto [left, right] = text.split("->");
  bool isExplicit = text.contains("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != operands.size())
    return std::nullopt;
  Equation equation;
  std::map<int, int> uses;
  int ellipsisRank = 0;
  for (auto [term, operand] : llvm::zip(terms, operands)) {
    std::optional<Term> labels = parseTerm(term, operand->rank(), 0);
    if (!labels)
      return std::nullopt;
    for (int label : *labels) {
      ++uses[label];
      ellipsisRank = std::max(ellipsisRank, -label);
    }
    equation.inputs.push_back(*labels);
  }
  if (isExplicit) {
    std::optional<Term> labels = parseTerm(right, std::nullopt, ellipsisRank);
    if (!labels)
      return std::nullopt;
    equation.output = *labels;
    std::set<int> seen;
    for (int label : equation.output)
      if (!uses.count(label) || !seen.insert(label).second)
        return std::nullopt;
    return equation;
  }
  // Without an output: what "..." stands for, then the letters that occur once, in the order of ASCII.
  for (auto [label, count] : uses)
    if (label < 0 || count == 1)
      equation.output.push_back(label);
  return equation;
}

LogicalResult raiseEinsum(Raiser &raiser, onnx::NodeOp node) {
  SmallVector<Known *> operands;
  for (Value operand : node.getInputs()) {
    if (operand.getDefiningOp<onnx::NoneOp>())
      return raiser.fail(node, "an input is missing");
    operands.push_back(&raiser.known(operand));
  }
  StringRef text = node.stringOr("equation", "");
  std::optional<Equation> equation = parse(text, operands);
  if (!equation)
    return raiser.fail(node, "its equation '" + text + "' is none, or does not fit the ranks of its inputs");
  std::map<int, Size> extents;
  for (auto [term, operand] : llvm::zip(equation->inputs, operands))
    for (auto [label, size] : llvm::zip(term, operand->sizes)) {
      Size &extent = extents.try_emplace(label, Size(1)).first->second;
      if (extent == Size(1))
        extent = size;
      else if (size != Size(1) && size != extent)
        return raiser.fail(node, "one label of '" + text + "' has the sizes " + extent.str() + " and " + size.str());
    }
  SmallVector<Size> sizes, loops;
  Term summed;
  for (int label : equation->output)
    sizes.push_back(extents[label]);
  for (auto &[label, size] : extents)
    if (!llvm::is_contained(equation->output, label)) {
      summed.push_back(label);
      loops.push_back(size);
    }
  int64_t elementType = operands.front()->elementType;
  Type type = raiser.internalType(elementType);
  if (type.isInteger(1))
    return raiser.fail(node, "elements must be numbers");
  raiser.set(node, raiser.generated(elementType, sizes, [&](OpBuilder &b, ValueRange indices) -> Value {
    Expressions s{b, node.getLoc()};
    auto product = [&](Expressions inner, ArrayRef<Value> loop) {
      std::map<int, Value> places;
      for (auto [label, index] : llvm::zip(equation->output, indices))
        places[label] = index;
      for (auto [label, index] : llvm::zip(summed, loop))
        places[label] = index;
      Value result;
      for (auto [term, operand] : llvm::zip(equation->inputs, operands)) {
        SmallVector<Value> at;
        for (int label : term)
          at.push_back(places[label]);
        Value x = raiser.element(inner.b, *operand, at); // reads dimensions of size 1 at 0
        result = result ? inner.mul(result, x) : x;
      }
      return result;
    };
    if (summed.empty())
      return product(s, {});
    return s.fold(s.indexes(loops), s.zero(type), [&](Expressions inner, ArrayRef<Value> loop, Value carried) {
      return inner.add(carried, product(inner, loop));
    });
  }));
  return success();
}

} // namespace

void raise::registerEinsum(Registry &registry) { registry.add("Einsum", raiseEinsum, 1, kAnyNumber, 12); }
