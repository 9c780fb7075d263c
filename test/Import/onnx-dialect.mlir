// SPDX-License-Identifier: Apache-2.0
//
// Every operation and attribute of the onnx dialect prints as it is read.

// RUN: otf-opt %s | otf-opt | FileCheck %s
// RUN: otf-opt %s --mlir-print-op-generic | otf-opt | FileCheck %s

// CHECK: module attributes {onnx.files = ["model.onnx", "model.onnx_data"]
module attributes {onnx.files = ["model.onnx", "model.onnx_data"], onnx.folder = ".", onnx.ir_version = 8 : i64,
                   onnx.opsets = {ai.onnx = 18 : i64, com.microsoft = 1 : i64}, onnx.producer = "by hand"} {
  // CHECK-NEXT: onnx.initializer @axes = dense<[-1, 0]> : tensor<2xi64>
  onnx.initializer @axes = dense<[-1, 0]> : tensor<2xi64>
  // CHECK-NEXT: onnx.initializer @"model.layers.0/w" = #onnx.blob<file = 1, offset = 4096, length = 1024, type = 1, dims = [4, 64]>
  onnx.initializer @"model.layers.0/w" = #onnx.blob<file = 1, offset = 4096, length = 1024, type = 1, dims = [4, 64]>
  // CHECK-NEXT: onnx.initializer @scalar = #onnx.blob<file = 0, offset = 7, length = 8, type = 11>
  onnx.initializer @scalar = #onnx.blob<file = 0, offset = 7, length = 8, type = 11>
  // A type that nobody knows has no size to compare with.
  // CHECK-NEXT: onnx.initializer @unknown = #onnx.blob<file = 0, offset = 7, length = 8, type = 9999, dims = [3]>
  onnx.initializer @unknown = #onnx.blob<file = 0, offset = 7, length = 8, type = 9999, dims = [3]>

  // CHECK-LABEL: func.func @main(
  // CHECK-SAME: %[[X:.*]]: !onnx.value {onnx.dims = ["batch_size", 4], onnx.name = "x", onnx.type = 1 : i64})
  // CHECK-SAME: -> (!onnx.value {onnx.dims = ["batch_size", 64], onnx.name = "y", onnx.type = 1 : i64}, !onnx.value)
  func.func @main(%x: !onnx.value {onnx.dims = ["batch_size", 4], onnx.name = "x", onnx.type = 1 : i64})
      -> (!onnx.value {onnx.dims = ["batch_size", 64], onnx.name = "y", onnx.type = 1 : i64}, !onnx.value) {
    // CHECK-NEXT: %[[NONE:.*]] = onnx.none
    %none = onnx.none
    // CHECK-NEXT: %[[W:.*]] = onnx.get @"model.layers.0/w"
    %w = onnx.get @"model.layers.0/w"
    // CHECK-NEXT: %[[Y:.*]] = onnx.node "MatMul" version 18 (%[[X]], %[[W]]) name "/layers.0/MatMul"
    %y = onnx.node "MatMul" version 18 (%x, %w) name "/layers.0/MatMul"
    // CHECK-NEXT: %[[S:.*]]:2 = onnx.node "Split" version 18 (%[[Y]], %[[NONE]]) {axis = 1 : i64, num_outputs = 2 : i64}
    %s:2 = onnx.node "Split" version 18 (%y, %none) {axis = 1 : i64, num_outputs = 2 : i64}
    // CHECK-NEXT: %[[Q:.*]] = onnx.node "Op" domain "com.microsoft" version 1 () name "q" {a = 5.000000e-01 : f32, b = "text", c = array<i64: 1, 2>, d = array<f32: 1.000000e+00>, e = ["s", "t"], f = #onnx.blob<file = 0, offset = 0, length = 80, type = 1, dims = [20]>} attributes {otf.note}
    %q = onnx.node "Op" domain "com.microsoft" version 1 () name "q"
        {a = 0.5 : f32, b = "text", c = array<i64: 1, 2>, d = array<f32: 1.0>, e = ["s", "t"],
         f = #onnx.blob<file = 0, offset = 0, length = 80, type = 1, dims = [20]>} attributes {otf.note}
    // CHECK-NEXT: return %[[S]]#0, %[[Q]]
    return %s#0, %q : !onnx.value, !onnx.value
  }
}
