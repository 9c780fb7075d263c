// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// A bias for positions is cut to the last queries, as T5 does. How many rows that leaves is a number found on the way, which the
// sum with the scores takes to be theirs: so it is a mask of attention's like any other, in the sizes of the scores.
// CHECK: otf.bind %{{.*}} ["slice_0"]
// CHECK: otf.bind %{{.*}} ["add_0"]
// CHECK: %[[M:.*]] = tensor.generate
// CHECK: tensor<1x2x?x?xf32, #otf.dims<"s", "s">>
// CHECK: otf.attention %{{.*}}, %{{.*}}, %{{.*}} mask %[[M]] {scale = 1.000000e+00 : f32}
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @end = dense<[9223372036854775807]> : tensor<1xi64>
  onnx.initializer @axis = dense<[2]> : tensor<1xi64>
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %k: !onnx.value {onnx.name = "k", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %v: !onnx.value {onnx.name = "v", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %bias: !onnx.value {onnx.name = "bias", onnx.type = 1 : i64, onnx.dims = [1, 2, "s", "s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %end = onnx.get @end
    %axis = onnx.get @axis
    %shape = onnx.node "Shape" version 15 (%q) {start = 2 : i64, end = 3 : i64}
    %first = onnx.node "Neg" version 13 (%shape)
    %some = onnx.node "Slice" version 13 (%bias, %first, %end, %axis)
    %0 = onnx.node "Transpose" version 13 (%k) {perm = array<i64: 0, 1, 3, 2>}
    %1 = onnx.node "MatMul" version 13 (%q, %0)
    %2 = onnx.node "Add" version 14 (%1, %some)
    %3 = onnx.node "Softmax" version 13 (%2) {axis = -1 : i64}
    %4 = onnx.node "MatMul" version 13 (%3, %v)
    return %4 : !onnx.value
  }
}
