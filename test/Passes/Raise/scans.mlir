// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A work item for each line along the axis.
// CHECK-LABEL: func.func @main
// CHECK: otf.compute "b*h" : tensor<?x5x?xf32, #otf.dims<"b", "h">> {
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: memref.store
module attributes {onnx.files = ["m"]} {
  onnx.initializer @axis = dense<1> : tensor<i64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 5, "h"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %axis = onnx.get @axis
    %0 = onnx.node "CumSum" version 18 (%x, %axis)
    return %0 : !onnx.value
  }
}

// -----

// An axis that is data: one item, and the neighbour along it comes before in row-major order.
// CHECK-LABEL: func.func @main
// CHECK: otf.compute "1" : tensor<4x5xi32> {
// CHECK: scf.if
// CHECK: memref.load
// CHECK: arith.muli
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 6 : i64, onnx.dims = [4, 5]},
                  %axis: !onnx.value {onnx.name = "axis", onnx.type = 7 : i64, onnx.dims = []})
      -> (!onnx.value {onnx.name = "y", onnx.type = 6 : i64}) {
    %0 = onnx.node "CumProd" version 26 (%x, %axis)
    return %0 : !onnx.value
  }
}
