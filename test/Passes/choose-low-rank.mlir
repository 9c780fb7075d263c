// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-low-rank=rank=4 | FileCheck %s
// RUN: otf-opt %s --otf-choose-low-rank=rank=4 --otf-choose-low-rank=rank=2 | FileCheck %s
// RUN: %not otf-opt %s --otf-choose-low-rank=rank=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: %not otf-opt %s --otf-choose-low-rank=gated 2>&1 | FileCheck %s --check-prefix=GATED

// NONE: error: otf-choose-low-rank: rank must be from 1 to 4096, got 0
// GATED: error: otf-choose-low-rank: no model is open to measure what a rank takes off (leave out gated)

// CHECK: otf.weight @w {{.*}} {encoding = #otf.encoding<int4, group = 32>, otf.rank = 4 : i64}
otf.weight @w : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>}
// A rank is at most that of the weight.
// CHECK: otf.weight @narrow {{.*}}, otf.rank = 3 : i64}
otf.weight @narrow : tensor<3x64xf32> = #otf.blob<file = 0, offset = 0, length = 768, type = f32> {encoding = #otf.encoding<int4, group = 32>}
// Of a table that is coded as linears are, too.
// CHECK: otf.weight @head {{.*}}, otf.as_linear, otf.rank = 4 : i64, vocabulary}
otf.weight @head : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>, vocabulary, otf.as_linear}
// Plain, a table, and what is no linear's: nothing is lost, or nobody could add it.
// CHECK-NOT: otf.rank
otf.weight @plain : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>}
otf.weight @table : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int8, group = 32>, vocabulary}
otf.weight @unread : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>}
func.func @f(%x: tensor<4x64xf32>) {
  %w = otf.use @w : !otf.matrix<8x64, #otf.encoding<f32>>
  %n = otf.use @narrow : !otf.matrix<3x64, #otf.encoding<f32>>
  %h = otf.use @head : !otf.matrix<8x64, #otf.encoding<f32>>
  %p = otf.use @plain : !otf.matrix<8x64, #otf.encoding<f32>>
  %t = otf.use @table : !otf.matrix<8x64, #otf.encoding<f32>>
  %0 = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %n : (tensor<4x64xf32>, !otf.matrix<3x64, #otf.encoding<f32>>) -> tensor<4x3xf32>
  %2 = otf.linear %x, %h : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %3 = otf.linear %x, %p : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %4 = otf.linear %x, %t : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return
}
