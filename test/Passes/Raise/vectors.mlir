// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// A linear takes a vector as it is; the indices of a gather, however they are shaped, are limited where they
// come in.
// CHECK: func.func @main(%[[X:.*]]: tensor<32xf32> {otf.name = "x"}, %{{.*}}: tensor<2xi64> {otf.limit = 5 : i64, otf.name = "i"}
// CHECK-SAME: -> (tensor<4xf32> {{.*}}, tensor<2x1xf32>
// CHECK: otf.linear %[[X]], %{{.*}} -> tensor<4xf32>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 512, type = 1, dims = [32, 4]>
  onnx.initializer @down = dense<[2, 1]> : tensor<2xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [32]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2]},
                  %t: !onnx.value {onnx.name = "t", onnx.type = 1 : i64, onnx.dims = [5]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %down = onnx.get @down
    %0 = onnx.node "MatMul" version 13 (%x, %w)
    %1 = onnx.node "Reshape" version 13 (%i, %down)
    %2 = onnx.node "Gather" version 13 (%t, %1)
    return %0, %2 : !onnx.value, !onnx.value
  }
}
