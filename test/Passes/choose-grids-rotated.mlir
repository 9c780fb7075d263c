// SPDX-License-Identifier: Apache-2.0
// REQUIRES: weights
// RUN: mkdir -p %t && %python %S/Inputs/columns.py %t/w.bin && %python %S/Inputs/statistics.py %t/s.safetensors
// RUN: otf-opt %s --otf-choose-grids="model=%t/model.onnx statistics=%t/s.safetensors" | FileCheck %s

module attributes {onnx.folder = "/nowhere", onnx.files = ["w.bin"]} {
  // The rows are those that will be stored: rotated, of which none has 9 as its largest.
  // CHECK: otf.weight @w {{.*}}encoding = #otf.encoding<grid8{{.*}}>, otf.exact_sums, otf.row_scales =
  // CHECK-NOT: 0.0708
  // CHECK-SAME: rotation = #otf.rotation<factor = 5>
  otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
      {encoding = #otf.encoding<int8, group = 0>, rotation = #otf.rotation<factor = 5>}

  func.func @main(%x: tensor<2x5xf32> {otf.name = "x"}) -> (tensor<2x3xf32> {otf.name = "y"}) {
    %w = otf.use @w : !otf.matrix<3x5, #otf.encoding<f32>>
    // The mean square of 1, 8, 1/4, 1 and 4 is 16.4125: ±5.5 · 4.0512 in 255 steps.
    // CHECK: otf.linear %{{.*}}, %{{.*}} {otf.grid = array<f32: 0.174759
    %y = otf.linear %x, %w : (tensor<2x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }
}
