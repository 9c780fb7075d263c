// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// x / sqrt(mean(x²) + epsilon) · gain, however it is spelled, is one norm.
// CHECK-LABEL: func.func @main
// CHECK: %[[GAIN:.*]] = otf.use @gain : tensor<32xf32>
// CHECK: %[[Y:.*]] = otf.norm rms %arg0 scale %[[GAIN]] {epsilon = 9.99999997E-7 : f32}
// CHECK-NOT: tensor.generate
// CHECK: return %[[Y]]
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @gain = #onnx.blob<file = 0, offset = 0, length = 128, type = 1, dims = [32]>
  onnx.initializer @two = dense<2.0> : tensor<f32>
  onnx.initializer @one = dense<1.0> : tensor<f32>
  onnx.initializer @eps = dense<1.0e-6> : tensor<f32>
  onnx.initializer @axes = dense<[-1]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 32]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %gain = onnx.get @gain
    %two = onnx.get @two
    %one = onnx.get @one
    %eps = onnx.get @eps
    %axes = onnx.get @axes
    %0 = onnx.node "Pow" version 18 (%x, %two)
    %1 = onnx.node "ReduceMean" version 18 (%0, %axes) {keepdims = 1 : i64}
    %2 = onnx.node "Add" version 18 (%1, %eps)
    %3 = onnx.node "Sqrt" version 18 (%2)
    %4 = onnx.node "Div" version 18 (%one, %3)
    %5 = onnx.node "Mul" version 18 (%x, %4)
    %6 = onnx.node "Mul" version 18 (%gain, %5)
    return %6 : !onnx.value
  }
}
