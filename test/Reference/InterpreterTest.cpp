// SPDX-License-Identifier: Apache-2.0
//
// Small modules from text: sizes, caches, weights from a file, and what is refused, with its words.

#include "test/Reference/Fixture.h"
#include "test/Reference/Model.h"

#include <gtest/gtest.h>

#include <cstring>

namespace otf::reference::test {
namespace {

struct Outcome {
  Tensors results;
  std::string error;
};

Outcome run(const std::string &text, Tensors inputs, States &states, std::vector<float> file = {}) {
  Context context;
  auto module = context.parse(text);
  if (!module)
    return {{}, context.complaints};
  auto files = FileSet::in(".");
  if (!files)
    return {{}, llvm::toString(files.takeError())};
  std::vector<std::byte> bytes(file.size() * 4);
  std::memcpy(bytes.data(), file.data(), bytes.size());
  files->addPacked("weights", std::move(bytes));
  auto results = interpret(*module, *files, inputs, states);
  if (!results)
    return {{}, llvm::toString(results.takeError())};
  return {*results, ""};
}

Outcome run(const std::string &text, Tensors inputs, std::vector<float> file = {}) {
  States states;
  return run(text, std::move(inputs), states, std::move(file));
}

void expectError(const Outcome &outcome, const std::string &part) {
  EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
}

const std::string sum = R"mlir(
func.func @main(%x: tensor<?x?xf32, #otf.dims<"b", "p + s">> {otf.name = "x"}, %y: tensor<?xf32, #otf.dims<"s">> {otf.name = "y"})
    -> (tensor<?xf32, #otf.dims<"p">> {otf.name = "z"}) {
  %p = otf.size "p"
  %z = tensor.generate %p {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %a = tensor.extract %x[%c0, %i] : tensor<?x?xf32, #otf.dims<"b", "p + s">>
    %b = tensor.extract %y[%i] : tensor<?xf32, #otf.dims<"s">>
    %c = arith.addf %a, %b : f32
    tensor.yield %c : f32
  } : tensor<?xf32, #otf.dims<"p">>
  return %z : tensor<?xf32, #otf.dims<"p">>
})mlir";

TEST(Interpreter, SizesFollowFromShapes) {
  Outcome got = run(sum, {{"x", Tensor::ofReals({1, 3}, {1, 2, 3})}, {"y", Tensor::ofReals({2}, {10, 20})}});
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.results["z"].reals(), (std::vector<double>{11}));
}

TEST(Interpreter, ReadOutsideNamesTheOperation) {
  Outcome got = run(sum, {{"x", Tensor::zeros({1, 3}, true)}, {"y", Tensor::zeros({1}, true)}});
  expectError(got, "'tensor.extract' reads outside of its tensor");
}

TEST(Interpreter, ShapesThatContradictAreAnError) {
  Outcome got = run(sum, {{"x", Tensor::zeros({1, 3}, true)}, {"y", Tensor::zeros({4}, true)}});
  expectError(got, "input x of shape [1, 3] has 3 where p + s was expected");
}

TEST(Interpreter, MissingAndUnknownInputsAreErrors) {
  expectError(run(sum, {{"x", Tensor::zeros({1, 3}, true)}}), "input y is missing");
  Tensor x = Tensor::zeros({1, 3}, true), y = Tensor::zeros({1}, true);
  expectError(run(sum, {{"x", x}, {"y", y}, {"w", y}}), "there is no input w");
  expectError(run(sum, {{"x", Tensor::zeros({1, 3}, false)}, {"y", y}}), "wrong element type");
  expectError(run(sum, {{"x", Tensor::zeros({3}, true)}, {"y", y}}), "must have rank 2, got [3]");
}

TEST(Interpreter, OperationWithoutMeaningIsNamed) {
  Outcome got = run(R"mlir(
func.func @main(%x: tensor<2xf32> {otf.name = "x"}) -> (tensor<2xf32> {otf.name = "y"}) {
  %y = arith.addf %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
})mlir", {{"x", Tensor::zeros({2}, true)}});
  expectError(got, "'arith.addf' has no meaning");
}

TEST(Interpreter, TypeThatPromisesOtherSizesIsAnError) {
  Outcome got = run(R"mlir(
func.func @main(%x: tensor<?xf32, #otf.dims<"s">> {otf.name = "x"}) -> (tensor<?xf32, #otf.dims<"s">> {otf.name = "y"}) {
  %n = otf.size "2*s"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    tensor.yield %c : f32
  } : tensor<?xf32, #otf.dims<"s">>
  return %y : tensor<?xf32, #otf.dims<"s">>
})mlir", {{"x", Tensor::zeros({2}, true)}});
  expectError(got, "'tensor.generate' has a value that is not what its type says: sizes 4, not 2");
}

