// SPDX-License-Identifier: Apache-2.0
//
// Runs any pass or pipeline on textual IR, for tests and people. It registers what the project uses
// and nothing else: all of MLIR would make it fourteen times as large. For upstream passes there is
// mlir-opt.

#include "dialects/Plan/Plan.h"
#include "passes/Passes.h"
#ifdef OTF_HAS_ONNX
#include "dialects/ONNX/ONNXDialect.h"
#endif
#ifdef OTF_HAS_RAISE
#include "passes/Raise/Raise.h"
#endif
#ifdef OTF_HAS_WEIGHT_ROWS
#include "lib/Compile/WeightRows.h"
#endif

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
  registry.insert<otf::OTFDialect, otf::plan::PlanDialect, mlir::arith::ArithDialect,
                  mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::index::IndexDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect>();
#ifdef OTF_HAS_ONNX
  registry.insert<otf::onnx::ONNXDialect>();
#endif
  mlir::registerCSEPass();
#ifdef OTF_HAS_RAISE
  otf::registerRaisePasses();
#endif
#ifdef OTF_HAS_WEIGHT_ROWS
  otf::registerOtfPasses(otf::reopenWeights());
#else
  otf::registerOtfPasses();
#endif
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "OTF pass and pipeline runner\n", registry));
}
