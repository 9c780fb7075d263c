// SPDX-License-Identifier: Apache-2.0
// RUN: %not otf-opt --otf-import %s 2>&1 | FileCheck %s

// Every operator that is missing is said at once, with its nodes and the operator set.
// CHECK: operators that are not supported:
// CHECK-SAME: Alpha of ai.onnx 18 (2 times: 'a1', 'a2')
// CHECK-SAME: Beta of com.example 1 (1 times: 'b')
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Alpha" version 18 (%x) name "a1"
    %1 = onnx.node "Beta" domain "com.example" version 1 (%0) name "b"
    %2 = onnx.node "Alpha" version 18 (%1) name "a2"
    return %2 : !onnx.value
  }
}
