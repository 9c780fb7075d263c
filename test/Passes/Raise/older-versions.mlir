// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// Operator sets before 7: what meant the same is taken.
// CHECK-LABEL: func.func @main
// CHECK: arith.addf
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 3]},
                  %y: !onnx.value {onnx.name = "y", onnx.type = 1 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    %0 = onnx.node "Add" version 6 (%x, %y) {broadcast = 1 : i64, axis = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

// Only `broadcast` made shapes meet.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 3]},
                  %y: !onnx.value {onnx.name = "y", onnx.type = 1 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Add: its inputs differ in shape and its attribute broadcast is 0}}
    %0 = onnx.node "Add" version 6 (%x, %y)
    return %0 : !onnx.value
  }
}

// -----

// A second input along the first dimensions has no counterpart today.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [3, 3]},
                  %y: !onnx.value {onnx.name = "y", onnx.type = 1 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Add: its attribute axis broadcasts along other dimensions than the last ones}}
    %0 = onnx.node "Add" version 6 (%x, %y) {broadcast = 1 : i64, axis = 0 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [3, 3]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Cast: it had another form in operator set 5}}
    %0 = onnx.node "Cast" version 5 (%x) {to = "DOUBLE"}
    return %0 : !onnx.value
  }
}

// -----

// A newer operator set is taken for the newest known.
// expected-warning @+1 {{operator set 99 of ai.onnx is newer than this compiler}}
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [3, 3]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}) {
    %0 = onnx.node "Relu" version 99 (%x)
    return %0 : !onnx.value
  }
}
