// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s

// No arithmetic on bits.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 17 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 17 : i64}) {
    // expected-error @+1 {{Add: elements of type float8e4m3fn are not supported (cast to another type before it)}}
    %0 = onnx.node "Add" version 21 (%x, %x)
    return %0 : !onnx.value
  }
}

// -----

// Types do not mix.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]},
                  %n: !onnx.value {onnx.name = "n", onnx.type = 7 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Mul: elements of type float and int64 do not go together (cast one of them)}}
    %0 = onnx.node "Mul" version 18 (%x, %n)
    return %0 : !onnx.value
  }
}

// -----

// Strings are no numbers.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 8 : i64}) {
    // expected-error @+1 {{Cast: a cast to string is not supported (numbers and booleans are)}}
    %0 = onnx.node "Cast" version 21 (%x) {to = 8 : i64}
    return %0 : !onnx.value
  }
}

// -----

// Bits of another width.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 7 : i64}) {
    // expected-error @+1 {{BitCast: the bits of float cannot be those of int64}}
    %0 = onnx.node "BitCast" version 26 (%x) {to = 7 : i64}
    return %0 : !onnx.value
  }
}

// -----

// A draw.
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Bernoulli: it draws random numbers, and a plan gives one answer for one input}}
    %0 = onnx.node "Bernoulli" version 22 (%x)
    return %0 : !onnx.value
  }
}

// -----

// Dropout while training.
module attributes {onnx.files = ["m"]} {
  onnx.initializer @ratio = dense<0.75> : tensor<f32>
  onnx.initializer @yes = dense<true> : tensor<i1>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %ratio = onnx.get @ratio
    %yes = onnx.get @yes
    // expected-error @+1 {{Dropout: it drops at random, as in training (export the model for inference)}}
    %0 = onnx.node "Dropout" version 22 (%x, %ratio, %yes)
    return %0 : !onnx.value
  }
}
