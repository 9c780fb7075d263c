// SPDX-License-Identifier: Apache-2.0
#include "lib/Codegen/CUDA/ScalarPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// The unsigned type as wide as `type`, in which arithmetic wraps and comparisons are unsigned.
static std::string unsignedName(Type type) {
  if (type.isInteger(1))
    return "bool";
  return ScalarPrinter::typeName(
      IntegerType::get(type.getContext(), type.isIndex() ? 64 : type.getIntOrFloatBitWidth(),
                       IntegerType::Unsigned));
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
    std::optional<std::string> extent = size(shape[d], loc);
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

static StringRef comparison(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return "==";
  case arith::CmpIPredicate::ne:
    return "!=";
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return "<";
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return "<=";
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return ">";
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return ">=";
  }
  return "";
}

static std::string comparison(arith::CmpFPredicate predicate, const std::string &a,
                              const std::string &b) {
  using P = arith::CmpFPredicate;
  // An unordered predicate is the negation of the opposite ordered one.
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return a + " == " + b;
  case P::OGT:
    return a + " > " + b;
  case P::OGE:
    return a + " >= " + b;
  case P::OLT:
    return a + " < " + b;
  case P::OLE:
    return a + " <= " + b;
  case P::ONE:
    return "(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::ORD:
    return "(" + a + " == " + a + " && " + b + " == " + b + ")";
  case P::UEQ:
    return "!(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::UGT:
    return "!(" + a + " <= " + b + ")";
  case P::UGE:
    return "!(" + a + " < " + b + ")";
  case P::ULT:
    return "!(" + a + " >= " + b + ")";
  case P::ULE:
    return "!(" + a + " > " + b + ")";
  case P::UNE:
    return "!(" + a + " == " + b + ")";
  case P::UNO:
    return "!(" + a + " == " + a + " && " + b + " == " + b + ")";
  }
  return {};
}

/// The C function of a math operation, without the `f` that makes it one of f32.
static StringRef functionOf(Operation &op) {
  return llvm::TypeSwitch<Operation *, StringRef>(&op)
      .Case([](math::ExpOp) { return "exp"; })
      .Case([](math::Exp2Op) { return "exp2"; })
      .Case([](math::ExpM1Op) { return "expm1"; })
      .Case([](math::LogOp) { return "log"; })
      .Case([](math::Log2Op) { return "log2"; })
      .Case([](math::Log10Op) { return "log10"; })
      .Case([](math::Log1pOp) { return "log1p"; })
      .Case([](math::SqrtOp) { return "sqrt"; })
      .Case([](math::CbrtOp) { return "cbrt"; })
      .Case([](math::TanhOp) { return "tanh"; })
      .Case([](math::TanOp) { return "tan"; })
      .Case([](math::SinOp) { return "sin"; })
      .Case([](math::CosOp) { return "cos"; })
      .Case([](math::SinhOp) { return "sinh"; })
      .Case([](math::CoshOp) { return "cosh"; })
      .Case([](math::AsinOp) { return "asin"; })
      .Case([](math::AcosOp) { return "acos"; })
      .Case([](math::AtanOp) { return "atan"; })
      .Case([](math::AsinhOp) { return "asinh"; })
      .Case([](math::AcoshOp) { return "acosh"; })
      .Case([](math::AtanhOp) { return "atanh"; })
      .Case([](math::Atan2Op) { return "atan2"; })
      .Case([](math::ErfOp) { return "erf"; })
      .Case([](math::ErfcOp) { return "erfc"; })
      .Case([](math::AbsFOp) { return "fabs"; })
      .Case([](math::CeilOp) { return "ceil"; })
      .Case([](math::FloorOp) { return "floor"; })
      .Case([](math::RoundOp) { return "round"; })
      .Case([](math::RoundEvenOp) { return "rint"; })
      .Case([](math::TruncOp) { return "trunc"; })
      .Case([](math::PowFOp) { return "pow"; })
      .Case([](math::CopySignOp) { return "copysign"; })
      .Case([](math::FmaOp) { return "fma"; })
      .Case([](arith::RemFOp) { return "fmod"; })
      // C's fmax drops a NaN, as maxnum does; maximum keeps it and is written out below.
      .Case([](arith::MaxNumFOp) { return "fmax"; })
      .Case([](arith::MinNumFOp) { return "fmin"; })
      .Default([](Operation *) { return ""; });
}

