// SPDX-License-Identifier: Apache-2.0
//
// Three tables by operation name: of floats, of integers, and conversions. Integer functions see an
// operand both as signed and as unsigned and give a result that is then cut to its width, so arith
// and index share them. What MLIR leaves undefined and would be a trap here (a division by zero) is
// a complaint; shifts past the width and float-to-integer conversions out of range give some value.

#include "lib/Reference/ScalarOperations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

#include <bit>
#include <cmath>
#include <optional>

using namespace mlir;

namespace otf::reference {

namespace {

//===------------------------------------------------------------------------------------------===//
// Floats
//===------------------------------------------------------------------------------------------===//

using Unary = double (*)(double);
using Binary = double (*)(double, double);

double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
}
double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b;
}
double same(double x) { return x; }

/// extf and truncf change nothing: f16 and f32 store floats, and what is computed is exact.
const llvm::StringMap<Unary> unaries = {
    {"arith.negf", [](double x) { return -x; }},
    {"arith.extf", same},
    {"arith.truncf", same},
    {"math.absf", [](double x) { return std::abs(x); }},
    {"math.ceil", std::ceil},
    {"math.floor", std::floor},
    {"math.trunc", std::trunc},
    {"math.round", std::round},
    {"math.roundeven", [](double x) { return std::rint(x); }},
    {"math.sqrt", std::sqrt},
    {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"math.cbrt", std::cbrt},
    {"math.exp", std::exp},
    {"math.exp2", std::exp2},
    {"math.expm1", std::expm1},
    {"math.log", std::log},
    {"math.log2", std::log2},
    {"math.log10", std::log10},
    {"math.log1p", std::log1p},
    {"math.sin", std::sin},
    {"math.cos", std::cos},
    {"math.tan", std::tan},
    {"math.asin", std::asin},
    {"math.acos", std::acos},
    {"math.atan", std::atan},
    {"math.sinh", std::sinh},
    {"math.cosh", std::cosh},
    {"math.tanh", std::tanh},
    {"math.asinh", std::asinh},
    {"math.acosh", std::acosh},
    {"math.atanh", std::atanh},
    {"math.erf", std::erf},
    {"math.erfc", std::erfc},
};

const llvm::StringMap<Binary> binaries = {
    {"arith.addf", [](double a, double b) { return a + b; }},
    {"arith.subf", [](double a, double b) { return a - b; }},
    {"arith.mulf", [](double a, double b) { return a * b; }},
    {"arith.divf", [](double a, double b) { return a / b; }},
    {"arith.remf", std::fmod},
    {"arith.maximumf", maximum},
    {"arith.minimumf", minimum},
    {"arith.maxnumf", std::fmax},
    {"arith.minnumf", std::fmin},
    {"math.powf", std::pow},
    {"math.atan2", std::atan2},
    {"math.copysign", std::copysign},
};

bool holds(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse: return false;
  case P::OEQ: return a == b;
  case P::OGT: return a > b;
  case P::OGE: return a >= b;
  case P::OLT: return a < b;
  case P::OLE: return a <= b;
  case P::ONE: return !unordered && a != b;
  case P::ORD: return !unordered;
  case P::UEQ: return unordered || a == b;
  case P::UGT: return unordered || a > b;
  case P::UGE: return unordered || a >= b;
  case P::ULT: return unordered || a < b;
  case P::ULE: return unordered || a <= b;
  case P::UNE: return unordered || a != b;
  case P::UNO: return unordered;
  case P::AlwaysTrue: return true;
  }
  return false;
}

//===------------------------------------------------------------------------------------------===//
// Integers
//===------------------------------------------------------------------------------------------===//

