// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// What the input gives to all steps is one linear where the weights are constant; the recurrence has a work item for each
// batch row and direction. Y, then scratch: h, the next h, c.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = otf.linear %{{.*}}, %{{.*}} : (tensor<?x?x3xf32, #otf.dims<"s", "b">>, !otf.matrix<32x3, #otf.encoding<f32>>) -> tensor<?x?x32xf32, #otf.dims<"s", "b">>
// CHECK: %[[Y:.*]]:4 = otf.compute "2*b" : tensor<?x2x?x4xf32, #otf.dims<"s", "b">>, tensor<2x?x4xf32, #otf.dims<"b">>, tensor<2x?x4xf32, #otf.dims<"b">>, tensor<2x?x4xf32, #otf.dims<"b">> {
// CHECK: tensor.extract %[[X]]
// CHECK: return %[[Y]]#0, %[[Y]]#3 :
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 384, type = 1, dims = [2, 16, 3]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "b", 3]},
                  %r: !onnx.value {onnx.name = "r", onnx.type = 1 : i64, onnx.dims = [2, 16, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "c", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %0:3 = onnx.node "LSTM" version 14 (%x, %w, %r) {direction = "bidirectional", hidden_size = 4 : i64}
    return %0#0, %0#2 : !onnx.value, !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "b", 3]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = [1, 12, 3]},
                  %r: !onnx.value {onnx.name = "r", onnx.type = 1 : i64, onnx.dims = [1, 16, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{GRU: its recurrence weights R must be 1 x 12 x 4}}
    %0 = onnx.node "GRU" version 14 (%x, %w, %r) {hidden_size = 4 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "b", 3]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = [1, 4, 3]},
                  %r: !onnx.value {onnx.name = "r", onnx.type = 1 : i64, onnx.dims = [1, 4, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{RNN: activation "Swish" is not supported}}
    %0 = onnx.node "RNN" version 14 (%x, %w, %r) {activations = ["Swish"], hidden_size = 4 : i64}
    return %0 : !onnx.value
  }
}

// -----

// Sizes of other names may agree: the run finds out.
// CHECK-LABEL: func.func @main
// CHECK: otf.bind %{{.*}} ["shapes_match_0"] "its input must be s x b x 3" : tensor<1xi64>
// CHECK: otf.reshape %{{.*}} {checked} : tensor<?x?x?xf32, #otf.dims<"s", "b", "i">> -> tensor<?x?x3xf32, #otf.dims<"s", "b">>
// CHECK: otf.compute "b"
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 48, type = 1, dims = [1, 4, 3]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "b", "i"]},
                  %r: !onnx.value {onnx.name = "r", onnx.type = 1 : i64, onnx.dims = [1, 4, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %0 = onnx.node "RNN" version 14 (%x, %w, %r) {hidden_size = 4 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", "b", 3]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = [1, 4, 3]},
                  %r: !onnx.value {onnx.name = "r", onnx.type = 1 : i64, onnx.dims = [1, 4, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{RNN: activation "Affine" needs activation_alpha and activation_beta}}
    %0 = onnx.node "RNN" version 14 (%x, %w, %r) {activations = ["Affine"], hidden_size = 4 : i64}
    return %0 : !onnx.value
  }
}
