// SPDX-License-Identifier: Apache-2.0
//
// Runs any pass or pipeline on textual IR, for tests and people. It registers what the project uses
// and nothing else: all of MLIR would make it fourteen times as large. For upstream passes there is
// mlir-opt.

#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/Plan/Plan.h"
#include "lib/Compile/WeightRows.h"
#include "passes/Passes.h"
#include "passes/Raise/Raise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<otf::onnx::ONNXDialect, otf::OTFDialect, otf::plan::PlanDialect,
                  mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::index::IndexDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect>();
  mlir::registerCSEPass();
  otf::registerRaisePasses();
  otf::registerOtfPasses(otf::reopenWeights());
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "OTF pass and pipeline runner\n", registry));
}
