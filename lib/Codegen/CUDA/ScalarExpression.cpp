// SPDX-License-Identifier: Apache-2.0
//
// One operation of arith or math as a C++ expression. Integers wrap and comparisons have the sign that MLIR gives them,
// whatever C++ says of its own types; 16-bit floats are computed in f32.

#include "lib/Codegen/CUDA/ScalarPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace otf::cuda {

/// The unsigned type as wide as `type`, in which arithmetic wraps and comparisons are unsigned.
static std::string unsignedName(Type type) {
  if (type.isInteger(1))
    return "bool";
  return ScalarPrinter::typeName(
      IntegerType::get(type.getContext(), type.isIndex() ? 64 : type.getIntOrFloatBitWidth(),
                       IntegerType::Unsigned));
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

} // namespace otf::cuda
