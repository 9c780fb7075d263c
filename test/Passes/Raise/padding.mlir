// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// Pads grow the size by a symbol's polynomial; a negative one crops, and is no branch.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
// CHECK: tensor<?xf32, #otf.dims<"s + 1">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @pads = dense<[-2, 0]> : tensor<2xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s + 3"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %pads = onnx.get @pads
    %0 = onnx.node "Pad" version 13 (%x, %pads) {mode = "edge"}
    return %0 : !onnx.value
  }
}

// -----

// Outside is the constant; inside is read only there.
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: tensor<?xf32, #otf.dims<"s + 3">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Pad" version 7 (%x) {pads = array<i64: 1, 2>, value = 0.5 : f32}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [0]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Pad: dimension 0 has nothing to pad with}}
    %0 = onnx.node "Pad" version 7 (%x) {pads = array<i64: 1, 2>, mode = "reflect"}
    return %0 : !onnx.value
  }
}
