// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-import | FileCheck %s --check-prefix=RAISED
// RUN: otf-opt %s --otf-import --otf-plan | FileCheck %s --check-prefix=PLANNED
// RUN: otf-opt %s --otf-import --otf-plan --otf-verify-stage=planned

// A shape that is an input is computed (0 and −1 are what ONNX says), its elements become symbols, and memory
// of these sizes is known from then on.
// RAISED: %[[SHAPE:.*]] = tensor.generate
// RAISED: otf.bind %[[SHAPE]] ["reshape_0", "reshape_1"] : tensor<2xi64>
// RAISED: otf.reshape %{{.*}} {checked} : tensor<?x4xf32, #otf.dims<"n">> -> tensor<?x?xf32, #otf.dims<"reshape_0", "reshape_1">>
// PLANNED: %[[MEMORY:.*]] = plan.alloc {slot = 0 : i64} : <tensor<2xi64>>
// PLANNED-NEXT: plan.launch @generate_0(%{{.*}}) outs(%[[MEMORY]])
// PLANNED-NEXT: plan.bind %[[MEMORY]] ["reshape_0", "reshape_1"]
// PLANNED: plan.launch @generate_1({{.*}}) {{.*}} {extent = "reshape_0"
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 4]},
                  %shape: !onnx.value {onnx.name = "shape", onnx.type = 7 : i64, onnx.dims = [2]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Reshape" version 19 (%x, %shape)
    %1 = onnx.node "Neg" version 13 (%0)
    return %1 : !onnx.value
  }
}
