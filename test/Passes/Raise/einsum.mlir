// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// What only the inputs have is summed; the labels of "..." come first in an implicit output.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: return {{.*}} : tensor<?x3x5xf32, #otf.dims<"b">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 3, 4]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = ["b", 4, 5]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Einsum" version 12 (%x, %w) {equation = "...ij, ...jk"}
    return %0 : !onnx.value
  }
}

// -----

// A repeated label reads the diagonal, without a loop where the output has it.
// CHECK-LABEL: func.func @main
// CHECK: ^bb0(%[[B:.*]]: index, %[[I:.*]]: index):
// CHECK-NOT: scf.for
// CHECK: tensor.extract %arg0[%[[B]], %[[I]], %[[I]]]
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 3, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Einsum" version 12 (%x) {equation = "bii->bi"}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Einsum: one label of 'ii' has the sizes 2 and 3}}
    %0 = onnx.node "Einsum" version 12 (%x) {equation = "ii"}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Einsum: its equation 'ij->ik' is none, or does not fit the ranks of its inputs}}
    %0 = onnx.node "Einsum" version 12 (%x) {equation = "ij->ik"}
    return %0 : !onnx.value
  }
}
