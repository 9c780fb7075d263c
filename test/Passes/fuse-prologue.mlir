// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-fuse-prologue | FileCheck %s
// RUN: otf-opt %s --otf-fuse-prologue --otf-fuse-prologue | FileCheck %s
// RUN: otf-opt %s --otf-fuse-prologue --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// CHECK-LABEL: func.func @fuses_with_every_reader(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x32xf32>, %[[G:[a-z0-9]*]]: tensor<32xf32>
// LOC-LABEL: func.func @fuses_with_every_reader(
func.func @fuses_with_every_reader(%x: tensor<4x32xf32>, %g: tensor<32xf32>,
                                   %w: !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>)
    -> (tensor<4x64xi8>, tensor<4x64xi8>) {
  // CHECK-NOT: otf.norm
  %n = otf.norm layer %x scale %g bias %g {epsilon = 1.0e-5 : f32}
      : (tensor<4x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<4x32xf32> loc("norm")
  // CHECK: otf.prologue layer %[[X]] scale %[[G]] bias %[[G]] {epsilon = 9.99999974E-6 : f32} : (
  // LOC: otf.prologue layer {{.*}} loc(fused["norm", "quantize"])
  %0 = otf.prologue none %n : (tensor<4x32xf32>) -> tensor<4x64xi8> loc("quantize")
  // CHECK: otf.prologue layer %[[X]] scale %[[G]] bias %[[G]] columns %{{.*}} {epsilon = 9.99999974E-6 : f32} : (
  %1 = otf.prologue none %n columns %w
      : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>) -> tensor<4x64xi8>
  return %0, %1 : tensor<4x64xi8>, tensor<4x64xi8>
}

// A residual after the norm needs it in memory.
// CHECK-LABEL: func.func @another_reader_keeps_the_norm
func.func @another_reader_keeps_the_norm(%x: tensor<4x32xf32>) -> (tensor<4x64xi8>, tensor<4x32xf32>) {
  // CHECK: %[[N:.*]] = otf.norm
  %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  // CHECK: otf.prologue none %[[N]]
  %0 = otf.prologue none %n : (tensor<4x32xf32>) -> tensor<4x64xi8>
  return %0, %n : tensor<4x64xi8>, tensor<4x32xf32>
}

// A prologue that normalises already is not a place for another norm.
// CHECK-LABEL: func.func @norm_of_a_norm
func.func @norm_of_a_norm(%x: tensor<4x32xf32>) -> tensor<4x64xi8> {
  // CHECK: otf.norm layer
  %n = otf.norm layer %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  // CHECK: otf.prologue rms
  %0 = otf.prologue rms %n {epsilon = 1.0e-6 : f32} : (tensor<4x32xf32>) -> tensor<4x64xi8>
  return %0 : tensor<4x64xi8>
}
