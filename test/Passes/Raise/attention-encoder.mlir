// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// An encoder's attention. The keys' two transposes are one in the file; heads come first before attention reads them. Values
// had positions added whose number is found on the way: their sum has the input's size, so that all sizes agree.
// CHECK: otf.bind
// CHECK: otf.bind
// CHECK: %[[V:.*]] = tensor.generate
// CHECK: arith.addf
// CHECK: %[[K:.*]] = tensor.generate
// CHECK: tensor.extract %arg1[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<?x?x2x8xf32, #otf.dims<"b", "s">>
// CHECK: tensor<?x2x?x8xf32, #otf.dims<"b", "s">>
// CHECK: otf.attention %{{.*}}, %[[K]], %[[V]] {scale = 2.500000e-01 : f32}
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @scale = dense<0.5> : tensor<f32>
  onnx.initializer @zero = dense<[0]> : tensor<1xi64>
  onnx.initializer @axis = dense<[2]> : tensor<1xi64>
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %k: !onnx.value {onnx.name = "k", onnx.type = 1 : i64, onnx.dims = ["b", "s", 2, 8]},
                  %v: !onnx.value {onnx.name = "v", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %p: !onnx.value {onnx.name = "p", onnx.type = 1 : i64, onnx.dims = [1, 1, 16, 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %scale = onnx.get @scale
    %zero = onnx.get @zero
    %axis = onnx.get @axis
    %shape = onnx.node "Shape" version 15 (%v) {start = 2 : i64, end = 3 : i64}
    %some = onnx.node "Slice" version 13 (%p, %zero, %shape, %axis)
    %value = onnx.node "Add" version 14 (%some, %v)
    %0 = onnx.node "Transpose" version 13 (%k) {perm = array<i64: 0, 2, 3, 1>}
    %1 = onnx.node "Mul" version 14 (%q, %scale)
    %2 = onnx.node "Mul" version 14 (%0, %scale)
    %3 = onnx.node "MatMul" version 13 (%1, %2)
    %4 = onnx.node "Softmax" version 13 (%3) {axis = -1 : i64}
    %5 = onnx.node "MatMul" version 13 (%4, %value)
    return %5 : !onnx.value
  }
}
