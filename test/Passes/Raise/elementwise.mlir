// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A broadcast reads index 0 of the dimension of size 1; the loop space is the result's.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[ROWS:.*]] = otf.size "rows"
// CHECK: tensor.generate %[[ROWS]]
// CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[A:.*]] = tensor.extract %arg0[%[[I]], %[[J]]]
// CHECK: %[[B:.*]] = tensor.extract %arg1[%[[I]], %{{.*}}]
// CHECK: arith.addf %[[A]], %[[B]]
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 4]},
                  %c: !onnx.value {onnx.name = "c", onnx.type = 1 : i64, onnx.dims = ["rows", 1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Add" version 18 (%x, %c)
    return %0 : !onnx.value
  }
}

// -----

// An integer power is a loop over the exponent's bits; a trap is divided by 1 in its place.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: arith.remsi
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 6 : i64, onnx.dims = [4]},
                  %n: !onnx.value {onnx.name = "n", onnx.type = 6 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 6 : i64}) {
    %0 = onnx.node "Pow" version 15 (%x, %n)
    %1 = onnx.node "Mod" version 13 (%0, %n)
    return %1 : !onnx.value
  }
}

// -----

// SwiGLU is the gated unit that language models write with three operators.
// CHECK-LABEL: func.func @main
// CHECK: otf.gated_activation silu %arg0, %arg1
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%a: !onnx.value {onnx.name = "a", onnx.type = 1 : i64, onnx.dims = ["s", 4]},
                  %b: !onnx.value {onnx.name = "b", onnx.type = 1 : i64, onnx.dims = ["s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "SwiGLU" version 28 (%a, %b)
    return %0 : !onnx.value
  }
}

// -----

// A dropout that drops nothing is its input, and its mask true.
// CHECK-LABEL: func.func @main
// CHECK: tensor.generate
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant true
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "m", onnx.type = 9 : i64}) {
    %0, %1 = onnx.node "Dropout" version 13 (%x)
    return %0, %1 : !onnx.value, !onnx.value
  }
}
