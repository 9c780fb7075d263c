// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s

// An input that an operator needs.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Add: input 1 is missing}}
    %0 = onnx.node "Add" version 18 (%x)
    return %0 : !onnx.value
  }
}

// -----

// Dimensions are not negative.
module attributes {onnx.files = ["m"]} {
  onnx.initializer @shape = dense<[-2, -4]> : tensor<2xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %shape = onnx.get @shape
    // expected-error @+1 {{Reshape: its result would have a dimension of size -}}
    %0 = onnx.node "Reshape" version 18 (%x, %shape)
    return %0 : !onnx.value
  }
}

// -----

// What grows a cache a second time is no append, and only attention reads a cache.
module attributes {onnx.files = ["m"]} {
  func.func @main(%k: !onnx.value {onnx.name = "k", onnx.type = 1 : i64, onnx.dims = ["b", 1, "s", 8]},
                  %k0: !onnx.value {onnx.name = "k0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "k1", onnx.type = 1 : i64}) {
    %0 = onnx.node "Concat" version 18 (%k0, %k) {axis = -2 : i64}
    // expected-error @+1 {{reads a key or value cache outside attention}}
    %1 = onnx.node "Concat" version 18 (%0, %k) {axis = -2 : i64}
    return %1, %0 : !onnx.value, !onnx.value
  }
}

// -----

// expected-error @+1 {{has no function @main that ends in a return}}
module attributes {onnx.files = ["m"]} {
  func.func private @main(!onnx.value)
}

// -----

// What a loop collects has one shape in all iterations.
module attributes {onnx.files = ["m"]} {
  onnx.initializer @yes = dense<true> : tensor<i1>
  func.func @main(%m: !onnx.value {onnx.name = "m", onnx.type = 7 : i64, onnx.dims = []},
                  %x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "all", onnx.type = 7 : i64}) {
    %yes = onnx.get @yes
    // expected-error @+1 {{Loop: what its iterations collect has a size that each of them finds anew}}
    %0 = onnx.node "Loop" version 19 (%m, %yes) bodies ["body"] {
    ^bb0(%i: !onnx.value, %c: !onnx.value):
      %1 = onnx.node "NonZero" version 13 (%x)
      onnx.yield %c, %1
    }
    return %0 : !onnx.value
  }
}