TEST(Interpreter, CachesGrow) {
  const char *text = R"mlir(
otf.cache @key : !otf.state<1x2xf32> {input = "past", output = "present"}
func.func @main(%x: tensor<?x1x?x2xf32, #otf.dims<"b", "s">> {otf.name = "x"})
    -> (tensor<?x1x?x2xf32, #otf.dims<"b", "past + s">> {otf.name = "y"}) {
  %p = otf.state @key : !otf.state<1x2xf32>
  %k = otf.append %p, %x : (!otf.state<1x2xf32>, tensor<?x1x?x2xf32, #otf.dims<"b", "s">>) -> !otf.state<1x2xf32>
  %y = otf.read %k : (!otf.state<1x2xf32>) -> tensor<?x1x?x2xf32, #otf.dims<"b", "past + s">>
  return %y : tensor<?x1x?x2xf32, #otf.dims<"b", "past + s">>
})mlir";
  States states;
  EXPECT_EQ(run(text, {{"x", Tensor::ofReals({1, 1, 1, 2}, {1, 2})}}, states).error, "");
  Outcome second = run(text, {{"x", Tensor::ofReals({1, 1, 2, 2}, {3, 4, 5, 6})}}, states);
  EXPECT_EQ(second.error, "");
  EXPECT_EQ(states["past"].reals(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(second.results["y"].shape, (Shape{1, 1, 3, 2}));
  states["other"] = states["past"];
  expectError(run(text, {{"x", Tensor::zeros({1, 1, 1, 2}, true)}}, states), "there is no cache other");
}

std::string product(const std::string &attributes, const std::string &encoding) {
  return R"mlir(
otf.weight @g : tensor<2xf32> = #otf.blob<file = 0, offset = 16, length = 8, type = f32>
otf.weight @w : tensor<2x2xf32> = #otf.blob<file = 0, offset = 0, length = 16, type = f32)mlir" +
         attributes + R"mlir(
func.func @main(%x: tensor<?x2xf32, #otf.dims<"s">> {otf.name = "x"}) -> (tensor<?x2xf32, #otf.dims<"s">> {otf.name = "y"}) {
  %w = otf.use @w : !otf.matrix<2x2, #otf.encoding<)mlir" +
         encoding + R"mlir(>>
  %y = otf.linear %x, %w : (tensor<?x2xf32, #otf.dims<"s">>, !otf.matrix<2x2, #otf.encoding<)mlir" +
         encoding + R"mlir(>>) -> tensor<?x2xf32, #otf.dims<"s">> epilogue {
  ^bb0(%sum: f32, %i: index, %n: index):
    %twice = arith.addf %sum, %sum : f32
    otf.yield %twice : f32
  }
  return %y : tensor<?x2xf32, #otf.dims<"s">>
})mlir";
}

TEST(Interpreter, WeightsAreTurnedFoldedAndDecoded) {
  Tensors inputs = {{"x", Tensor::ofReals({1, 2}, {1, 1})}};
  std::vector<float> file = {1, 2, 3, 4, 10, 100};
  auto y = [&](const std::string &text) { return run(text, inputs, file).results["y"].reals(); };
  EXPECT_EQ(y(product(">", "f32")), (std::vector<double>{6, 14}));
  EXPECT_EQ(y(product(", transposed>", "f32")), (std::vector<double>{8, 12}));
  EXPECT_EQ(y(product("> {scale = @g}", "f32")), (std::vector<double>{420, 860}));
  // A decision does nothing until the type follows it.
  EXPECT_EQ(y(product("> {encoding = #otf.encoding<int4, group = 32>}", "f32")), (std::vector<double>{6, 14}));
  file[0] = 1.0f / 3;
  EXPECT_EQ(y(product(">", "f16"))[0], 2 * (double(0x1.554p-2) + 2));
}

TEST(Interpreter, WeightOutsideOfItsFileNamesTheUse) {
  expectError(run(product(">", "f32"), {{"x", Tensor::zeros({1, 2}, true)}}, {1, 2}), "'otf.use' cannot read @w");
}

const char *const kernels = R"mlir(
plan.kernel @double(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?xf32, #otf.dims<"d1">> {
  %n = otf.size "d1"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %a = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"d0">>
    %b = arith.addf %a, %a : f32
    tensor.yield %b : f32
  } : tensor<?xf32, #otf.dims<"d1">>
  plan.return %y : tensor<?xf32, #otf.dims<"d1">>
})mlir";

TEST(InterpretKernel, TakesSizesThatArgumentsDoNotGive) {
  Context context;
  auto module = context.parse(kernels);
  auto kernel = module->lookupSymbol<plan::KernelOp>("double");
  Content x = Tensor::ofReals({3}, {1, 2, 3});
  auto got = interpretKernel(kernel, {&x}, {{"d1", 2}});
  ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
  EXPECT_EQ(std::get<Tensor>(got->front()).reals(), (std::vector<double>{2, 4}));
  auto unknown = interpretKernel(kernel, {&x});
  ASSERT_FALSE(unknown);
  Outcome outcome{{}, llvm::toString(unknown.takeError())};
  expectError(outcome, "the size d1 does not follow");
}

TEST(InterpretKernel, ArgumentsThatDoNotFitAreErrors) {
  Context context;
  auto module = context.parse(kernels);
  auto kernel = module->lookupSymbol<plan::KernelOp>("double");
  Content x = Tensor::zeros({3}, false), matrix = Matrix();
  for (std::vector<const Content *> arguments :
       {std::vector<const Content *>{&x}, {&matrix}, {nullptr}, {}}) {
    auto got = interpretKernel(kernel, arguments, {{"d0", 3}, {"d1", 2}});
    EXPECT_FALSE(got);
    llvm::consumeError(got.takeError());
  }
}

} // namespace
} // namespace otf::reference::test
