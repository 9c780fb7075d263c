// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// A work item for each column of a head's state.
// CHECK: func.func @main
// CHECK: otf.compute "32*b" : tensor<?x?x32xf32, #otf.dims<"b", "s">>, tensor<?x2x8x16xf32, #otf.dims<"b">>
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", "s", 16]},
                  %v: !onnx.value {onnx.name = "v", onnx.type = 1 : i64, onnx.dims = ["b", "s", 32]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "state", onnx.type = 1 : i64}) {
    %y:2 = onnx.node "LinearAttention" version 27 (%q, %q, %v) {kv_num_heads = 2 : i64, q_num_heads = 2 : i64, update_rule = "linear"}
    return %y#0, %y#1 : !onnx.value, !onnx.value
  }
}
