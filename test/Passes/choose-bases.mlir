// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-bases=rank=4 | FileCheck %s
// RUN: %not otf-opt %s --otf-choose-bases=rank=0 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: otf-choose-bases: rank must be from 1 to 4096 and sweeps from 0 to 100, got 0 and 0

// Two blocks of two weights: a base for each place in a block.
// CHECK: otf.weight @a0 {{.*}} {encoding = #otf.encoding<f16>, otf.base = "a0.base", otf.rank = 4 : i64, otf.sweeps = 0 : i64}
otf.weight @a0 : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @b0 {{.*}} {encoding = #otf.encoding<f16>, otf.base = "b0.base", otf.rank = 4 : i64, otf.sweeps = 0 : i64}
otf.weight @b0 : tensor<64x8xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @a1 {{.*}} {encoding = #otf.encoding<f16>, otf.base = "a0.base",
otf.weight @a1 : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @b1 {{.*}} {encoding = #otf.encoding<f16>, otf.base = "b0.base",
otf.weight @b1 : tensor<64x8xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>}
// One that is alone stays f16.
// CHECK: otf.weight @head {{.*}} {encoding = #otf.encoding<f16>, vocabulary}
otf.weight @head : tensor<16x64xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32> {encoding = #otf.encoding<f16>, vocabulary}
func.func @f(%x: tensor<4x64xf32>) {
  %a0 = otf.use @a0 : !otf.matrix<8x64, #otf.encoding<f32>>
  %b0 = otf.use @b0 : !otf.matrix<64x8, #otf.encoding<f32>>
  %a1 = otf.use @a1 : !otf.matrix<8x64, #otf.encoding<f32>>
  %b1 = otf.use @b1 : !otf.matrix<64x8, #otf.encoding<f32>>
  %head = otf.use @head : !otf.matrix<16x64, #otf.encoding<f32>>
  %0 = otf.linear %x, %a0 : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %0, %b0 : (tensor<4x8xf32>, !otf.matrix<64x8, #otf.encoding<f32>>) -> tensor<4x64xf32>
  %2 = otf.linear %1, %a1 : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %3 = otf.linear %2, %b1 : (tensor<4x8xf32>, !otf.matrix<64x8, #otf.encoding<f32>>) -> tensor<4x64xf32>
  %4 = otf.linear %3, %head : (tensor<4x64xf32>, !otf.matrix<16x64, #otf.encoding<f32>>) -> tensor<4x16xf32>
  return
}
