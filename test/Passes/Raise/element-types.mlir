// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import -split-input-file %s | FileCheck %s

// What the caller sees is said beside the signless integers that memory holds.
// CHECK: func.func @main(%[[X:.*]]: tensor<8xi8> {otf.element = ui8, otf.name = "x"})
// CHECK-SAME: -> (tensor<8xi1> {otf.name = "y"})
// CHECK: arith.cmpi ult
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 2 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 9 : i64}) {
    %0 = onnx.node "Less" version 18 (%x, %x)
    return %0 : !onnx.value
  }
}

// -----

// A 4-bit integer lies in the low bits of a byte: it is extended at the boundary and computed as the value it is.
// CHECK: func.func @main(%[[X:.*]]: tensor<8xi8> {otf.element = i4, otf.name = "x"})
// CHECK: %[[LOW:.*]] = tensor.extract %[[X]]
// CHECK: %[[UP:.*]] = arith.shli %[[LOW]]
// CHECK: arith.shrsi %[[UP]]
// CHECK: arith.sitofp {{.*}} : i8 to f32
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 22 : i64, onnx.dims = [8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "Cast" version 21 (%x) {to = 1 : i64}
    return %0 : !onnx.value
  }
}

// -----

// fp8 is held as its bits and moved without being decoded.
// CHECK: func.func @main(%{{.*}}: tensor<2x4xi8> {otf.element = f8E4M3FN, otf.name = "x"})
// CHECK-SAME: -> (tensor<4x2xi8> {otf.element = f8E4M3FN, otf.name = "y"})
// CHECK-NOT: bitcast
module attributes {onnx.files = ["m"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 17 : i64, onnx.dims = [2, 4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 17 : i64}) {
    %0 = onnx.node "Transpose" version 21 (%x) {perm = array<i64: 1, 0>}
    return %0 : !onnx.value
  }
}

// -----

// Constants of 8 bits or fewer are bytes too; a packed weight keeps the type it has in the file.
// CHECK: otf.weight @w : tensor<200xi8> = {{.*}}<file = 0, offset = 0, length = 100, type = ui4>
// CHECK: arith.constant dense<[56, -72]> : tensor<2xi8>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @w = #onnx.blob<file = 0, offset = 0, length = 100, type = 21, dims = [200]>
  onnx.initializer @c = dense<[1.0, -1.0]> : tensor<2xf8E4M3FN>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [200]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "z", onnx.type = 17 : i64}) {
    %w = onnx.get @w
    %c = onnx.get @c
    %0 = onnx.node "CastLike" version 21 (%w, %x)
    %1 = onnx.node "Identity" version 21 (%c)
    return %0, %1 : !onnx.value, !onnx.value
  }
}

// -----

// Integers that are known wrap as their type does: 200 + 100 is 44 in eight bits.
// CHECK: arith.constant dense<44> : tensor<1xi8>
module attributes {onnx.files = ["m"]} {
  onnx.initializer @a = dense<[200]> : tensor<1xui8>
  onnx.initializer @b = dense<[100]> : tensor<1xui8>
  func.func @main() -> (!onnx.value {onnx.name = "y", onnx.type = 2 : i64}) {
    %a = onnx.get @a
    %b = onnx.get @b
    %0 = onnx.node "Add" version 18 (%a, %b)
    return %0 : !onnx.value
  }
}
