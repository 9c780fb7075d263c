// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// Different names stay different sizes: odd characters, names of the runtime's own, and dimensions without a name.
// CHECK: func.func @main
// CHECK-SAME: %arg0: tensor<?x?x?x?xf32, #otf.dims<"seq_len", "seq_len_", "past_", "size">>
// CHECK-SAME: %arg1: tensor<?x?xf32, #otf.dims<"2*seq_len", "size_">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["seq_len", "seq len", "past", "?"]},
                  %y: !onnx.value {onnx.name = "y", onnx.type = 1 : i64, onnx.dims = ["seq_len + seq_len", "?"]})
      -> (!onnx.value {onnx.name = "z", onnx.type = 1 : i64}, !onnx.value {onnx.name = "w", onnx.type = 1 : i64}) {
    return %x, %y : !onnx.value, !onnx.value
  }
}
