// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A norm over several last axes is otf.norm of rows that hold them all.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = otf.reshape %arg0 : tensor<?x4x8xf32, #otf.dims<"n">> -> tensor<?x32xf32, #otf.dims<"n">>
// CHECK: otf.norm layer %[[X]] scale
// CHECK-SAME: tensor<32xf32>
// CHECK-NOT: tensor.generate
// CHECK: return
module attributes {onnx.files = ["m"]} {
  onnx.initializer @g = #onnx.blob<file = 0, offset = 0, length = 128, type = 1, dims = [4, 8]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 4, 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %g = onnx.get @g
    %0 = onnx.node "LayerNormalization" version 17 (%x, %g) {axis = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: otf.norm rms %arg0 scale
module attributes {onnx.files = ["m"]} {
  onnx.initializer @g = #onnx.blob<file = 0, offset = 0, length = 128, type = 1, dims = [32]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 32]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %g = onnx.get @g
    %0 = onnx.node "RMSNormalization" version 23 (%x, %g)
    return %0 : !onnx.value
  }
}

// -----

// Groups are rows too; gains follow by channel.
// CHECK-LABEL: func.func @main
// CHECK: otf.norm layer
// CHECK-SAME: tensor<?x2x16xf32
// CHECK: tensor.generate
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["n", 4, 8]},
                  %g: !onnx.value {onnx.name = "g", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "GroupNormalization" version 21 (%x, %g, %g) {num_groups = 2 : i64}
    return %0 : !onnx.value
  }
}