/// x^2, x^3 and x^4 as the products that they are on the CPU, or an empty string.
static std::string smallPower(math::PowFOp op, const std::string &x) {
  auto constant = op.getRhs().getDefiningOp<arith::ConstantOp>();
  auto value = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  double exponent = value ? value.getValueAsDouble() : 0;
  std::string square = x + " * " + x;
  return exponent == 2   ? square
         : exponent == 3 ? square + " * " + x
         : exponent == 4 ? "(" + square + ") * (" + square + ")"
                         : "";
}

/// The value of an operation with one result and no region; empty if it is not on the list.
std::string ScalarPrinter::expression(Operation &op) {
  SmallVector<std::string> in;
  for (Value operand : op.getOperands())
    in.push_back(names.lookup(operand));
  Type type = op.getResult(0).getType(),
       from = op.getNumOperands() ? op.getOperand(0).getType() : Type();
  std::string result = typeName(type);
  bool narrow = type.isF16() || type.isBF16();
  // 16-bit floats are storage: what computes on them does so in f32.
  SmallVector<std::string> number = in;
  for (auto [name, operand] : llvm::zip(number, op.getOperands()))
    if (operand.getType().isF16() || operand.getType().isBF16())
      name = "otf::toFloat(" + name + ")";
  auto rounded = [&](const std::string &e) {
    return narrow ? "otf::fromFloat<" + result + ">(" + e + ")" : e;
  };
  auto infix = [&](StringRef sign) {
    return rounded(number[0] + " " + sign.str() + " " + number[1]);
  };
  // Integers wrap, which C++ leaves undefined for signed ones. Indices do not.
  auto wrapping = [&](StringRef sign) {
    if (type.isIndex() || type.isInteger(1))
      return "(" + result + ")(" + in[0] + " " + sign.str() + " " + in[1] + ")";
    std::string u = unsignedName(type);
    return "(" + result + ")((" + u + ")" + in[0] + " " + sign.str() + " (" + u + ")" + in[1] + ")";
  };
  auto asUnsigned = [&](StringRef sign) {
    std::string u = unsignedName(from);
    return "(" + result + ")((" + u + ")" + in[0] + " " + sign.str() + " (" + u + ")" + in[1] + ")";
  };
  auto choose = [&](StringRef sign, bool isUnsigned) {
    std::string u = isUnsigned ? "(" + unsignedName(from) + ")" : "";
    return "(" + u + in[0] + " " + sign.str() + " " + u + in[1] + " ? " + in[0] + " : " + in[1] +
           ")";
  };
  if (StringRef function = functionOf(op); !function.empty()) {
    std::string arguments = llvm::join(number, ", ");
    // The functions of the device library have the CPU's bits.
    if (!type.isF64() && isa<math::ExpOp, math::LogOp, math::TanhOp, math::ErfOp, math::SinOp, math::CosOp>(op))
      return rounded("otf::" + function.str() + "(" + arguments + ")");
    if (auto power = dyn_cast<math::PowFOp>(op))
      if (std::string product = smallPower(power, number[0]); !product.empty())
        return rounded(product);
    return rounded(function.str() + (type.isF64() ? "(" : "f(") + arguments + ")");
  }
  auto extremum = [&](StringRef sign) { // NaN if either is
    const std::string &a = number[0], &b = number[1];
    return rounded("(" + a + " " + sign.str() + " " + b + " || " + a + " != " + a + " ? " + a +
                   " : " + b + ")");
  };
  return llvm::TypeSwitch<Operation *, std::string>(&op)
      .Case([&](arith::ConstantOp c) { return literal(c.getValue()); })
      .Case([&](arith::AddFOp) { return infix("+"); })
      .Case([&](arith::SubFOp) { return infix("-"); })
      .Case([&](arith::MulFOp) { return infix("*"); })
      .Case([&](arith::DivFOp) { return infix("/"); })
      .Case([&](arith::NegFOp) { return rounded("-" + number[0]); })
      .Case([&](arith::MaximumFOp) { return extremum(">"); })
      .Case([&](arith::MinimumFOp) { return extremum("<"); })
      .Case([&](arith::AddIOp) { return wrapping("+"); })
      .Case([&](arith::SubIOp) { return wrapping("-"); })
      .Case([&](arith::MulIOp) { return wrapping("*"); })
      .Case([&](arith::AndIOp) { return wrapping("&"); })
      .Case([&](arith::OrIOp) { return wrapping("|"); })
      .Case([&](arith::XOrIOp) { return wrapping("^"); })
      .Case([&](arith::ShLIOp) { return asUnsigned("<<"); })
      .Case([&](arith::ShRUIOp) { return asUnsigned(">>"); })
      .Case([&](arith::ShRSIOp) { return "(" + result + ")(" + in[0] + " >> " + in[1] + ")"; })
      .Case([&](arith::DivSIOp) { return "(" + result + ")(" + in[0] + " / " + in[1] + ")"; })
      .Case([&](arith::RemSIOp) { return "(" + result + ")(" + in[0] + " % " + in[1] + ")"; })
      .Case([&](arith::DivUIOp) { return asUnsigned("/"); })
      .Case([&](arith::RemUIOp) { return asUnsigned("%"); })
      .Case([&](arith::FloorDivSIOp) {
        return "(" + result + ")(" + in[0] + " / " + in[1] + " - (" + in[0] + " % " + in[1] +
               " != 0 && (" + in[0] + " < 0) != (" + in[1] + " < 0)))";
      })
      .Case([&](arith::CeilDivSIOp) {
        return "(" + result + ")(" + in[0] + " / " + in[1] + " + (" + in[0] + " % " + in[1] +
               " != 0 && (" + in[0] + " < 0) == (" + in[1] + " < 0)))";
      })
      .Case([&](arith::MaxSIOp) { return choose(">", false); })
      .Case([&](arith::MinSIOp) { return choose("<", false); })
      .Case([&](arith::MaxUIOp) { return choose(">", true); })
      .Case([&](arith::MinUIOp) { return choose("<", true); })
      .Case([&](arith::CmpIOp cmp) {
        // i1 as a signed number is 0 or -1, which bool is not.
        using P = arith::CmpIPredicate;
        P p = cmp.getPredicate();
        bool isUnsigned = p == P::ult || p == P::ule || p == P::ugt || p == P::uge;
        if (from.isInteger(1) && !isUnsigned && p != P::eq && p != P::ne)
          return "-(int)" + in[0] + " " + comparison(p).str() + " -(int)" + in[1];
        return isUnsigned ? asUnsigned(comparison(p))
                          : in[0] + " " + comparison(p).str() + " " + in[1];
      })
      .Case([&](arith::CmpFOp cmp) { return comparison(cmp.getPredicate(), number[0], number[1]); })
      .Case([&](arith::SelectOp) { return in[0] + " ? " + in[1] + " : " + in[2]; })
      .Case([&](arith::ExtSIOp) {
        return from.isInteger(1) ? "(" + result + ")-(int)" + in[0] : "(" + result + ")" + in[0];
      })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>(
          [&](auto) { return "(" + result + ")(" + unsignedName(from) + ")" + in[0]; })
      .Case([&](arith::IndexCastOp) {
        return from.isInteger(1) ? "(" + result + ")-(int)" + in[0] : "(" + result + ")" + in[0];
      })
      .Case([&](arith::TruncIOp) {
        return type.isInteger(1) ? "(" + in[0] + " & 1) != 0" : "(" + result + ")" + in[0];
      })
      .Case([&](arith::SIToFPOp) {
        std::string x = from.isInteger(1) ? "-(int)" + in[0] : in[0];
        return rounded(narrow ? "(float)" + x : "(" + result + ")" + x);
      })
      .Case([&](arith::UIToFPOp) {
        std::string x = "(" + unsignedName(from) + ")" + in[0];
        return rounded(narrow ? "(float)" + x : "(" + result + ")" + x);
      })
      .Case([&](arith::FPToSIOp) { return "(" + result + ")" + number[0]; })
      .Case([&](arith::FPToUIOp) {
        return "(" + result + ")(" + unsignedName(type) + ")" + number[0];
      })
      .Case([&](arith::ExtFOp) { return "(" + result + ")" + number[0]; })
      .Case([&](arith::TruncFOp) { return rounded("(float)" + number[0]); })
      .Case([&](arith::BitcastOp) { return "otf::bitsOf<" + result + ">(" + in[0] + ")"; })
      .Case([&](math::RsqrtOp) {
        return rounded(type.isF64() ? "1.0 / sqrt(" + number[0] + ")"
                                    : "1.0f / sqrtf(" + number[0] + ")");
      })
      .Case([&](math::AbsIOp) {
        return "(" + result + ")(" + in[0] + " < 0 ? -" + in[0] + " : " + in[0] + ")";
      })
      .Case([&](math::IsNaNOp) { return number[0] + " != " + number[0]; })
      .Case([&](math::IsInfOp) {
        return (from.isF64() ? "fabs(" : "fabsf(") + number[0] + ") == __int_as_float(0x7f800000)";
      })
      .Case([&](math::IsFiniteOp) {
        return (from.isF64() ? "fabs(" : "fabsf(") + number[0] + ") < __int_as_float(0x7f800000)";
      })
      .Default([](Operation *) { return std::string(); });
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
