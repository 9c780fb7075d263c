// SPDX-License-Identifier: Apache-2.0
// REQUIRES: weights
// RUN: mkdir -p %t && %python %S/Inputs/columns.py %t/w.bin && %python %S/Inputs/statistics.py %t/s.safetensors
// RUN: otf-opt %s --otf-choose-grids="model=%t/model.onnx statistics=%t/s.safetensors" | FileCheck %s
// RUN: %not otf-opt %s --otf-choose-grids="model=%t/model.onnx statistics=%t/none" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: %not otf-opt %s --otf-choose-grids="model=%t/model.onnx statistics=%t/w.bin" 2>&1 | FileCheck %s --check-prefix=OTHER

// NONE: error: otf-choose-grids: {{.*}}/none: the statistics cannot be read (
// OTHER: error: otf-choose-grids: {{.*}}/w.bin: is no safetensors file: it has 60 bytes and says that its header takes

module attributes {onnx.folder = "/nowhere", onnx.files = ["w.bin"]} {
  // Largest are 9, 9 and 9 of a row. Codes of row 0: 1, 5, 9, 0, 5 times 127 / 9, which are 14, 71, 127, 0 and 71.
  // CHECK: otf.weight @w {{.*}}encoding = #otf.encoding<grid8{{.*}}>, otf.exact_sums, otf.row_scales = dense<0.0708{{[0-9]*}}> : tensor<3xf32>, otf.row_sums = dense<[2.830000e+02, -1.000000e+00, 2.900000e+01]> : tensor<3xf32>}
  otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int8, group = 0>}
  // What calibration has not seen, and a weight with other groups, stay as they are.
  // CHECK: otf.weight @unseen {{.*}} {encoding = #otf.encoding<int8{{.*}}>}
  otf.weight @unseen : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int8, group = 0>}

  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<2x5xf32> {otf.name = "x"}) -> (tensor<2x3xf32> {otf.name = "y"}, tensor<2x3xf32> {otf.name = "z"}) {
    %w = otf.use @w : !otf.matrix<3x5, #otf.encoding<f32>>
    // 256 values from -1 to 3: a step is 4/255, and 0 is the code -128 + 64.
    // CHECK: otf.linear %{{.*}}, %{{.*}} {otf.grid = array<f32: 0.0156862754, -6.400000e+01>}
    %y = otf.linear %x, %w : (tensor<2x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<2x3xf32>
    %u = otf.use @unseen : !otf.matrix<3x5, #otf.encoding<f32>>
    // CHECK: otf.linear %{{.*}}, %{{[a-z0-9]*}} : (
    %z = otf.linear %x, %u : (tensor<2x5xf32>, !otf.matrix<3x5, #otf.encoding<f32>>) -> tensor<2x3xf32>
    return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
