// SPDX-License-Identifier: Apache-2.0
//
// Names, literals, positions in memory, statements and control flow.

#include "lib/Codegen/CUDA/ScalarPrinter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace otf::cuda {

//===------------------------------------------------------------------------------------------===//
// Names, types, numbers
//===------------------------------------------------------------------------------------------===//

void ScalarPrinter::line(const Twine &statement) {
  text.append(size_t(indent) * 2, ' ');
  text += statement.str();
  text += '\n';
}

std::string ScalarPrinter::fresh(StringRef prefix) { return (prefix + "_" + Twine(next++)).str(); }

std::string ScalarPrinter::typeName(Type type) {
  if (type.isIndex())
    return "long long";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "otf::half_t";
  if (type.isBF16())
    return "otf::bhalf_t";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return "bool";
    case 8:
      return isUnsigned ? "unsigned char" : "signed char";
    case 16:
      return isUnsigned ? "unsigned short" : "short";
    case 32:
      return isUnsigned ? "unsigned int" : "int";
    case 64:
      return isUnsigned ? "unsigned long long" : "long long";
    }
  }
  return {};
}

std::string ScalarPrinter::literal(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    if (integer.getType().isInteger(1))
      return integer.getValue().isZero() ? "false" : "true";
    std::string digits = llvm::toString(integer.getValue(), 10, /*Signed=*/true);
    unsigned width = integer.getValue().getBitWidth();
    // -2^63 and -2^31 have no literal of their own type.
    if (integer.getValue().isMinSignedValue())
      return "(" + typeName(integer.getType()) + ")(" +
             llvm::toString(integer.getValue(), 10, /*Signed=*/false) + "ull)";
    return width > 32 ? digits + "ll" : digits;
  }
  auto number = dyn_cast<FloatAttr>(value);
  if (!number)
    return {};
  llvm::APInt bits = number.getValue().bitcastToAPInt();
  std::string hex = "0x" + llvm::toString(bits, 16, /*Signed=*/false);
  Type type = number.getType();
  if (type.isF32()) {
    // Readable where it round-trips, and the bits where there is no literal.
    float f = number.getValue().convertToFloat();
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%.9g", double(f));
    StringRef text(buffer);
    if (!number.getValue().isFinite())
      return "__uint_as_float(" + hex + "u)";
    return (text + (text.find_first_of(".e") == text.npos ? ".0f" : "f")).str();
  }
  if (type.isF64())
    return "__longlong_as_double((long long)" + hex + "ull)";
  if (type.isF16() || type.isBF16())
    return typeName(type) + "{" + hex + "}";
  return {};
}

//===------------------------------------------------------------------------------------------===//
// Sizes and positions
//===------------------------------------------------------------------------------------------===//

std::optional<std::string> ScalarPrinter::size(const otf::Size &size, Location loc) {
  std::string sum;
  for (auto &[monomial, coefficient] : size.terms()) {
    std::string term = std::to_string(coefficient) + "ll";
    for (const std::string &name : monomial) {
      if (!symbols.count(name)) {
        emitError(loc) << "the kernel has no size \"" << size.str() << "\"";
        return std::nullopt;
      }
      term = coefficient == 1 && term == "1ll" ? name : term + " * " + name;
    }
    sum += (sum.empty() ? "" : " + ") + term;
  }
  if (sum.empty())
    return "0ll";
  return size.terms().size() == 1 && sum.find(' ') == sum.npos ? sum : "(" + sum + ")";
}

std::optional<std::string> ScalarPrinter::product(ArrayRef<otf::Size> sizes, Location loc) {
  return size(elementCount(sizes), loc);
}

std::optional<std::string> ScalarPrinter::offset(ArrayRef<otf::Size> shape,
                                                 ArrayRef<std::string> indices, Location loc) {
  if (indices.empty())
    return "0ll";
  std::string at = indices[0];
  for (size_t d = 1; d < indices.size(); ++d) {
    std::optional<std::string> extent = size(shape[d], loc);
    if (!extent)
      return std::nullopt;
    at = "(" + at + ") * " + *extent + " + " + indices[d];
  }
  return at;
}

