// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// Two query heads share one cached head. The cache is found by dataflow; its length becomes the symbol "past".
// CHECK-LABEL: module
// CHECK-DAG: otf.cache @k0 : !otf.state<1x8xf32> {input = "k0", output = "k1"}
// CHECK-DAG: otf.cache @v0 : !otf.state<1x8xf32> {input = "v0", output = "v1"}
// CHECK: func.func @main
// CHECK-DAG: %[[KP:.*]] = otf.state @k0
// CHECK-DAG: %[[VP:.*]] = otf.state @v0
// CHECK-DAG: %[[K:.*]] = otf.append %[[KP]]
// CHECK-DAG: %[[V:.*]] = otf.append %[[VP]]
// CHECK: otf.attention %{{.*}}, %[[K]], %[[V]] {scale = 2.500000e-01 : f32}
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @scale = dense<0.5> : tensor<f32>
  onnx.initializer @two = dense<[2]> : tensor<1xi64>
  onnx.initializer @wide = dense<[1, 1, 2, 1, 1]> : tensor<5xi64>
  onnx.initializer @merged = dense<[0, 2, -1, 8]> : tensor<4xi64>
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %k: !onnx.value {onnx.name = "k", onnx.type = 1 : i64, onnx.dims = ["b", 1, "s", 8]},
                  %v: !onnx.value {onnx.name = "v", onnx.type = 1 : i64, onnx.dims = ["b", 1, "s", 8]},
                  %k0: !onnx.value {onnx.name = "k0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", 8]},
                  %v0: !onnx.value {onnx.name = "v0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "k1", onnx.type = 1 : i64},
          !onnx.value {onnx.name = "v1", onnx.type = 1 : i64}) {
    %scale = onnx.get @scale
    %two = onnx.get @two
    %wide = onnx.get @wide
    %merged = onnx.get @merged
    %0 = onnx.node "Concat" version 18 (%k0, %k) {axis = -2 : i64}
    %1 = onnx.node "Concat" version 18 (%v0, %v) {axis = -2 : i64}
    %2 = onnx.node "Unsqueeze" version 18 (%0, %two)
    %3 = onnx.node "Expand" version 18 (%2, %wide)
    %4 = onnx.node "Reshape" version 18 (%3, %merged)
    %5 = onnx.node "Unsqueeze" version 18 (%1, %two)
    %6 = onnx.node "Expand" version 18 (%5, %wide)
    %7 = onnx.node "Reshape" version 18 (%6, %merged)
    %8 = onnx.node "Transpose" version 18 (%4) {perm = array<i64: 0, 1, 3, 2>}
    %9 = onnx.node "Mul" version 18 (%q, %scale)
    %10 = onnx.node "Mul" version 18 (%8, %scale)
    %11 = onnx.node "MatMul" version 18 (%9, %10)
    %12 = onnx.node "Softmax" version 18 (%11) {axis = -1 : i64}
    %13 = onnx.node "MatMul" version 18 (%12, %7)
    return %13, %0, %1 : !onnx.value, !onnx.value, !onnx.value
  }
}
