// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// A line along the axis is a work item: it copies its data, then applies its updates in order. Updates have fewer lines.
// CHECK-LABEL: func.func @main
// CHECK: otf.compute "s" : tensor<8x?xf32, #otf.dims<"s">> {
// CHECK: scf.for
// CHECK: memref.store
// CHECK: arith.select
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.maximumf
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8, "s"]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2, 3]},
                  %u: !onnx.value {onnx.name = "u", onnx.type = 1 : i64, onnx.dims = [2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "ScatterElements" version 18 (%x, %i, %u) {reduction = "max"}
    return %0 : !onnx.value
  }
}

// -----

// Slices that are written whole are independent along their own elements.
// CHECK-LABEL: func.func @main
// CHECK: otf.compute "16" : tensor<?x16xf32, #otf.dims<"s">> {
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 16]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = ["n", 1]},
                  %u: !onnx.value {onnx.name = "u", onnx.type = 1 : i64, onnx.dims = ["n", 16]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "ScatterND" version 18 (%x, %i, %u)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8, 16]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = ["n", 1]},
                  %u: !onnx.value {onnx.name = "u", onnx.type = 1 : i64, onnx.dims = ["n", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{ScatterND: the shape of its updates must be that of its indices but the last, and then of its data from dimension 1 on}}
    %0 = onnx.node "ScatterND" version 18 (%x, %i, %u)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]},
                  %i: !onnx.value {onnx.name = "i", onnx.type = 7 : i64, onnx.dims = [2]},
                  %u: !onnx.value {onnx.name = "u", onnx.type = 1 : i64, onnx.dims = [2]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{ScatterElements: reduction "mean" is not known}}
    %0 = onnx.node "ScatterElements" version 18 (%x, %i, %u) {reduction = "mean"}
    return %0 : !onnx.value
  }
}
