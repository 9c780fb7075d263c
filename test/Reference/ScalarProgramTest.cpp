// SPDX-License-Identifier: Apache-2.0
//
// Bodies, one element at a time: widths of integers, control flow, and refusals.

#include "lib/Reference/ScalarProgram.h"
#include "test/Reference/Model.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gtest/gtest.h>

#include <cmath>

namespace otf::reference::test {
namespace {

/// The body of a function of scalars, applied to arguments; the error's text in its place.
struct Outcome {
  Scalar value;
  std::string error;
};
Outcome evaluate(const std::string &signature, const std::string &body,
                 std::vector<Scalar> arguments) {
  Context context;
  auto module = context.parse("func.func @f" + signature + " {\n" + body + "\n}");
  if (!module)
    return {{}, context.complaints};
  Symbols symbols({{"s", 5}});
  Scope scope(symbols);
  mlir::Block &block = module->lookupSymbol<mlir::func::FuncOp>("f").getBody().front();
  auto program = ScalarProgram::compile(block, scope);
  if (!program)
    return {{}, llvm::toString(program.takeError())};
  Outcome outcome;
  if (llvm::Error error = program->run(arguments, outcome.value))
    outcome.error = llvm::toString(std::move(error));
  return outcome;
}

Scalar real(double value) {
  Scalar scalar;
  scalar.real = value;
  return scalar;
}
Scalar integer(int64_t value) {
  Scalar scalar;
  scalar.integer = value;
  return scalar;
}

TEST(ScalarProgram, ComputesFloatsInDouble) {
  auto got = evaluate("(%x: f32) -> f32", "%0 = math.exp %x : f32 return %0 : f32", {real(0.1)});
  EXPECT_EQ(got.value.real, std::exp(0.1));
}

TEST(ScalarProgram, IntegersWrapInTheirWidth) {
  auto got = evaluate("(%x: i8) -> i8", "%0 = arith.addi %x, %x : i8 return %0 : i8", {integer(100)});
  EXPECT_EQ(got.value.integer, -56);
}

TEST(ScalarProgram, TrueIsMinusOneAsSigned) {
  auto got = evaluate("(%x: i1) -> i32", "%0 = arith.extsi %x : i1 to i32 return %0 : i32", {integer(1)});
  EXPECT_EQ(got.value.integer, -1);
  got = evaluate("(%x: i1) -> i32", "%0 = arith.extui %x : i1 to i32 return %0 : i32", {integer(1)});
  EXPECT_EQ(got.value.integer, 1);
}

TEST(ScalarProgram, UnsignedReadsBits) {
  auto got = evaluate("(%x: i32) -> i32", "%0 = arith.divui %x, %x : i32 return %0 : i32", {integer(-1)});
  EXPECT_EQ(got.value.integer, 1);
  got = evaluate("(%x: i8) -> f32", "%0 = arith.uitofp %x : i8 to f32 return %0 : f32", {integer(-1)});
  EXPECT_EQ(got.value.real, 255);
}

TEST(ScalarProgram, DivisionRoundsAsItsNameSays) {
  for (auto [name, expected] : {std::pair("arith.divsi", -3), {"arith.floordivsi", -4}, {"arith.ceildivsi", -3},
                                {"arith.remsi", -1}}) {
    auto got = evaluate("(%x: index, %y: index) -> index",
                        std::string("%0 = ") + name + " %x, %y : index return %0 : index",
                        {integer(-7), integer(2)});
    EXPECT_EQ(got.value.integer, expected) << name << got.error;
  }
}

TEST(ScalarProgram, DivisionByZeroNamesTheOperation) {
  auto got = evaluate("(%x: i32, %y: i32) -> i32", "%0 = arith.divsi %x, %y : i32 return %0 : i32",
                      {integer(1), integer(0)});
  EXPECT_NE(got.error.find("'arith.divsi' divides by zero"), std::string::npos) << got.error;
}

TEST(ScalarProgram, NaNComparesUnordered) {
  for (auto [predicate, expected] : {std::pair("oeq", 0), {"une", 1}, {"ult", 1}, {"olt", 0}, {"uno", 1}}) {
    auto got = evaluate("(%x: f32) -> i1",
                        std::string("%0 = arith.cmpf ") + predicate + ", %x, %x : f32 return %0 : i1",
                        {real(NAN)});
    EXPECT_EQ(got.value.integer, expected) << predicate;
  }
}

TEST(ScalarProgram, LoopMayPermuteWhatItCarries) {
  auto got = evaluate("(%n: index, %a: f32, %b: f32) -> f32", R"mlir(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (f32, f32) {
      scf.yield %q, %p : f32, f32
    }
    return %x : f32)mlir", {integer(3), real(1), real(2)});
  EXPECT_EQ(got.value.real, 2) << got.error;
}

TEST(ScalarProgram, LoopThatDoesNotRunGivesItsStart) {
  auto got = evaluate("(%n: index, %a: f32) -> f32", R"mlir(
    %c1 = arith.constant 1 : index
    %x = scf.for %i = %n to %n step %c1 iter_args(%p = %a) -> (f32) {
      %z = arith.addf %p, %p : f32
      scf.yield %z : f32
    }
    return %x : f32)mlir", {integer(3), real(1)});
  EXPECT_EQ(got.value.real, 1) << got.error;
}

TEST(ScalarProgram, LoopWithStepZeroIsRefused) {
  auto got = evaluate("(%n: index, %z: index) -> index", R"mlir(
    scf.for %i = %z to %n step %z {
    }
    return %n : index)mlir", {integer(3), integer(0)});
  EXPECT_NE(got.error.find("'scf.for' does not advance"), std::string::npos) << got.error;
}

TEST(ScalarProgram, BranchesAndWhile) {
  auto got = evaluate("(%n: index) -> index", R"mlir(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = scf.while (%i = %c0) : (index) -> index {
      %small = arith.cmpi slt, %i, %n : index
      scf.condition(%small) %i : index
    } do {
    ^bb0(%i: index):
      %j = arith.addi %i, %c1 : index
      scf.yield %j : index
    }
    %big = arith.cmpi sgt, %x, %c1 : index
    %y = scf.if %big -> index {
      %z = arith.addi %x, %x : index
      scf.yield %z : index
    } else {
      scf.yield %c0 : index
    }
    return %y : index)mlir", {integer(4)});
  EXPECT_EQ(got.value.integer, 8) << got.error;
}

TEST(ScalarProgram, IndexDialect) {
  auto got = evaluate("(%n: index) -> index",
                      "%s = otf.size \"2*s + 1\" %0 = index.mul %n, %s %1 = index.sub %0, %n return %1 : index",
                      {integer(4)});
  EXPECT_EQ(got.value.integer, 40) << got.error;
}

TEST(ScalarProgram, UnknownSizeIsAnError) {
  auto got = evaluate("() -> index", "%s = otf.size \"t\" return %s : index", {});
  EXPECT_NE(got.error.find("'otf.size'"), std::string::npos) << got.error;
  EXPECT_NE(got.error.find("does not follow"), std::string::npos) << got.error;
}

} // namespace
} // namespace otf::reference::test
