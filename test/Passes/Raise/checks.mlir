// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s

// An attribute of another type than ONNX says is not taken for its default.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Transpose: its attribute perm is not a list of integers}}
    %0 = onnx.node "Transpose" version 18 (%x) {perm = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Concat: its inputs are of the types float and int64}}
    %0 = onnx.node "Concat" version 18 (%x, %i) {axis = 0 : i64}
    return %0 : !onnx.value
  }
}

// -----

// What asks for a result must get one.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Relu: it has no output 1 in this compiler}}
    %0:2 = onnx.node "Relu" version 18 (%x)
    return %0#1 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  onnx.initializer @many = dense<68719476736> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %many = onnx.get @many
    %0 = onnx.node "ConstantOfShape" version 18 (%many) {value = dense<1> : tensor<1xi64>}
    // expected-error @+1 {{Reshape: its result would have 68719476736 dimensions}}
    %1 = onnx.node "Reshape" version 18 (%x, %0)
    return %1 : !onnx.value
  }
}
