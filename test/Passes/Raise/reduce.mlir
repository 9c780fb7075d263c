// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// The product of a shape is a size: nothing is left to run for it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: tensor<?xf32, #otf.dims<"12*s">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @one = dense<[1]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [3, "s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %one = onnx.get @one
    %0 = onnx.node "Shape" version 18 (%x)
    %1 = onnx.node "ReduceProd" version 18 (%0) {keepdims = 0 : i64}
    %2 = onnx.node "Reshape" version 18 (%1, %one)
    %3 = onnx.node "ConstantOfShape" version 18 (%2)
    return %3 : !onnx.value
  }
}

// -----

// Unsigned integers order as such.
// CHECK-LABEL: func.func @main
// CHECK: arith.constant 0 : i8
// CHECK: arith.maxui
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 2 : i64, onnx.dims = [3, "s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 2 : i64}) {
    %0 = onnx.node "ReduceMax" version 13 (%x) {axes = array<i64: -1>}
    return %0 : !onnx.value
  }
}

// -----

// Over an empty set of axes only what is not the reduction is done.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: arith.mulf
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "ReduceSumSquare" version 18 (%x) {noop_with_empty_axes = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 7 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 7 : i64}) {
    // expected-error @+1 {{ReduceLogSumExp: integers are not supported (cast them to a float)}}
    %0 = onnx.node "ReduceLogSumExp" version 18 (%x)
    return %0 : !onnx.value
  }
}
