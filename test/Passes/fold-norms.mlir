// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-fold-norms | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-fold-norms --otf-fold-norms | FileCheck %s

// Fires: both readers are linears, and their weights are read nowhere else.
// CHECK: otf.weight @q {{.*}} {encoding = #otf.encoding<f32>, scale = @g}
// CHECK: otf.weight @k {{.*}} {encoding = #otf.encoding<f32>, scale = @g}
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @k : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @folds
func.func @folds(%x: tensor<4x32xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %k = otf.use @k : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK-NOT: otf.use @g
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm rms %{{.*}} {epsilon = 9.99999974E-6 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %n, %k : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Refuses: the embedding would read scaled rows.
// CHECK: otf.weight @tied
// CHECK-NOT: scale = @g
otf.weight @tied : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @tied_table_stays
func.func @tied_table_stays(%ids: tensor<4xi64>) -> tensor<4x8xf32> {
  %w = otf.use @tied : !otf.matrix<8x32, #otf.encoding<f32>>
  %x = otf.embedding %ids, %w : (tensor<4xi64>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm rms %{{.*}} scale
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %v = otf.use @tied : !otf.matrix<8x32, #otf.encoding<f32>>
  %0 = otf.linear %n, %v : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Refuses: the norm's result is also a result of the function.
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @another_reader_stays
func.func @another_reader_stays(%x: tensor<4x32xf32>) -> (tensor<4x8xf32>, tensor<4x32xf32>) {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm rms %{{.*}} scale
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %n : tensor<4x8xf32>, tensor<4x32xf32>
}

// -----

// Refuses: a bias would have to be divided by the gain.
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @bias_stays
func.func @bias_stays(%x: tensor<4x32xf32>) -> tensor<4x8xf32> {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm layer %{{.*}} scale %{{.*}} bias
  %n = otf.norm layer %x scale %g bias %g {epsilon = 1.0e-5 : f32}
      : (tensor<4x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Refuses: one of two norms that share a weight cannot have it.
// CHECK: otf.weight @q
// CHECK-NOT: scale = @g
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<f32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @shared_weight_stays
func.func @shared_weight_stays(%x: tensor<4x32xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Refuses: the weight is coded, and its activations are quantized after the gain.
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32> {encoding = #otf.encoding<int4, group = 32>}
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @coded_weight_stays
func.func @coded_weight_stays(%x: tensor<4x32xf32>) -> tensor<4x8xf32> {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm rms %{{.*}} scale
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// Refuses: the weight is undecided, so it may still become coded.
// CHECK: otf.weight @q
// CHECK-NOT: scale = @g
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK-LABEL: func.func @undecided_weight_stays
func.func @undecided_weight_stays(%x: tensor<4x32xf32>) -> tensor<4x8xf32> {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  // CHECK: otf.norm rms %{{.*}} scale
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %n, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
