// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// Shape arithmetic leaves nothing to run: the target of the reshape is known from the input's sizes.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x?xi64, #otf.dims<"batch", "2*seq">> {otf.name = "x"}
// CHECK: %[[R:.*]] = otf.reshape %arg0
// CHECK-SAME: -> tensor<?x2x?xi64, #otf.dims<"batch", "seq">>
// CHECK-NEXT: return %[[R]]
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @zero = dense<[0]> : tensor<1xi64>
  onnx.initializer @rest = dense<[2, -1]> : tensor<2xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 7 : i64, onnx.dims = ["batch", "2*seq"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 7 : i64}) {
    %zero = onnx.get @zero
    %rest = onnx.get @rest
    %0 = onnx.node "Shape" version 18 (%x)
    %1 = onnx.node "Gather" version 18 (%0, %zero) {axis = 0 : i64}
    %2 = onnx.node "Concat" version 18 (%1, %rest) {axis = 0 : i64}
    %3 = onnx.node "Reshape" version 18 (%x, %2)
    return %3 : !onnx.value
  }
}
