// SPDX-License-Identifier: Apache-2.0
//
// otf.compute: kernels with several results, loads, stores and every kind of control, against the reference
// interpreter, which also checks that work items do not meet.

#include "lib/Reference/Interpreter.h"
#include "test/Codegen/CPUEmit/Harness.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

namespace otf::test {
namespace {

class Compute : public LevelTest {};
OTF_LEVELS(Compute);

const std::string kernels = R"mlir(
// A running sum along each row, and whether it is negative.
plan.kernel @sums(%x: tensor<?x?xf32, #otf.dims<"d0", "d1">>)
    -> (tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  %y:2 = otf.compute "d0" : tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">> {
  ^bb0(%row: index, %sums: memref<?x?xf32>, %negative: memref<?xi1>):
    %n = otf.size "d1"
    %total = scf.for %i = %zero to %n step %one iter_args(%sum = %nothing) -> (f32) {
      %v = tensor.extract %x[%row, %i] : tensor<?x?xf32, #otf.dims<"d0", "d1">>
      %next = arith.addf %sum, %v : f32
      memref.store %next, %sums[%row, %i] : memref<?x?xf32>
      scf.yield %next : f32
    }
    %below = arith.cmpf olt, %total, %nothing : f32
    memref.store %below, %negative[%row] : memref<?xi1>
  }
  plan.return %y#0, %y#1 : tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">>
}
// Insertion sort of each row, in place: a while whose body stores what it loaded.
plan.kernel @sorted(%x: tensor<?x?xi64, #otf.dims<"d0", "d1">>) -> tensor<?x?xi64, #otf.dims<"d0", "d1">> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %no = arith.constant false
  %y = otf.compute "d0" : tensor<?x?xi64, #otf.dims<"d0", "d1">> {
  ^bb0(%row: index, %out: memref<?x?xi64>):
    %n = otf.size "d1"
    scf.for %i = %zero to %n step %one {
      %v = tensor.extract %x[%row, %i] : tensor<?x?xi64, #otf.dims<"d0", "d1">>
      %place = scf.while (%at = %i) : (index) -> index {
        %more = arith.cmpi sgt, %at, %zero : index
        %moves = scf.if %more -> (i1) {
          %before = arith.subi %at, %one : index
          %other = memref.load %out[%row, %before] : memref<?x?xi64>
          %greater = arith.cmpi sgt, %other, %v : i64
          scf.yield %greater : i1
        } else {
          scf.yield %no : i1
        }
        scf.condition(%moves) %at : index
      } do {
      ^bb0(%at: index):
        %before = arith.subi %at, %one : index
        %other = memref.load %out[%row, %before] : memref<?x?xi64>
        memref.store %other, %out[%row, %at] : memref<?x?xi64>
        scf.yield %before : index
      }
      memref.store %v, %out[%row, %place] : memref<?x?xi64>
    }
  }
  plan.return %y : tensor<?x?xi64, #otf.dims<"d0", "d1">>
}
)mlir";

/// What the reference says of `name` applied to one tensor.
std::vector<reference::Content> interpreted(const char *name, reference::Tensor x) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<OTFDialect, plan::PlanDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                      mlir::scf::SCFDialect, mlir::tensor::TensorDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kernels, &context);
  reference::Content content(std::move(x));
  const reference::Content *argument = &content;
  auto results = reference::interpretKernel(module->lookupSymbol<plan::KernelOp>(name), argument);
  if (!results) {
    ADD_FAILURE() << llvm::toString(results.takeError());
    return {};
  }
  return *results;
}

TEST_P(Compute, RunningSums) {
  OTF_KERNEL(sums, kernels, "sums");
  for (int64_t rows : {0, 1, 5})
    for (int64_t n : {0, 1, 7, 64}) {
      std::vector<float> x = floats(rows * n), y(rows * n);
      std::vector<uint8_t> negative(rows, 7);
      runRange(sums, {x.data(), y.data(), negative.data()}, {rows, n}, 0, rows);
      auto wanted = interpreted("sums", reference::Tensor::ofReals({rows, n}, {x.begin(), x.end()}));
      ASSERT_EQ(wanted.size(), 2u);
      for (int64_t i = 0; i < rows * n; ++i)
        expectNear(y[i], std::get<reference::Tensor>(wanted[0]).reals()[i], 2e-5, std::to_string(i));
      for (int64_t i = 0; i < rows; ++i)
        EXPECT_EQ(negative[i], std::get<reference::Tensor>(wanted[1]).integers()[i]);
    }
}

TEST_P(Compute, Sorts) {
  OTF_KERNEL(sorted, kernels, "sorted");
  int64_t rows = 9, n = 33;
  std::vector<int64_t> x(rows * n), y(rows * n);
  for (int64_t &value : x)
    value = below(20) - 10;
  // Work items in two calls, the later ones first.
  runRange(sorted, {x.data(), y.data()}, {rows, n}, 4, rows);
  runRange(sorted, {x.data(), y.data()}, {rows, n}, 0, 4);
  auto wanted = interpreted("sorted", reference::Tensor::ofIntegers({rows, n}, x));
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_EQ(y, std::get<reference::Tensor>(wanted[0]).integers());
}

} // namespace
} // namespace otf::test
