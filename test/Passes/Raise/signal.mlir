// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// One table of the circle, in f64 before it is cut; of a real signal the one-sided transform has n / 2 + 1 elements.
// CHECK-LABEL: func.func @main
// CHECK: math.cos %{{.*}} : f64
// CHECK: tensor<2x10xf32>
// CHECK: tensor<?x6x2xf32, #otf.dims<"b">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 10, 1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "DFT" version 20 (%x) {onesided = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 10, 2]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{DFT: a one-sided transform of a complex signal is not defined}}
    %0 = onnx.node "DFT" version 20 (%x) {onesided = 1 : i64}
    return %0 : !onnx.value
  }
}