std::optional<SmallVector<std::string>>
ScalarPrinter::split(StringRef position, ArrayRef<otf::Size> shape, Location loc) {
  SmallVector<std::string> indices(shape.size());
  std::string left = position.str();
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == otf::Size(1)) {
      indices[d] = "0ll";
      continue;
    }
    if (d == 0) {
      indices[d] = left;
      break;
    }
    // There are no positions where an extent is 0, but the compiler warns of dividing by it.
    std::optional<std::string> extent = size(shape[d] == otf::Size(0) ? otf::Size(1) : shape[d], loc);
    if (!extent)
      return std::nullopt;
    // Positions are never negative, and unsigned division is the cheaper one.
    std::string quotient = fresh("q");
    indices[d] = fresh("i");
    line("const long long " + quotient + " = (unsigned long long)" + left +
         " / (unsigned long long)" + *extent + ";");
    line("const long long " + indices[d] + " = " + left + " - " + quotient + " * " + *extent + ";");
    left = quotient;
  }
  return indices;
}

//===------------------------------------------------------------------------------------------===//
// Operations
//===------------------------------------------------------------------------------------------===//

bool ScalarPrinter::define(Value value, const Twine &expression) {
  std::string name = fresh("v");
  line("const " + typeName(value.getType()) + " " + name + " = " + expression + ";");
  names[value] = name;
  return true;
}

bool ScalarPrinter::extract(Operation &op, const Position &position) {
  auto read = cast<tensor::ExtractOp>(op);
  auto found = memory.find(read.getTensor());
  if (found == memory.end()) {
    op.emitError() << "reads a tensor that is neither an argument of its kernel nor a constant";
    return false;
  }
  const Memory &tensor = found->second;
  if (!tensor.splat.empty()) {
    names[read.getResult()] = tensor.splat;
    return true;
  }
  SmallVector<std::string> indices;
  for (Value i : read.getIndices())
    indices.push_back(names.lookup(i));
  // Elementwise access: the offset is at hand, and no index has to be recovered by division.
  bool same = ArrayRef<otf::Size>(tensor.shape) == position.shape && indices == position.indices;
  std::optional<std::string> at =
      same ? position.offset : offset(tensor.shape, indices, op.getLoc());
  return at && define(read.getResult(), tensor.pointer + "[" + *at + "]");
}

bool ScalarPrinter::access(Operation &op) {
  auto store = dyn_cast<memref::StoreOp>(op);
  auto load = dyn_cast<memref::LoadOp>(op);
  Memory handle = memory.lookup(store ? store.getMemRef() : load.getMemRef());
  SmallVector<std::string> indices;
  for (Value i : store ? store.getIndices() : load.getIndices())
    indices.push_back(names.lookup(i));
  std::optional<std::string> at = offset(handle.shape, indices, op.getLoc());
  if (!at)
    return false;
  std::string element = handle.pointer + "[" + *at + "]";
  if (load)
    return define(load.getResult(), element);
  line(element + " = " + names.lookup(store.getValueToStore()) + ";");
  return true;
}

SmallVector<std::string> ScalarPrinter::declare(ValueRange values, ValueRange initial) {
  SmallVector<std::string> declared;
  for (auto [i, value] : llvm::enumerate(values)) {
    declared.push_back(fresh("r"));
    line(typeName(value.getType()) + " " + declared.back() +
         (initial.empty() ? "" : " = " + names.lookup(initial[i])) + ";");
  }
  return declared;
}

/// All at once: a value that is assigned may be the source of another.
bool ScalarPrinter::assign(ArrayRef<std::string> to, ValueRange from) {
  SmallVector<std::string> copies;
  for (Value value : from) {
    if (to.size() == 1) {
      copies.push_back(names.lookup(value));
      continue;
    }
    copies.push_back(fresh("c"));
    line("const " + typeName(value.getType()) + " " + copies.back() + " = " + names.lookup(value) +
         ";");
  }
  for (auto [target, source] : llvm::zip_equal(to, copies))
    line(target + " = " + source + ";");
  return true;
}

