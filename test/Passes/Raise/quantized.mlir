// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import --split-input-file %s | FileCheck %s

// Codes stay in the file; what they mean is said beside them. A row of 40 columns is two blocks of 32 codes.
// CHECK-LABEL: module
// CHECK: otf.weight @w : tensor<24x40xf32> = <file = 0, offset = 0, length = 768, type = i8>
// CHECK-SAME: given = #otf.given<bits = 4, pitch = 64, block = 32, scales = #otf.blob<file = 0, offset = 768, length = 192, type = f32>,
// CHECK-SAME: scaleRow = 2, scaleBlock = 1, zero = 8>
// CHECK: otf.linear %{{.*}}, %{{.*}} : (tensor<?x40xf32, #otf.dims<"rows">>, !otf.matrix<24x40, #otf.encoding<f32>>)
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 768, type = 2, dims = [24, 2, 16]>
  onnx.initializer @s = #onnx.blob<file = 0, offset = 768, length = 192, type = 1, dims = [24, 2]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %s = onnx.get @s
    %y = onnx.node "MatMulNBits" domain "com.microsoft" version 1 (%x, %w, %s) {K = 40 : i64, N = 24 : i64, bits = 4 : i64, block_size = 32 : i64}
    return %y : !onnx.value
  }
}

// -----

// A constant behind a DequantizeLinear stays as it is too. The file has K x N, so a scale for each column is one a row here.
// CHECK-LABEL: module
// CHECK: otf.weight @w : tensor<24x40xf32> = <file = 0, offset = 0, length = 960, type = i8, transposed>
// CHECK-SAME: given = #otf.given<bits = 8, isSigned = true, pitch = 24, block = 40, scales = #otf.blob<file = 0, offset = 960, length = 96, type = f32>,
// CHECK-SAME: scaleRow = 1>
// CHECK: otf.linear
// CHECK-NOT: tensor.generate
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 960, type = 3, dims = [40, 24]>
  onnx.initializer @s = #onnx.blob<file = 0, offset = 960, length = 96, type = 1, dims = [24]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %s = onnx.get @s
    %d = onnx.node "DequantizeLinear" version 13 (%w, %s)
    %y = onnx.node "MatMul" version 13 (%x, %d)
    return %y : !onnx.value
  }
}

// -----

// Integers are multiplied as integers.
// CHECK-LABEL: module
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: arith.muli %{{.*}} : i32
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%a: !onnx.value {onnx.name = "a", onnx.type = 2 : i64, onnx.dims = ["rows", 40]},
                  %b: !onnx.value {onnx.name = "b", onnx.type = 3 : i64, onnx.dims = [40, 24]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 6 : i64}) {
    %y = onnx.node "MatMulInteger" version 10 (%a, %b)
    return %y : !onnx.value
  }
}

// -----

// Codes that are cast and scaled are codes of the file as well.
// CHECK-LABEL: module
// CHECK: otf.weight @w : tensor<24x40xf32> = <file = 0, offset = 0, length = 960, type = i8, transposed>
// CHECK-SAME: given = #otf.given<bits = 8, isSigned = true, pitch = 24, block = 40, scales = #otf.blob<file = 0, offset = 960, length = 96, type = f32>,
// CHECK-SAME: scaleRow = 1>
// CHECK: otf.linear
// CHECK-NOT: tensor.generate
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 960, type = 3, dims = [40, 24]>
  onnx.initializer @s = #onnx.blob<file = 0, offset = 960, length = 96, type = 1, dims = [1, 24]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %s = onnx.get @s
    %f = onnx.node "Cast" version 13 (%w) {to = 1 : i64}
    %d = onnx.node "Mul" version 14 (%f, %s)
    %y = onnx.node "MatMul" version 13 (%x, %d)
    return %y : !onnx.value
  }
}
