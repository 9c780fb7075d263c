// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file -verify-diagnostics %s | FileCheck %s

// A constant k: a work item for each line.
// CHECK-LABEL: func.func @main
// CHECK-NOT: otf.bind
// CHECK: otf.compute "b" : tensor<?x5xf32, #otf.dims<"b">>, tensor<?x5xi64, #otf.dims<"b">> {
module attributes {onnx.files = ["m"]} {
  onnx.initializer @k = dense<[5]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", 32]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "i", onnx.type = 7 : i64}) {
    %k = onnx.get @k
    %0, %1 = onnx.node "TopK" version 11 (%x, %k)
    return %0, %1 : !onnx.value, !onnx.value
  }
}

// -----

// A k that is data becomes a size, or -1 where there are fewer elements.
// CHECK-LABEL: func.func @main
// CHECK: tensor.generate
// CHECK: arith.constant -1 : index
// CHECK: otf.bind %{{.*}} ["k_0"] "its k is negative, or larger than its axis" : tensor<1xi64>
// CHECK: otf.compute "1" : tensor<?xf32, #otf.dims<"k_0">>, tensor<?xi64, #otf.dims<"k_0">> {
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]},
                  %k: !onnx.value {onnx.name = "k", onnx.type = 7 : i64, onnx.dims = [1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0, %1 = onnx.node "TopK" version 11 (%x, %k)
    return %0 : !onnx.value
  }
}

// -----

module attributes {onnx.files = ["m"]} {
  onnx.initializer @k = dense<[5]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %k = onnx.get @k
    // expected-error @+1 {{TopK: cannot give 5 of 4 elements}}
    %0, %1 = onnx.node "TopK" version 11 (%x, %k)
    return %0 : !onnx.value
  }
}

// -----

// The number of groups is the only thing that has to be known before the results have memory.
// CHECK-LABEL: func.func @main
// CHECK: %[[MADE:.*]]:6 = otf.compute "1" :
// CHECK: otf.bind %[[MADE]]#0 ["unique_0"] : tensor<1xi64>
// CHECK: tensor<?xf32, #otf.dims<"unique_0">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Unique" version 11 (%x)
    return %0 : !onnx.value
  }
}
