// SPDX-License-Identifier: Apache-2.0
//
// fp8 and fp4 in scalar arithmetic: every code decoded, and every number near a code encoded, against LLVM's APFloat.

#include "lib/Reference/ScalarProgram.h"
#include "passes/Raise/Elements.h"
#include "test/Reference/Model.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace otf::reference::test {
namespace {

using llvm::APFloat;
using llvm::APInt;
namespace Element = onnx::ElementType;

constexpr int64_t kCoded[] = {Element::Float8E4M3FN, Element::Float8E4M3FNUZ, Element::Float8E5M2,
                              Element::Float8E5M2FNUZ, Element::Float4E2M1};

/// A cast as a program of one argument.
class Cast {
public:
  Cast(mlir::Type source, int64_t from, int64_t to, mlir::Type result, raise::Rounding rounding = {}) {
    mlir::OpBuilder b(source.getContext());
    mlir::Location l = b.getUnknownLoc();
    module = mlir::ModuleOp::create(l);
    b.setInsertionPointToEnd(module->getBody());
    auto function = mlir::func::FuncOp::create(b, l, "f", b.getFunctionType({source}, {result}));
    mlir::Block *block = function.addEntryBlock();
    b.setInsertionPointToEnd(block);
    mlir::Value value = raise::castElement(b, l, block->getArgument(0), from, to, result, rounding);
    mlir::func::ReturnOp::create(b, l, value);
    auto compiled = ScalarProgram::compile(*block, scope);
    if (compiled)
      program.emplace(std::move(*compiled));
    else
      ADD_FAILURE() << llvm::toString(compiled.takeError());
  }
  double real(int64_t bits) {
    Scalar in, out;
    in.integer = bits;
    EXPECT_FALSE(bool(program->run(in, out)));
    return out.real;
  }
  int64_t bits(double real) {
    Scalar in, out;
    in.real = real;
    EXPECT_FALSE(bool(program->run(in, out)));
    return out.integer & 255;
  }

private:
  Symbols symbols{{}};
  Scope scope{symbols};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<ScalarProgram> program;
};

const llvm::fltSemantics &semanticsOf(mlir::MLIRContext &context, int64_t coded) {
  return llvm::cast<mlir::FloatType>(onnx::elementTypeOf(&context, coded)).getFloatSemantics();
}

double decoded(const llvm::fltSemantics &semantics, int64_t code) {
  APFloat value(semantics, APInt(64, uint64_t(code)).trunc(APFloat::getSizeInBits(semantics)));
  if (value.isNaN())
    return value.isNegative() ? -NAN : NAN; // whose conversion from float8e8m0 is infinity in LLVM 22
  bool inexact;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToDouble();
}

TEST(Elements, EveryCodeIsDecodedExactly) {
  Context context;
  mlir::Builder b(&context.context);
  for (int64_t type : {kCoded[0], kCoded[1], kCoded[2], kCoded[3], kCoded[4], int64_t(Element::Float8E8M0)}) {
    Cast cast(b.getI8Type(), type, Element::Float, b.getF32Type());
    const llvm::fltSemantics &semantics = semanticsOf(context.context, type);
    for (int64_t code = 0; code < (1 << APFloat::getSizeInBits(semantics)); ++code) {
      double expected = decoded(semantics, code), got = cast.real(int8_t(code));
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got)
                                       : std::bit_cast<int64_t>(expected) == std::bit_cast<int64_t>(got))
          << onnx::elementTypeName(type) << " " << code << ": " << got << ", expected " << expected;
    }
  }
}

/// Codes, the numbers halfway between neighbours, and the floats beside both.
template <typename Float> std::vector<Float> samples(const llvm::fltSemantics &semantics) {
  std::vector<Float> result{0, Float(-0.0), Float(INFINITY), Float(-INFINITY), Float(1e30), Float(-1e30), Float(1e-30)};
  std::vector<double> codes;
  for (int64_t code = 0; code < (1 << APFloat::getSizeInBits(semantics)); ++code)
    if (double value = decoded(semantics, code); std::isfinite(value))
      codes.push_back(value);
  std::sort(codes.begin(), codes.end());
  codes.push_back(codes.back() * 1.0625);
  codes.push_back(codes.back() * 1.25);
  for (size_t i = 0; i + 1 < codes.size(); ++i)
    for (double value : {codes[i], (codes[i] + codes[i + 1]) / 2})
      for (Float x : {Float(value), std::nextafter(Float(value), Float(INFINITY)), std::nextafter(Float(value), Float(-INFINITY))})
        result.push_back(x);
  return result;
}

