// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import --split-input-file --verify-diagnostics %s

module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 768, type = 2, dims = [24, 2, 16]>
  onnx.initializer @s = #onnx.blob<file = 0, offset = 768, length = 192, type = 1, dims = [24, 2]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %s = onnx.get @s
    // expected-error @below {{MatMulNBits: its weight is packed for one device's kernel (export it with weight_prepacked = 0)}}
    %y = onnx.node "MatMulNBits" domain "com.microsoft" version 1 (%x, %w, %s)
        {K = 40 : i64, N = 24 : i64, bits = 4 : i64, block_size = 32 : i64, weight_prepacked = 1 : i64}
    return %y : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4, 40]},
                  %s: !onnx.value {onnx.name = "s", onnx.type = 1 : i64, onnx.dims = [4, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 2 : i64}) {
    // expected-error @below {{QuantizeLinear: its scale and zero point must have the input's shape with one element for each block of 32 along axis 1}}
    %y = onnx.node "QuantizeLinear" version 21 (%x, %s) {block_size = 32 : i64}
    return %y : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%a: !onnx.value {onnx.name = "a", onnx.type = 2 : i64, onnx.dims = ["rows", 40]},
                  %b: !onnx.value {onnx.name = "b", onnx.type = 3 : i64, onnx.dims = [39, 24]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 6 : i64}) {
    // expected-error @below {{MatMulInteger: cannot contract 40 with 39}}
    %y = onnx.node "MatMulInteger" version 10 (%a, %b)
    return %y : !onnx.value
  }
}
