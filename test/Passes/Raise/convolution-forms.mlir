// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// A channel's own convolution has channels last and its taps written out; places are moved inside and what lies outside counts
// as 0. A transposed convolution whose windows stand side by side is a linear of each position.
// CHECK: %[[W:.*]] = arith.constant dense<{{.*}}> : tensor<3x2xf32>
// CHECK: tensor.generate
// CHECK-NOT: scf.for
// CHECK-COUNT-3: tensor.extract %[[W]]
// CHECK: {otf.keeps_order}
// CHECK: %[[M:.*]] = otf.use @{{.*}} : !otf.matrix<6x2, #otf.encoding<f32>>
// CHECK: otf.linear %{{.*}}, %[[M]] : (tensor<1x5x2xf32>, !otf.matrix<6x2, #otf.encoding<f32>>) -> tensor<1x5x6xf32>
// CHECK: arith.remui
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = dense<[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]> : tensor<2x1x3xf32>
  onnx.initializer @t = #onnx.blob<file = 0, offset = 0, length = 48, type = 1, dims = [2, 3, 2]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 2, 5]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %t = onnx.get @t
    %0 = onnx.node "Conv" version 11 (%x, %w) {group = 2 : i64, pads = array<i64: 1, 1>}
    %1 = onnx.node "ConvTranspose" version 11 (%0, %t) {strides = array<i64: 2>}
    return %1 : !onnx.value
  }
}