unsigned widthOf(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

/// One operand in both readings, and its width.
struct Integer {
  Integer(int64_t stored, unsigned width) : width(width) {
    s = width == 1 ? -stored : stored;
    u = width == 64 ? uint64_t(stored) : uint64_t(stored) & ((uint64_t(1) << width) - 1);
  }
  int64_t s;
  uint64_t u;
  unsigned width;
};

/// How an integer of this width is kept: sign-extended, i1 as 0 or 1.
int64_t keep(uint64_t value, unsigned width) {
  if (width == 1)
    return int64_t(value & 1);
  return int64_t(value << (64 - width)) >> (64 - width);
}

/// Nothing for a division by zero. The result's bits above its width do not count.
using IntegerBinary = std::optional<uint64_t> (*)(Integer, Integer);

template <typename F> std::optional<uint64_t> divide(Integer a, Integer b, F f) {
  if (b.u == 0)
    return std::nullopt;
  if (b.s == -1) // the one quotient that overflows, and its neighbours
    return f(a.s, int64_t(0));
  return f(a.s, b.s);
}
std::optional<uint64_t> quotient(Integer a, Integer b) {
  return divide(a, b, [](int64_t x, int64_t y) { return y ? uint64_t(x / y) : -uint64_t(x); });
}
std::optional<uint64_t> remainder(Integer a, Integer b) {
  return divide(a, b, [](int64_t x, int64_t y) { return y ? uint64_t(x % y) : uint64_t(0); });
}
std::optional<uint64_t> floorQuotient(Integer a, Integer b) {
  return divide(a, b, [](int64_t x, int64_t y) {
    return y ? uint64_t(x / y - (x % y != 0 && (x < 0) != (y < 0))) : -uint64_t(x);
  });
}
std::optional<uint64_t> ceilQuotient(Integer a, Integer b) {
  return divide(a, b, [](int64_t x, int64_t y) {
    return y ? uint64_t(x / y + (x % y != 0 && (x < 0) == (y < 0))) : -uint64_t(x);
  });
}

using Bits = std::optional<uint64_t>;

/// By name without dialect and without the "i" that arith ends most of them with.
const llvm::StringMap<IntegerBinary> integerBinaries = {
    {"add", [](Integer a, Integer b) { return Bits(a.u + b.u); }},
    {"sub", [](Integer a, Integer b) { return Bits(a.u - b.u); }},
    {"mul", [](Integer a, Integer b) { return Bits(a.u * b.u); }},
    {"divs", quotient},
    {"divu", [](Integer a, Integer b) { return b.u ? Bits(a.u / b.u) : Bits(); }},
    {"rems", remainder},
    {"remu", [](Integer a, Integer b) { return b.u ? Bits(a.u % b.u) : Bits(); }},
    {"floordivs", floorQuotient},
    {"ceildivs", ceilQuotient},
    {"ceildivu", [](Integer a, Integer b) { return b.u ? Bits(a.u / b.u + (a.u % b.u != 0)) : Bits(); }},
    {"and", [](Integer a, Integer b) { return Bits(a.u & b.u); }},
    {"or", [](Integer a, Integer b) { return Bits(a.u | b.u); }},
    {"xor", [](Integer a, Integer b) { return Bits(a.u ^ b.u); }},
    {"shl", [](Integer a, Integer b) { return Bits(b.u < a.width ? a.u << b.u : 0); }},
    {"shrs", [](Integer a, Integer b) { return Bits(uint64_t(a.s >> (b.u < a.width ? b.u : a.width - 1))); }},
    {"shru", [](Integer a, Integer b) { return Bits(b.u < a.width ? a.u >> b.u : 0); }},
    {"maxs", [](Integer a, Integer b) { return Bits(a.s > b.s ? a.u : b.u); }},
    {"mins", [](Integer a, Integer b) { return Bits(a.s < b.s ? a.u : b.u); }},
    {"maxu", [](Integer a, Integer b) { return Bits(a.u > b.u ? a.u : b.u); }},
    {"minu", [](Integer a, Integer b) { return Bits(a.u < b.u ? a.u : b.u); }},
};

/// arith and index order their predicates alike only by name.
std::optional<arith::CmpIPredicate> integerPredicate(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate();
  if (auto compare = dyn_cast<index::CmpOp>(op))
    return arith::symbolizeCmpIPredicate(index::stringifyIndexCmpPredicate(compare.getPred()));
  return std::nullopt;
}

bool holds(arith::CmpIPredicate predicate, Integer a, Integer b) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq: return a.u == b.u;
  case P::ne: return a.u != b.u;
  case P::slt: return a.s < b.s;
  case P::sle: return a.s <= b.s;
  case P::sgt: return a.s > b.s;
  case P::sge: return a.s >= b.s;
  case P::ult: return a.u < b.u;
  case P::ule: return a.u <= b.u;
  case P::ugt: return a.u > b.u;
  case P::uge: return a.u >= b.u;
  }
  return false;
}

