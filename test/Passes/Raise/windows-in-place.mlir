// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A convolution reads its windows in place, from its input with channels last.
// CHECK: otf.weight @{{.*}} : tensor<4x72xf32> {{.*}} {otf.taps = 9 : i64}
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tensor.generate
// CHECK: } : tensor<1x6x6x8xf32>
// CHECK: otf.linear %[[X]], %{{.*}} {window = #otf.window<[3, 3] stride[2, 1] dilation[1, 1] before[1, 1]>} : (tensor<1x6x6x8xf32>, !otf.matrix<4x72, #otf.encoding<f32>>) -> tensor<1x3x6x4xf32>
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 1152, type = 1, dims = [4, 8, 3, 3]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 8, 6, 6]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %0 = onnx.node "Conv" version 11 (%x, %w) {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 1>}
    return %0 : !onnx.value
  }
}

// -----

// Of one tap and stride 1 there are no windows; taps of two channels, two along the last axis, are written.
// CHECK-LABEL: func.func @main
// CHECK: otf.linear %{{.*}}, %{{.*}} : (tensor<1x6x6x2xf32>
// CHECK: tensor.generate
// CHECK: } : tensor<1x5x5x2x2x2xf32>
// CHECK: otf.linear %{{.*}}, %{{.*}} : (tensor<1x5x5x8xf32>
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @p = #onnx.blob<file = 0, offset = 0, length = 16, type = 1, dims = [2, 2, 1, 1]>
  onnx.initializer @w = #onnx.blob<file = 0, offset = 64, length = 128, type = 1, dims = [4, 2, 2, 2]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 2, 6, 6]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %p = onnx.get @p
    %w = onnx.get @w
    %0 = onnx.node "Conv" version 11 (%x, %p) {}
    %1 = onnx.node "Conv" version 11 (%0, %w) {}
    return %1 : !onnx.value
  }
}
