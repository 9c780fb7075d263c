// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A slice to the end and backwards over a dimension that is a symbol keeps the symbol.
// CHECK-LABEL: func.func @main
// CHECK: otf.size "s - 1"
// CHECK: tensor<?xf32, #otf.dims<"s">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @start = dense<[9223372036854775807]> : tensor<1xi64>
  onnx.initializer @end = dense<[-9223372036854775808]> : tensor<1xi64>
  onnx.initializer @axis = dense<[0]> : tensor<1xi64>
  onnx.initializer @step = dense<[-1]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %start = onnx.get @start
    %end = onnx.get @end
    %axis = onnx.get @axis
    %step = onnx.get @step
    %0 = onnx.node "Slice" version 18 (%x, %start, %end, %axis, %step)
    return %0 : !onnx.value
  }
}

// -----

// Parts are even, and the last is what is left.
// CHECK-LABEL: func.func @main
// CHECK: return {{.*}} : tensor<3xf32>, tensor<3xf32>, tensor<1xf32>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [7]})
      -> (!onnx.value {onnx.name = "a", onnx.type = 1 : i64}, !onnx.value {onnx.name = "b", onnx.type = 1 : i64},
          !onnx.value {onnx.name = "c", onnx.type = 1 : i64}) {
    %0:3 = onnx.node "Split" version 18 (%x) {num_outputs = 3 : i64}
    return %0#0, %0#1, %0#2 : !onnx.value, !onnx.value, !onnx.value
  }
}

// -----

// A split of a shape stays known: the last part sizes the constant.
// CHECK-LABEL: func.func @main
// CHECK: tensor<?x4xf32, #otf.dims<"s">>
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [2, 3, "s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Shape" version 18 (%x)
    %1:2 = onnx.node "Split" version 18 (%0) {num_outputs = 2 : i64}
    %2 = onnx.node "ConstantOfShape" version 18 (%1#1)
    return %2 : !onnx.value
  }
}

// -----

// Where only the run says whether a bound lies inside, the length is computed there.
// CHECK-LABEL: func.func @main
// CHECK: arith.minsi
// CHECK: otf.bind %{{.*}} ["slice_0"] : tensor<1xi64>
// CHECK: tensor<?xf32, #otf.dims<"slice_0">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @zero = dense<[0]> : tensor<1xi64>
  onnx.initializer @end = dense<[512]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %zero = onnx.get @zero
    %end = onnx.get @end
    %0 = onnx.node "Slice" version 18 (%x, %zero, %end, %zero)
    return %0 : !onnx.value
  }
}

// -----

// What is computed twice is one size.
// CHECK-LABEL: func.func @main
// CHECK: otf.bind
// CHECK-NOT: otf.bind
// CHECK: arith.addf
module attributes {onnx.files = ["m"]} {
  onnx.initializer @zero = dense<[0]> : tensor<1xi64>
  onnx.initializer @end = dense<[512]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s"]},
                  %z: !onnx.value {onnx.name = "z", onnx.type = 1 : i64, onnx.dims = ["s"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %zero = onnx.get @zero
    %end = onnx.get @end
    %0 = onnx.node "Slice" version 18 (%x, %zero, %end, %zero)
    %1 = onnx.node "Slice" version 18 (%z, %zero, %end, %zero)
    %2 = onnx.node "Add" version 18 (%0, %1)
    return %2 : !onnx.value
  }
}
