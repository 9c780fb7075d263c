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

// The order is norm, rotation, codes.
// CHECK-LABEL: func.func @takes_rotations(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x64xf32>
func.func @takes_rotations(%x: tensor<4x64xf32>) -> (tensor<4x128xi8>, tensor<4x128xi8>) {
  // CHECK-NOT: otf.norm
  // CHECK-NOT: otf.rotate
  %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %r = otf.rotate %n by <block = 64> : tensor<4x64xf32>
  // CHECK: otf.prologue rms %[[X]] by <block = 64> {epsilon = 9.99999974E-6 : f32} : (tensor<4x64xf32>) -> tensor<4x128xi8>
  %0 = otf.prologue none %r : (tensor<4x64xf32>) -> tensor<4x128xi8>
  // CHECK: otf.prologue rms %[[X]] {epsilon
  %1 = otf.prologue none %n : (tensor<4x64xf32>) -> tensor<4x128xi8>
  return %0, %1 : tensor<4x128xi8>, tensor<4x128xi8>
}

// CHECK-LABEL: func.func @a_rotation_for_others_stays
func.func @a_rotation_for_others_stays(%x: tensor<4x64xf32>) -> (tensor<4x128xi8>, tensor<4x64xf32>) {
  // CHECK: %[[R:.*]] = otf.rotate
  %r = otf.rotate %x by <block = 64> : tensor<4x64xf32>
  // CHECK: otf.prologue none %[[R]] :
  %0 = otf.prologue none %r : (tensor<4x64xf32>) -> tensor<4x128xi8>
  return %0, %r : tensor<4x128xi8>, tensor<4x64xf32>
}

// A prologue that normalises what is rotated cannot rotate it first; nor one that rotates already.
// CHECK-LABEL: func.func @a_norm_of_a_rotation
func.func @a_norm_of_a_rotation(%x: tensor<4x64xf32>) -> (tensor<4x128xi8>, tensor<4x128xi8>) {
  // CHECK: otf.rotate
  %r = otf.rotate %x by <block = 64> : tensor<4x64xf32>
  %0 = otf.prologue rms %r {epsilon = 1.0e-6 : f32} : (tensor<4x64xf32>) -> tensor<4x128xi8>
  // CHECK: %[[S:.*]] = otf.rotate
  %s = otf.rotate %x by <block = 32> : tensor<4x64xf32>
  // CHECK: otf.prologue none %[[S]] by <block = 64>
  %1 = otf.prologue none %s by <block = 64> : (tensor<4x64xf32>) -> tensor<4x128xi8>
  return %0, %1 : tensor<4x128xi8>, tensor<4x128xi8>
}
