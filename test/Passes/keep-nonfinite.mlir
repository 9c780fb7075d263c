// SPDX-License-Identifier: Apache-2.0
// REQUIRES: weights
// RUN: mkdir -p %t && %python %S/Inputs/nonfinite.py %t/w.bin
// RUN: otf-opt %s --otf-keep-nonfinite="model=%t/model.onnx" 2>%t/warnings | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN < %t/warnings
// RUN: otf-opt %s --otf-keep-nonfinite="model=%t/model.onnx" --otf-keep-nonfinite="model=%t/model.onnx" --otf-choose-bits="linear=int4" --otf-choose-rotations="kind=kronecker" 2>/dev/null | FileCheck %s --check-prefix=LATER

// The first element that is not finite is named, and how many there are.
// WARN: warning: stays f32: 2 of its elements are NaN or infinite, the first in row 1, column 2 (outputs x inputs)
// WARN: warning: stays f32: 1 of its elements are NaN or infinite, the first in row 0, column 0
// WARN-NOT: warning

module attributes {onnx.folder = "/nowhere", onnx.files = ["w.bin"]} {
  // CHECK: otf.weight @nan {{.*}} {encoding = #otf.encoding<f32>, otf.nonfinite}
  // What comes later leaves it alone: no codes, and no rotation.
  // LATER: otf.weight @nan {{.*}} {encoding = #otf.encoding<f32>, otf.nonfinite}
  otf.weight @nan : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
  // CHECK: otf.weight @infinite {{.*}} {encoding = #otf.encoding<f32>, otf.nonfinite}
  otf.weight @infinite : tensor<3x5xf32> = #otf.blob<file = 0, offset = 60, length = 60, type = f32>
  // CHECK: otf.weight @finite {{.*}} type = f32>{{$}}
  // LATER: otf.weight @finite {{.*}} {encoding = #otf.encoding<int4, group = 32>, rotation
  otf.weight @finite : tensor<3x5xf32> = #otf.blob<file = 0, offset = 120, length = 60, type = f32>
  // A choice made by hand stands, and what no linear reads as a matrix is not looked at.
  // CHECK: otf.weight @given {{.*}} {encoding = #otf.encoding<f16>}
  otf.weight @given : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<f16>}
  // CHECK: otf.weight @tensor {{.*}} type = f32>{{$}}
  otf.weight @tensor : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>

  func.func @model(%x: tensor<4x5xf32>) -> (tensor<4x3xf32>, tensor<3x5xf32>) {
    %w0 = otf.use @nan : !otf.matrix<3x5, #otf.encoding<f32>>
    %w1 = otf.use @infinite : !otf.matrix<3x5, #otf.encoding<f32>>
    %w2 = otf.use @finite : !otf.matrix<3x5, #otf.encoding<f32>>
    %w3 = otf.use @given : !otf.matrix<3x5, #otf.encoding<f32>>
    %t = otf.use @tensor : tensor<3x5xf32>
    %0 = otf.linear %x, %w0 : (tensor<4x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<4x3xf32>
    %1 = otf.linear %x, %w1 : (tensor<4x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<4x3xf32>
    %2 = otf.linear %x, %w2 : (tensor<4x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<4x3xf32>
    %3 = otf.linear %x, %w3 : (tensor<4x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<4x3xf32>
    %a = arith.addf %0, %1 : tensor<4x3xf32>
    %b = arith.addf %2, %3 : tensor<4x3xf32>
    %y = arith.addf %a, %b : tensor<4x3xf32>
    return %y, %t : tensor<4x3xf32>, tensor<3x5xf32>
  }
}
