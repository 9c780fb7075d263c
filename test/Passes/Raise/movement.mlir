// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// A transpose reads at permuted indices.
// CHECK-LABEL: func.func @main
// CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: tensor.extract %arg0[%[[J]], %[[I]]]
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Transpose" version 18 (%x) {perm = array<i64: 1, 0>}
    return %0 : !onnx.value
  }
}

// -----

// A slice that runs backwards starts at the last element.
// CHECK-LABEL: func.func @main
// CHECK: %[[STEP:.*]] = arith.constant -2 : index
// CHECK: %[[A:.*]] = arith.muli %{{.*}}, %[[STEP]] : index
// CHECK: %[[LAST:.*]] = arith.constant 6 : index
// CHECK: %[[B:.*]] = arith.addi %[[A]], %[[LAST]] : index
// CHECK: tensor.extract %arg0[%[[B]]]
// CHECK: tensor<4xf32>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @start = dense<[-1]> : tensor<1xi64>
  onnx.initializer @end = dense<[-9223372036854775808]> : tensor<1xi64>
  onnx.initializer @axis = dense<[0]> : tensor<1xi64>
  onnx.initializer @step = dense<[-2]> : tensor<1xi64>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [7]})
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

// A matrix that the file holds K x N is a weight of N x K; a bias behind it is the linear's.
// CHECK: otf.weight @w : tensor<20x8xf32> = {{.*}}transposed
// CHECK-LABEL: func.func @main
// CHECK: otf.linear %arg0, %{{.*}} bias %{{.*}} -> tensor<?x20xf32, #otf.dims<"s">>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 640, type = 1, dims = [8, 20]>
  onnx.initializer @b = #onnx.blob<file = 0, offset = 640, length = 80, type = 1, dims = [20]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %b = onnx.get @b
    %0 = onnx.node "MatMul" version 18 (%x, %w)
    %1 = onnx.node "Add" version 18 (%0, %b)
    return %1 : !onnx.value
  }
}

// -----

// A softmax subtracts the row's largest element.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: arith.maximumf
// CHECK: scf.for
// CHECK: math.exp
// CHECK: arith.divf
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["s", 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Softmax" version 18 (%x) {axis = -1 : i64}
    return %0 : !onnx.value
  }
}