template <typename Float> void encodeAsApFloat(mlir::Type source, int64_t from, bool saturate) {
  for (int64_t type : kCoded) {
    const llvm::fltSemantics &semantics = semanticsOf(*source.getContext(), type);
    Cast cast(source, from, type, mlir::IntegerType::get(source.getContext(), 8), {saturate, "up"});
    APFloat largest = APFloat::getLargest(semantics);
    for (Float x : samples<Float>(semantics)) {
      APFloat value(x);
      bool inexact;
      value.convert(semantics, APFloat::rmNearestTiesToEven, &inexact);
      // Of what is too large APFloat makes infinity or NaN, and of types without either the largest number.
      bool beyond = !value.isFinite();
      if (beyond && (saturate || type == Element::Float4E2M1)) {
        value = largest;
        if (std::signbit(x))
          value.changeSign();
      }
      int64_t expected = int64_t(value.bitcastToAPInt().getZExtValue()), got = cast.bits(double(x));
      if (beyond && value.isNaN())
        EXPECT_TRUE(std::isnan(decoded(semantics, got))) << onnx::elementTypeName(type) << " " << x;
      else
        EXPECT_EQ(got, expected) << onnx::elementTypeName(type) << " " << x;
    }
    if (type != Element::Float4E2M1) {
      EXPECT_TRUE(std::isnan(decoded(semantics, cast.bits(NAN)))) << onnx::elementTypeName(type);
    }
  }
}

TEST(Elements, EncodingRoundsOnceToNearestEven) {
  Context context;
  mlir::Builder b(&context.context);
  for (bool saturate : {true, false}) {
    encodeAsApFloat<float>(b.getF32Type(), Element::Float, saturate);
    encodeAsApFloat<double>(b.getF64Type(), Element::Double, saturate);
  }
}

TEST(Elements, ScalesRoundUpDownOrToNearest) {
  Context context;
  mlir::Builder b(&context.context);
  auto cast = [&](raise::Rounding rounding) {
    return std::make_unique<Cast>(b.getF32Type(), Element::Float, Element::Float8E8M0, b.getI8Type(), rounding);
  };
  auto up = cast({true, "up"}), down = cast({true, "down"}), nearest = cast({false, "nearest"});
  const double tiny = 0x1p-127, largest = 0x1p127;
  EXPECT_EQ(up->bits(1), 127);
  EXPECT_EQ(up->bits(1.0001), 128);
  EXPECT_EQ(down->bits(1.9999), 127);
  EXPECT_EQ(nearest->bits(1.4999), 127);
  EXPECT_EQ(nearest->bits(1.5), 128);
  EXPECT_EQ(up->bits(tiny), 0);
  EXPECT_EQ(up->bits(tiny * 1.01), 1);
  EXPECT_EQ(down->bits(tiny * 1.99), 0);
  // The table of ONNX's Cast.
  EXPECT_EQ(up->bits(0), 0);
  EXPECT_EQ(up->bits(tiny / 2), 0);
  EXPECT_EQ(up->bits(largest * 1.5), 254);
  EXPECT_EQ(up->bits(INFINITY), 254);
  EXPECT_EQ(up->bits(NAN), 255);
  for (double bad : {0.0, tiny / 2, largest * 1.9, double(INFINITY), double(NAN)})
    EXPECT_EQ(nearest->bits(bad), 255) << bad;
}

TEST(Elements, SmallIntegersKeepTheirLowBits) {
  Context context;
  mlir::Builder b(&context.context);
  Cast toInt4(b.getF32Type(), Element::Float, Element::Int4, b.getI8Type());
  Cast toUInt4(b.getF32Type(), Element::Float, Element::UInt4, b.getI8Type());
  Cast toInt2(b.getF32Type(), Element::Float, Element::Int2, b.getI8Type());
  EXPECT_EQ(int8_t(toInt4.bits(-9)), 7);
  EXPECT_EQ(int8_t(toInt4.bits(15)), -1);
  EXPECT_EQ(toUInt4.bits(-9), 7);
  EXPECT_EQ(toUInt4.bits(15), 15);
  EXPECT_EQ(int8_t(toInt2.bits(3)), -1);
}

} // namespace
} // namespace otf::reference::test