Compute integerOperation(Operation *op, ArrayRef<unsigned> from, unsigned to) {
  StringRef name = op->getName().stripDialect();
  unsigned width = widthOf(op->getOperand(0).getType());
  unsigned a = from[0], b = from.size() > 1 ? from[1] : 0;
  if (std::optional<arith::CmpIPredicate> predicate = integerPredicate(op))
    return [=, predicate = *predicate](Scalar *v) -> const char * {
      v[to].integer = holds(predicate, Integer(v[a].integer, width), Integer(v[b].integer, width));
      return nullptr;
    };
  if (name == "absi")
    return [=](Scalar *v) -> const char * {
      Integer x(v[a].integer, width);
      v[to].integer = keep(x.s < 0 ? -x.u : x.u, width);
      return nullptr;
    };
  auto found = integerBinaries.find(name);
  if (found == integerBinaries.end() && name.consume_back("i"))
    found = integerBinaries.find(name);
  if (found == integerBinaries.end() || from.size() != 2)
    return {};
  return [=, f = found->second](Scalar *v) -> const char * {
    Bits result = f(Integer(v[a].integer, width), Integer(v[b].integer, width));
    if (!result)
      return "divides by zero";
    v[to].integer = keep(*result, width);
    return nullptr;
  };
}

//===------------------------------------------------------------------------------------------===//
// Conversions
//===------------------------------------------------------------------------------------------===//

/// Truncated, and at the nearest end where it does not fit (NaN is 0).
int64_t toInteger(double x, unsigned width, bool isSigned) {
  if (std::isnan(x))
    return 0;
  int magnitudeBits = int(width) - (isSigned ? 1 : 0);
  double limit = std::ldexp(1.0, magnitudeBits);
  x = std::trunc(x);
  if (x >= limit)
    return keep(isSigned || width < 64 ? (uint64_t(1) << magnitudeBits) - 1 : ~uint64_t(0), width);
  if (!isSigned)
    return x <= 0 ? 0 : keep(uint64_t(x), width);
  return x <= -limit ? keep(uint64_t(1) << magnitudeBits, width) : int64_t(x);
}

Compute conversion(Operation *op, unsigned from, unsigned to) {
  Type source = op->getOperand(0).getType(), result = op->getResult(0).getType();
  StringRef name = op->getName().getStringRef();
  if (name == "arith.bitcast" && isa<FloatType>(source) && isa<IntegerType>(result))
    return [=, width = widthOf(result),
            &semantics = cast<FloatType>(source).getFloatSemantics()](Scalar *v) -> const char * {
      llvm::APFloat value(v[from].real);
      bool inexact;
      value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
      v[to].integer = keep(value.bitcastToAPInt().getZExtValue(), width);
      return nullptr;
    };
  if (name == "arith.bitcast" && isa<IntegerType>(source) && isa<FloatType>(result))
    return [=, width = widthOf(source),
            &semantics = cast<FloatType>(result).getFloatSemantics()](Scalar *v) -> const char * {
      llvm::APFloat value(semantics, llvm::APInt(64, uint64_t(v[from].integer)).trunc(width));
      bool inexact;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
      v[to].real = value.convertToDouble();
      return nullptr;
    };
  if (name == "arith.fptosi" || name == "arith.fptoui")
    return [=, width = widthOf(result), isSigned = name == "arith.fptosi"](Scalar *v) -> const char * {
      v[to].integer = toInteger(v[from].real, width, isSigned);
      return nullptr;
    };
  if (isa<FloatType>(source))
    return {};
  unsigned width = widthOf(source);
  if (name == "arith.sitofp")
    return [=](Scalar *v) -> const char * {
      v[to].real = double(Integer(v[from].integer, width).s);
      return nullptr;
    };
  if (name == "arith.uitofp")
    return [=](Scalar *v) -> const char * {
      v[to].real = double(Integer(v[from].integer, width).u);
      return nullptr;
    };
  bool isUnsigned = name == "arith.extui" || name == "arith.index_castui" || name == "index.castu";
  bool isSigned = name == "arith.extsi" || name == "arith.index_cast" || name == "index.casts" ||
                  name == "arith.trunci";
  if (!isUnsigned && !isSigned)
    return {};
  return [=, resultWidth = widthOf(result)](Scalar *v) -> const char * {
    Integer x(v[from].integer, width);
    v[to].integer = keep(isUnsigned ? x.u : uint64_t(x.s), resultWidth);
    return nullptr;
  };
}

