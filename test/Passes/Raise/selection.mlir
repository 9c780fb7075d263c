// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// How many are not zero is computed, becomes a size, and then one item writes their indices.
// CHECK-LABEL: func.func @main
// CHECK: %[[COUNT:.*]] = tensor.generate
// CHECK: otf.bind %[[COUNT]] ["nonzero_0"] : tensor<1xi64>
// CHECK: otf.compute "1" : tensor<2x?xi64, #otf.dims<"nonzero_0">> {
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 7 : i64}) {
    %0 = onnx.node "NonZero" version 13 (%x)
    return %0 : !onnx.value
  }
}

// -----

// Batches and classes are independent.
// CHECK-LABEL: func.func @main
// CHECK: %[[TAKEN:.*]]:3 = otf.compute "3*b" : tensor<?x3xi64, #otf.dims<"b">>, tensor<?x3x100xi64, #otf.dims<"b">>, tensor<?x3x100xi1, #otf.dims<"b">> {
// CHECK: otf.bind %{{.*}} ["selected_0"]
// CHECK: otf.compute "1" : tensor<?x3xi64, #otf.dims<"selected_0">> {
module attributes {onnx.files = ["m"]} {
  func.func @main(%boxes: !onnx.value {onnx.name = "boxes", onnx.type = 1 : i64, onnx.dims = ["b", 100, 4]},
                  %scores: !onnx.value {onnx.name = "scores", onnx.type = 1 : i64, onnx.dims = ["b", 3, 100]},
                  %most: !onnx.value {onnx.name = "most", onnx.type = 7 : i64, onnx.dims = [1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 7 : i64}) {
    %0 = onnx.node "NonMaxSuppression" version 11 (%boxes, %scores, %most)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 4]},
                  %c: !onnx.value {onnx.name = "c", onnx.type = 9 : i64, onnx.dims = [2, 2]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Compress: its condition must have rank 1}}
    %0 = onnx.node "Compress" version 11 (%x, %c)
    return %0 : !onnx.value
  }
}
