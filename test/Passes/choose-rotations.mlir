// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-rotations -verify-diagnostics | FileCheck %s
// RUN: otf-opt %s --otf-choose-rotations="kind=kronecker block=8192 seed=5" | FileCheck %s --check-prefix=KRONECKER
// RUN: otf-opt %s --otf-choose-rotations --otf-choose-rotations="block=8 seed=1" 2>/dev/null | FileCheck %s

// CHECK: otf.weight @a {{.*}} rotation = #otf.rotation<block = 64>}
// KRONECKER: otf.weight @a {{.*}} rotation = #otf.rotation<block = 64, factor = 9, seed = 5>}
otf.weight @a : tensor<8x576xf32> = #otf.blob<file = 0, offset = 0, length = 18432, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}
// Blocks of at most 1024 unless asked for.
// CHECK: otf.weight @b {{.*}} rotation = #otf.rotation<block = 1024>}
// KRONECKER: otf.weight @b {{.*}} rotation = #otf.rotation<block = 2048, seed = 5>}
otf.weight @b : tensor<8x2048xf32> = #otf.blob<file = 0, offset = 0, length = 65536, type = f32>
    {encoding = #otf.encoding<ternary_sign, group = 64>}
// 4308 = 4 · 3 · 359: what the factor does not take is the number of segments.
// CHECK: otf.weight @c {{.*}} rotation = #otf.rotation<block = 4>}
// KRONECKER: otf.weight @c {{.*}} rotation = #otf.rotation<block = 4, factor = 3, seed = 5>}
otf.weight @c : tensor<1x4308xf32> = #otf.blob<file = 0, offset = 0, length = 17232, type = f32>
    {encoding = #otf.encoding<f32>}
// An odd width has factors only.
// CHECK: otf.weight @d {{.*}} {encoding = #otf.encoding<int8, group = 32>}
// KRONECKER: otf.weight @d {{.*}} rotation = #otf.rotation<factor = 15, seed = 5>}
// expected-warning@+1 {{is not rotated: 15 columns have no rotation of kind hadamard (kronecker takes odd widths too)}}
otf.weight @d : tensor<8x15xf32> = #otf.blob<file = 0, offset = 0, length = 480, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}

// What stays as it is: outliers, an embedding that reads it too, a rotation by hand, no encoding.
// CHECK: otf.weight @outliers {{.*}} {encoding = #otf.encoding<int8, group = 32>, outliers = #otf.outliers<[5]>}
otf.weight @outliers : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, outliers = #otf.outliers<[5]>}
// CHECK: otf.weight @tied {{.*}} {encoding = #otf.encoding<int8, group = 32>}
otf.weight @tied : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
// CHECK: otf.weight @by_hand {{.*}} rotation = #otf.rotation<block = 16, seed = 9>}
otf.weight @by_hand : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, rotation = #otf.rotation<block = 16, seed = 9>}
// CHECK: otf.weight @undecided : tensor<8x64xf32> = <file = 0, offset = 0, length = 2048, type = f32>{{$}}
otf.weight @undecided : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
// A convolution by int8 stays as it is: rotated windows would have to be written, which is for fewer bits.
// CHECK: otf.weight @taps8 {{.*}} {encoding = #otf.encoding<int8>}
otf.weight @taps8 : tensor<8x288xf32> = #otf.blob<file = 0, offset = 0, length = 9216, type = f32>
    {encoding = #otf.encoding<int8, group = 0>}
// CHECK: otf.weight @taps4 {{.*}} rotation = #otf.rotation<block = 32>}
otf.weight @taps4 : tensor<8x288xf32> = #otf.blob<file = 0, offset = 0, length = 9216, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}

func.func @convolutions(%x: tensor<1x6x6x32xf32>) {
  %w8 = otf.use @taps8 : !otf.matrix<8x288, #otf.encoding<f32>>
  %0 = otf.linear %x, %w8 {window = #otf.window<[3, 3] stride [1, 1] dilation [1, 1] before [1, 1]>}
      : (tensor<1x6x6x32xf32>, !otf.matrix<8x288, #otf.encoding<f32>>) -> tensor<1x6x6x8xf32>
  %w4 = otf.use @taps4 : !otf.matrix<8x288, #otf.encoding<f32>>
  %1 = otf.linear %x, %w4 {window = #otf.window<[3, 3] stride [1, 1] dilation [1, 1] before [1, 1]>}
      : (tensor<1x6x6x32xf32>, !otf.matrix<8x288, #otf.encoding<f32>>) -> tensor<1x6x6x8xf32>
  return
}

func.func @readers(%a: tensor<4x576xf32>, %b: tensor<4x2048xf32>, %c: tensor<4x4308xf32>, %d: tensor<4x15xf32>, %x: tensor<4x64xf32>,
                   %ids: tensor<4xi64>) {
  %wa = otf.use @a : !otf.matrix<8x576, #otf.encoding<f32>>
  %0 = otf.linear %a, %wa : (tensor<4x576xf32>, !otf.matrix<8x576, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %wb = otf.use @b : !otf.matrix<8x2048, #otf.encoding<f32>>
  %1 = otf.linear %b, %wb : (tensor<4x2048xf32>, !otf.matrix<8x2048, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %wc = otf.use @c : !otf.matrix<1x4308, #otf.encoding<f32>>
  %2 = otf.linear %c, %wc : (tensor<4x4308xf32>, !otf.matrix<1x4308, #otf.encoding<f32>>) -> tensor<4x1xf32>
  %wd = otf.use @d : !otf.matrix<8x15, #otf.encoding<f32>>
  %3 = otf.linear %d, %wd : (tensor<4x15xf32>, !otf.matrix<8x15, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %wo = otf.use @outliers : !otf.matrix<8x64, #otf.encoding<f32>>
  %4 = otf.linear %x, %wo : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %wt = otf.use @tied : !otf.matrix<8x64, #otf.encoding<f32>>
  %5 = otf.linear %x, %wt : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %6 = otf.embedding %ids, %wt : (tensor<4xi64>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x64xf32>
  %wh = otf.use @by_hand : !otf.matrix<8x64, #otf.encoding<f32>>
  %7 = otf.linear %x, %wh : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %wu = otf.use @undecided : !otf.matrix<8x64, #otf.encoding<f32>>
  %8 = otf.linear %x, %wu : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return
}