bool ScalarPrinter::control(Operation &op, const Position &position) {
  auto body = [&](Block &block) {
    for (Operation &inner : block.without_terminator())
      if (!operation(inner, position))
        return false;
    return true;
  };
  auto bind = [&](auto values, ArrayRef<std::string> to) {
    for (auto [value, name] : llvm::zip_equal(values, to))
      names[value] = name;
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    SmallVector<std::string> carried = declare(loop.getResults(), loop.getInitArgs());
    std::string i = fresh("i");
    line("for (" + typeName(loop.getInductionVar().getType()) + " " + i + " = " +
         names.lookup(loop.getLowerBound()) + "; " + i + " < " +
         names.lookup(loop.getUpperBound()) + "; " + i + " += " + names.lookup(loop.getStep()) +
         ") {");
    ++indent;
    names[loop.getInductionVar()] = i;
    bind(loop.getRegionIterArgs(), carried);
    if (!body(*loop.getBody()))
      return false;
    assign(carried, loop.getBody()->getTerminator()->getOperands());
    --indent;
    line("}");
    bind(loop.getResults(), carried);
    return true;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    SmallVector<std::string> results = declare(branch.getResults(), {});
    line("if (" + names.lookup(branch.getCondition()) + ") {");
    ++indent;
    if (!body(*branch.thenBlock()))
      return false;
    assign(results, branch.thenYield().getOperands());
    --indent;
    if (branch.elseBlock()) {
      line("} else {");
      ++indent;
      if (!body(*branch.elseBlock()))
        return false;
      assign(results, branch.elseYield().getOperands());
      --indent;
    }
    line("}");
    bind(branch.getResults(), results);
    return true;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<std::string> before = declare(loop.getBeforeArguments(), loop.getInits());
    SmallVector<std::string> results = declare(loop.getResults(), {});
    line("while (true) {");
    ++indent;
    bind(loop.getBeforeArguments(), before);
    if (!body(*loop.getBeforeBody()))
      return false;
    auto condition = loop.getConditionOp();
    assign(results, condition.getArgs());
    line("if (!" + names.lookup(condition.getCondition()) + ")");
    line("  break;");
    bind(loop.getAfterArguments(), results);
    if (!body(*loop.getAfterBody()))
      return false;
    assign(before, loop.getYieldOp().getOperands());
    --indent;
    line("}");
    bind(loop.getResults(), results);
    return true;
  }
  return false;
}

bool ScalarPrinter::operation(Operation &op, const Position &position) {
  for (Type type : op.getResultTypes())
    if (typeName(type).empty()) {
      op.emitError() << "'" << op.getName() << "' gives " << type
                     << ", which a CUDA kernel's scalar program cannot hold";
      return false;
    }
  if (isa<tensor::ExtractOp>(op))
    return extract(op, position);
  if (isa<memref::LoadOp, memref::StoreOp>(op))
    return access(op);
  std::optional<std::string> extent;
  if (auto query = dyn_cast<SizeOp>(op)) {
    std::optional<otf::Size> parsed = otf::Size::parse(query.getSize());
    extent = parsed ? size(*parsed, op.getLoc()) : std::nullopt;
    return extent && define(query.getResult(), *extent);
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    std::optional<int64_t> axis = dim.getConstantIndex();
    if (!type || !axis || *axis < 0 || *axis >= type.getRank()) {
      op.emitError() << "asks for a dimension that is not constant";
      return false;
    }
    extent = size(sizesOf(type)[*axis], op.getLoc());
    return extent && define(dim.getResult(), *extent);
  }
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return control(op, position);
  if (op.getNumResults() == 1 && op.getNumRegions() == 0)
    if (std::string value = expression(op); !value.empty())
      return define(op.getResult(0), value);
  op.emitError() << "'" << op.getName() << "' cannot be part of a CUDA kernel's scalar program";
  return false;
}

std::optional<SmallVector<std::string>> ScalarPrinter::program(Block &block,
                                                               const Position &position) {
  for (Operation &op : block.without_terminator())
    if (!operation(op, position))
      return std::nullopt;
  SmallVector<std::string> results;
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(names.lookup(operand));
  return results;
}

} // namespace otf::cuda
