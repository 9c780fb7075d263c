// SPDX-License-Identifier: Apache-2.0
//
// otf.compute in the interpreter: what it gives, and that a body which breaks its promises is found.

#include "test/Reference/Model.h"

#include <gtest/gtest.h>

namespace otf::reference::test {
namespace {

/// A kernel on x: tensor<4xi64> whose body is `body`; its result, or the error's text.
std::string run(const std::string &body, std::vector<int64_t> &result, int64_t extent = 4) {
  Context context;
  auto module = context.parse(R"mlir(
func.func @main(%x: tensor<4xi64> {otf.name = "x"}) -> (tensor<4xi64> {otf.name = "y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %y = otf.compute ")mlir" + std::to_string(extent) + R"mlir(" : tensor<4xi64> {
  ^bb0(%i: index, %out: memref<4xi64>):
    %v = tensor.extract %x[%i] : tensor<4xi64>
    )mlir" + body + R"mlir(
  }
  return %y : tensor<4xi64>
})mlir");
  if (!module)
    return context.complaints;
  auto files = FileSet::in(".");
  if (!files)
    return llvm::toString(files.takeError());
  States states;
  auto results = interpret(*module, *files, {{"x", Tensor::ofIntegers({4}, {3, 1, 4, 1})}}, states);
  if (!results)
    return llvm::toString(results.takeError());
  result = results->at("y").integers();
  return "";
}

void expectError(const std::string &body, const std::string &part, int64_t extent = 4) {
  std::vector<int64_t> result;
  std::string error = run(body, result, extent);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(Compute, AnItemLoadsWhatItStored) {
  std::vector<int64_t> result;
  EXPECT_EQ(run(R"mlir(memref.store %v, %out[%i] : memref<4xi64>
                       %w = memref.load %out[%i] : memref<4xi64>
                       %s = arith.addi %v, %w : i64
                       memref.store %s, %out[%i] : memref<4xi64>)mlir", result), "");
  EXPECT_EQ(result, (std::vector<int64_t>{6, 2, 8, 2}));
}

TEST(Compute, ItemsThatMeetAreFound) {
  expectError("memref.store %v, %out[%zero] : memref<4xi64>", "another work item stored");
  expectError("memref.store %v, %out[%i] : memref<4xi64>\n"
              "%j = arith.remui %four, %four : index\n"
              "%w = memref.load %out[%j] : memref<4xi64>", "not stored");
}

TEST(Compute, ALoadBeforeItsStoreIsFound) {
  expectError("%w = memref.load %out[%i] : memref<4xi64>\n"
              "memref.store %w, %out[%i] : memref<4xi64>", "not stored");
}

TEST(Compute, MissingElementsAreFound) {
  expectError("memref.store %v, %out[%i] : memref<4xi64>", "only some elements", 3);
}

TEST(Compute, AStoreOutsideIsFound) {
  expectError("%j = arith.addi %i, %one : index\n"
              "memref.store %v, %out[%j] : memref<4xi64>", "outside of its sizes");
}

} // namespace
} // namespace otf::reference::test
