// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// The numbers of an index are positions in the dimensions behind the batch's.
// CHECK-LABEL: func.func @main
// CHECK: ^bb0(%[[B:.*]]: index, %[[I:.*]]: index, %[[E:.*]]: index):
// CHECK: tensor.extract %arg0[%[[B]], %{{.*}}, %[[E]]]
// CHECK: tensor<2x?x5xf32, #otf.dims<"n">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 4, 5]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2, "n", 1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "GatherND" version 13 (%x, %i) {batch_dims = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

// A table that may be empty is read only where it is not.
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: tensor.extract %arg0
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 4]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 6 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Gather" version 13 (%x, %i)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 4]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2, "n"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{GatherND: the last dimension of its indices must be constant}}
    %0 = onnx.node "GatherND" version 13 (%x, %i)
    return %0 : !onnx.value
  }
}

// -----

// Computed indices are looked at by a program, and −1 ends the run.
// CHECK-LABEL: func.func @main
// CHECK: arith.cmpi ult
// CHECK: otf.bind %{{.*}} ["indices_fit_0"] "an index is outside its axis" : tensor<1xi64>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [5, 4]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Add" version 14 (%i, %i)
    %1 = onnx.node "Gather" version 13 (%x, %0)
    return %1 : !onnx.value
  }
}

// -----

// Those of an input have a limit in the plan instead.
// CHECK-LABEL: func.func @main
// CHECK-SAME: otf.limit = 5
// CHECK-NOT: otf.bind
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [5, 4]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Gather" version 13 (%x, %i)
    return %0 : !onnx.value
  }
}
