// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// A broadcast reads index 0 of the dimension of size 1; the loop space is the result's.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[ROWS:.*]] = otf.size "rows"
// CHECK: tensor.generate %[[ROWS]]
// CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[A:.*]] = tensor.extract %arg0[%[[I]], %[[J]]]
// CHECK: %[[B:.*]] = tensor.extract %arg1[%[[I]], %{{.*}}]
// CHECK: arith.addf %[[A]], %[[B]]
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 4]},
                  %c: !onnx.value {onnx.name = "c", onnx.type = 1 : i64, onnx.dims = ["rows", 1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Add" version 18 (%x, %c)
    return %0 : !onnx.value
  }
}
