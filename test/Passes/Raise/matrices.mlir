// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// Elimination leaves a factor of the product for each row.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: math.absf
// CHECK-NOT: math.absf
// CHECK: return {{.*}} : tensor<?xf32, #otf.dims<"b">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 3, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Det" version 11 (%x)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Det: expects square matrices of floats with a constant number of rows, at most 64}}
    %0 = onnx.node "Det" version 11 (%x)
    return %0 : !onnx.value
  }
}