Compute realOperation(Operation *op, ArrayRef<unsigned> from, unsigned to) {
  StringRef name = op->getName().getStringRef();
  unsigned a = from[0], b = from.size() > 1 ? from[1] : 0, c = from.size() > 2 ? from[2] : 0;
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return [=, predicate = compare.getPredicate()](Scalar *v) -> const char * {
      v[to].integer = holds(predicate, v[a].real, v[b].real);
      return nullptr;
    };
  if (name == "math.fma")
    return [=](Scalar *v) -> const char * {
      v[to].real = std::fma(v[a].real, v[b].real, v[c].real);
      return nullptr;
    };
  if (name == "math.fpowi")
    return [=](Scalar *v) -> const char * {
      v[to].real = std::pow(v[a].real, double(v[b].integer));
      return nullptr;
    };
  if (name == "math.isnan" || name == "math.isinf" || name == "math.isfinite")
    return [=, kind = name.back()](Scalar *v) -> const char * {
      double x = v[a].real;
      v[to].integer = kind == 'n' ? std::isnan(x) : kind == 'f' ? std::isinf(x) : std::isfinite(x);
      return nullptr;
    };
  if (auto found = unaries.find(name); found != unaries.end() && from.size() == 1)
    return [=, f = found->second](Scalar *v) -> const char * {
      v[to].real = f(v[a].real);
      return nullptr;
    };
  if (auto found = binaries.find(name); found != binaries.end() && from.size() == 2)
    return [=, f = found->second](Scalar *v) -> const char * {
      v[to].real = f(v[a].real, v[b].real);
      return nullptr;
    };
  return {};
}

} // namespace

Compute scalarOperation(Operation *op, ArrayRef<unsigned> from, unsigned to) {
  auto scalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  if (from.empty() || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !llvm::all_of(op->getOperandTypes(), scalar) || !scalar(op->getResult(0).getType()))
    return {};
  // i1 … i64 fit a slot.
  for (Type type : op->getOperandTypes())
    if (!isa<FloatType>(type) && widthOf(type) > 64)
      return {};
  if (!isa<FloatType>(op->getResult(0).getType()) && widthOf(op->getResult(0).getType()) > 64)
    return {};
  if (isa<arith::SelectOp>(op))
    return [=, c = from[0], a = from[1], b = from[2]](Scalar *v) -> const char * {
      v[to] = v[c].integer ? v[a] : v[b];
      return nullptr;
    };
  if (from.size() == 1)
    if (Compute compute = conversion(op, from[0], to))
      return compute;
  return isa<FloatType>(op->getOperand(0).getType()) ? realOperation(op, from, to)
                                                     : integerOperation(op, from, to);
}

bool scalarConstant(Attribute constant, Scalar &value) {
  if (auto real = dyn_cast<FloatAttr>(constant)) {
    value.real = real.getValueAsDouble();
    return true;
  }
  auto integer = dyn_cast<IntegerAttr>(constant);
  if (!integer || integer.getValue().getBitWidth() > 64)
    return false;
  const APInt &bits = integer.getValue();
  value.integer = keep(bits.getZExtValue(), bits.getBitWidth());
  return true;
}

} // namespace otf::reference
