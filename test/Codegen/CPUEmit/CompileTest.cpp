// SPDX-License-Identifier: Apache-2.0
//
// Properties of objects, and what a user is told when there is none.

#include "test/Codegen/CPUEmit/Harness.h"

namespace otf::test {
namespace {

/// One elementwise kernel; `body` computes %r from %v: f32.
std::string elementwise(const std::string &body, const std::string &name = "map") {
  return "plan.kernel @" + name +
         R"mlir((%x: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %v = tensor.extract %x[%i, %j] : tensor<?x64xf32, #otf.dims<"d0">>
)mlir" + body +
         R"mlir(
    tensor.yield %r : f32
  } : tensor<?x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
)mlir";
}

void expectFailure(const std::string &text, const std::string &level, const std::string &message) {
  Compilation result = compile(text, level);
  EXPECT_TRUE(result.object.empty());
  EXPECT_NE(result.diagnostics.find(message), std::string::npos) << result.diagnostics;
}

TEST(Compile, SameBytesTwice) {
  std::string text = elementwise("    %r = math.exp %v : f32") +
                     elementwise("    %r = math.atan %v : f32", "other");
  for (const char *level : {"avx2", "avx512vnni"}) {
    Compilation first = compile(text, level), second = compile(text, level);
    EXPECT_FALSE(first.object.empty()) << first.diagnostics;
    EXPECT_EQ(first.object, second.object);
  }
}

TEST(Compile, NoKernels) { EXPECT_FALSE(compile("module {}", "avx2").object.empty()); }

TEST(Compile, LoopsOverOurFunctionsAreVectors) {
  for (const char *function : {"exp", "tanh", "erf", "log"}) {
    std::string text =
        llvmText(elementwise(std::string("    %r = math.") + function + " %v : f32"), "avx2", true);
    EXPECT_NE(text.find("<8 x float>"), std::string::npos) << function;
    EXPECT_EQ(text.find("call float @otf_"), std::string::npos) << function;
  }
}

TEST(Compile, SumsAreVectors) {
  std::string text = llvmText(R"mlir(
plan.kernel @sum(%x: tensor<?x640xf32, #otf.dims<"d0">>) -> tensor<?x1xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %width = arith.constant 640 : index
  %nothing = arith.constant 0.0 : f32
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %sum = scf.for %k = %zero to %width step %one iter_args(%c = %nothing) -> (f32) {
      %v = tensor.extract %x[%i, %k] : tensor<?x640xf32, #otf.dims<"d0">>
      %s = arith.addf %c, %v : f32
      scf.yield %s : f32
    }
    tensor.yield %sum : f32
  } : tensor<?x1xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x1xf32, #otf.dims<"d0">>
})mlir",
                              "avx2", true);
  EXPECT_NE(text.find("<8 x float>"), std::string::npos) << text;
}

TEST(Compile, EpiloguesAreVectors) {
  // 20 outputs: the ragged last tile must not cost the others their vectors.
  std::string text = llvmText(R"mlir(
plan.kernel @linear(%x: tensor<?x32xf32, #otf.dims<"d0">>, %w: !otf.matrix<20x32, #otf.encoding<f32>>) -> tensor<?x20xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x32xf32, #otf.dims<"d0">>, !otf.matrix<20x32, #otf.encoding<f32>>) -> tensor<?x20xf32, #otf.dims<"d0">> epilogue {
  ^bb0(%v: f32, %i: index, %n: index):
    %t = math.tanh %v : f32
    otf.yield %t : f32
  }
  plan.return %y : tensor<?x20xf32, #otf.dims<"d0">>
})mlir",
                              "avx2", true);
  EXPECT_NE(text.find("fdiv <8 x float>"), std::string::npos) << text;
}

TEST(Compile, GeneratedTextIsBeforeLinking) {
  std::string text = llvmText(elementwise("    %r = math.exp %v : f32"), "avx2", false);
  EXPECT_NE(text.find("declare float @otf_exp(float)"), std::string::npos) << text;
  EXPECT_NE(text.find("define void @map(ptr"), std::string::npos) << text;
}

TEST(Compile, UnknownLevel) {
  expectFailure(elementwise("    %r = math.exp %v : f32"), "sse9",
                "no instruction set level \"sse9\"; there are avx2 and avx512vnni");
}

TEST(Compile, FunctionThatNoRuntimeProvides) {
  // Division of i128 is a function of the compiler's own library.
  expectFailure(R"mlir(
plan.kernel @wide(%x: tensor<?xi128, #otf.dims<"d0">>) -> tensor<?xi128, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %v = tensor.extract %x[%i] : tensor<?xi128, #otf.dims<"d0">>
    %r = arith.divsi %v, %v : i128
    %s = arith.remsi %r, %v : i128
    %t = arith.divui %s, %r : i128
    tensor.yield %t : i128
  } : tensor<?xi128, #otf.dims<"d0">>
  plan.return %y : tensor<?xi128, #otf.dims<"d0">>
})mlir",
                "avx2", "which no runtime provides");
}

TEST(Compile, ForeignTensor) {
  expectFailure(R"mlir(
plan.kernel @two(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %z = tensor.generate %n {
  ^bb0(%i: index):
    %v = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"d0">>
    tensor.yield %v : f32
  } : tensor<?xf32, #otf.dims<"d0">>
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %v = tensor.extract %z[%i] : tensor<?xf32, #otf.dims<"d0">>
    tensor.yield %v : f32
  } : tensor<?xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?xf32, #otf.dims<"d0">>
})mlir",
                "avx2", "cannot be part of a kernel's scalar program");
}

TEST(Compile, UnknownSize) {
  expectFailure(R"mlir(
plan.kernel @sized(%x: tensor<?xf32, #otf.dims<"length">>) -> tensor<?xf32, #otf.dims<"length">> {
  %n = otf.size "length"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %v = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"length">>
    tensor.yield %v : f32
  } : tensor<?xf32, #otf.dims<"length">>
  plan.return %y : tensor<?xf32, #otf.dims<"length">>
})mlir",
                "avx2", "the kernel has no size \"length\"");
}

TEST(Compile, NameOfALibraryFunction) {
  expectFailure(elementwise("    %r = math.exp %v : f32", "otf_exp"), "avx2",
                "cannot be called otf_exp");
}

TEST(Compile, EncodedWeightWithoutRecords) {
  expectFailure(R"mlir(
plan.kernel @raw(%x: tensor<?x8xi8, #otf.dims<"d0">>, %w: !otf.matrix<8x8, #otf.encoding<int4, group = 48>>) -> tensor<?x8xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x8xi8, #otf.dims<"d0">>, !otf.matrix<8x8, #otf.encoding<int4, group = 48>>) -> tensor<?x8xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x8xf32, #otf.dims<"d0">>
})mlir",
                "avx2", "multiple of 32");
}

} // namespace
} // namespace otf::test
