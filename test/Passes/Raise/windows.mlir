// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A convolution is a sum over channels and taps. Only taps that may lie outside the input are guarded.
// CHECK-LABEL: func.func @main
// CHECK: tensor.generate
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if
// CHECK: tensor.extract %arg0
// CHECK: } : tensor<?x4x8xf32, #otf.dims<"n">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 3, 8]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = [4, 3, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Conv" version 18 (%x, %w) {auto_pad = "SAME_UPPER"}
    return %0 : !onnx.value
  }
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
// CHECK: } : tensor<?x3x4xf32, #otf.dims<"n">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 3, 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "MaxPool" version 18 (%x) {kernel_shape = array<i64: 2>, strides = array<i64: 2>}
    return %0 : !onnx.value
  }
}

// -----

// Where a stride leaves a size that is no polynomial, a bind computes it when the plan runs.
// CHECK-LABEL: func.func @main
// CHECK: otf.bind
// CHECK-SAME: "window_0"
// CHECK: return %{{.*}} : tensor<1x3x?xf32, #otf.dims<"window_0">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 3, "s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "MaxPool" version 18 (%x) {kernel_shape = array<i64: 2>, strides = array<i64: 2>}
    return %0 : !onnx.value
  }
}

// -----

// By a constant weight it is a linear of its windows, channels last.
// CHECK: otf.weight @w : tensor<4x9xf32>
// CHECK-SAME: otf.taps = 3
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tensor.generate
// CHECK: } : tensor<?x8x3xf32, #otf.dims<"n">>
// CHECK: %[[W:.*]] = otf.use @w : !otf.matrix<4x9, #otf.encoding<f32>>
// CHECK: otf.linear %[[X]], %[[W]] {window = #otf.window<[3] stride[1] dilation[1] before[1]>} : {{.*}} -> tensor<?x8x4xf32, #otf.dims<"n">>
// CHECK: } : tensor<?x4x8xf32, #otf.dims<"n">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 144, type = 1, dims = [4, 3, 3]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 3, 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %0 = onnx.node "Conv" version 18 (%x, %w) {pads = array<i64: 1, 1>}
    return %0 : !onnx.value
  }
}
