// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import --split-input-file %s | FileCheck %s

// Three ways to say a product of codes are one form: a linear by codes of the file, of x rounded to the grid that the file gives.
// A zero point of uint8 counts from -128.

// QDQ.
// CHECK-LABEL: module
// CHECK: otf.weight @w : tensor<24x40xf32> = <file = 0, offset = 0, length = 960, type = i8, transposed>
// CHECK-SAME: given = #otf.given<bits = 8
// CHECK: %[[GRID:.*]] = arith.constant dense<[5.000000e-01, -8.000000e+00]> : tensor<2xf32>
// CHECK: %[[X:.*]] = otf.on_grid %{{.*}}, %[[GRID]]
// CHECK: otf.linear %[[X]], %{{.*}} : (tensor<?x40xf32, #otf.dims<"rows">>, !otf.matrix<24x40
// CHECK-NOT: tensor.generate
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 960, type = 3, dims = [40, 24]>
  onnx.initializer @ws = #onnx.blob<file = 0, offset = 960, length = 96, type = 1, dims = [24]>
  onnx.initializer @s = dense<0.5> : tensor<f32>
  onnx.initializer @z = dense<120> : tensor<ui8>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %ws = onnx.get @ws
    %s = onnx.get @s
    %z = onnx.get @z
    %q = onnx.node "QuantizeLinear" version 13 (%x, %s, %z)
    %d = onnx.node "DequantizeLinear" version 13 (%q, %s, %z)
    %v = onnx.node "DequantizeLinear" version 13 (%w, %ws)
    %y = onnx.node "MatMul" version 13 (%d, %v)
    return %y : !onnx.value
  }
}

// -----

// An operator on codes. Codes that nothing known was quantized to are dequantized, and lie on the grid already.
// CHECK-LABEL: module
// CHECK: otf.weight @w : {{.*}}given = #otf.given<bits = 8
// CHECK: %[[GRID:.*]] = arith.constant dense<[5.000000e-01, -8.000000e+00]> : tensor<2xf32>
// CHECK: %[[X:.*]] = otf.on_grid %{{.*}}, %[[GRID]]
// CHECK: otf.linear %[[X]]
// CHECK: math.roundeven
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 960, type = 3, dims = [40, 24]>
  onnx.initializer @ws = dense<0.25> : tensor<f32>
  onnx.initializer @wz = dense<3> : tensor<i8>
  onnx.initializer @s = dense<0.5> : tensor<f32>
  onnx.initializer @z = dense<120> : tensor<ui8>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 2 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 2 : i64}) {
    %w = onnx.get @w
    %ws = onnx.get @ws
    %wz = onnx.get @wz
    %s = onnx.get @s
    %z = onnx.get @z
    %y = onnx.node "QLinearMatMul" version 21 (%x, %s, %z, %w, %ws, %wz, %s, %z)
    return %y : !onnx.value
  }
}

// -----

// Integers, then scales. What the grid is a run finds out.
// CHECK-LABEL: module
// CHECK: otf.weight @w : {{.*}}given = #otf.given<bits = 8
// CHECK: %[[GRID:.*]] = tensor.generate
// CHECK: tensor<2xf32>
// CHECK: %[[X:.*]] = otf.on_grid %{{.*}}, %[[GRID]]
// CHECK: %[[Y:.*]] = otf.linear %[[X]]
// CHECK: return %[[Y]]
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 960, type = 3, dims = [40, 24]>
  onnx.initializer @ws = dense<0.25> : tensor<f32>
  onnx.initializer @wz = dense<3> : tensor<i8>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["rows", 40]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %w = onnx.get @w
    %ws = onnx.get @ws
    %wz = onnx.get @wz
    %q:3 = onnx.node "DynamicQuantizeLinear" version 11 (%x)
    %i = onnx.node "MatMulInteger" version 10 (%q#0, %w, %q#2, %wz)
    %f = onnx.node "Cast" version 13 (%i) {to = 1 : i64}
    %s = onnx.node "Mul" version 14 (%q#1, %ws)
    %y = onnx.node "Mul" version 14 (%f, %s)
    return %y : !onnx.value
  }
}

// -----

// A convolution is a linear of windows; so is one of codes.
// CHECK-LABEL: module
// CHECK: otf.weight @w : tensor<8x36xf32> = {{.*}}given = #otf.given<bits = 8{{.*}}otf.taps = 9
// CHECK: %[[X:.*]] = otf.on_grid
// CHECK: otf.linear %[[X]], %{{.*}} bias
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 288, type = 3, dims = [8, 4, 3, 3]>
  onnx.initializer @ws = #onnx.blob<file = 0, offset = 288, length = 32, type = 1, dims = [8]>
  onnx.initializer @wz = dense<0> : tensor<i8>
  onnx.initializer @b = #onnx.blob<file = 0, offset = 320, length = 32, type = 6, dims = [8]>
  onnx.initializer @s = dense<0.5> : tensor<f32>
  onnx.initializer @z = dense<120> : tensor<ui8>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 2 : i64, onnx.dims = ["n", 4, 6, 6]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 2 : i64}) {
    %w = onnx.get @w
    %ws = onnx.get @ws
    %wz = onnx.get @wz
    %b = onnx.get @b
    %s = onnx.get @s
    %z = onnx.get @z
    %y = onnx.node "QLinearConv" version 10 (%x, %s, %z, %w, %ws, %wz, %s, %z, %b) {pads = array<i64: 1, 1, 1, 1>}
    return %y : !onnx.value
  }
}
