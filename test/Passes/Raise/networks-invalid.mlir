// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 3, 8]},
                  %w: !onnx.value {onnx.name = "w", onnx.type = 1 : i64, onnx.dims = [4, 2, 3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{Conv: 3 channels in 1 groups do not agree with a weight of 4 x 2}}
    %0 = onnx.node "Conv" version 18 (%x, %w)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 3, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{AveragePool: its window of 9 positions is larger than the padded input of 4}}
    %0 = onnx.node "AveragePool" version 18 (%x) {kernel_shape = array<i64: 9>}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 3, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{MaxPool: strides holds 0, and must be from 1 to 2^30}}
    %0 = onnx.node "MaxPool" version 18 (%x) {kernel_shape = array<i64: 2>, strides = array<i64: 0>}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3]},
                  %g: !onnx.value {onnx.name = "g", onnx.type = 1 : i64, onnx.dims = [3]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{BatchNormalization: spatial = 0, statistics for each position, is not supported}}
    %0 = onnx.node "BatchNormalization" version 7 (%x, %g, %g, %g, %g) {spatial = 0 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 7 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    // expected-error @+1 {{TfIdfVectorizer: strings are not supported}}
    %0 = onnx.node "TfIdfVectorizer" version 9 (%x) {pool_strings = ["a"], ngram_counts = array<i64: 0>, ngram_indexes = array<i64: 0>, mode = "TF", min_gram_length = 1 : i64, max_gram_length = 1 : i64, max_skip_count = 0 : i64}
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  onnx.initializer @scales = dense<[1.0, 2.0]> : tensor<2xf32>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [1, 1, 4, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %none = onnx.none
    %s = onnx.get @scales
    // expected-error @+1 {{Resize: it has 2 scales or sizes for 4 axes}}
    %0 = onnx.node "Resize" version 18 (%x, %none, %s)
    return %0 : !onnx.value
  }
}
