// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-keep-blocks="first=1 last=1" | FileCheck %s
// RUN: otf-opt %s --otf-keep-blocks="first=1 last=1" --otf-keep-blocks="first=1 last=1" | FileCheck %s
// RUN: otf-opt %s --otf-keep-blocks | FileCheck %s --check-prefix=NONE
// RUN: otf-opt %s --otf-keep-blocks="first=7 last=9" | FileCheck %s --check-prefix=ALL

// Three blocks of two shapes, between what does not repeat. A choice made by hand stands.
// CHECK: otf.weight @before : tensor<8x16xf32> = <{{.*}}>{{$}}
// CHECK: otf.weight @a0 {{.*}} {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @b0 {{.*}} {encoding = #otf.encoding<int8, group = 32>}
// CHECK: otf.weight @a1 : tensor<16x8xf32> = <{{.*}}>{{$}}
// CHECK: otf.weight @b1 : tensor<8x16xf32> = <{{.*}}>{{$}}
// CHECK: otf.weight @a2 {{.*}} {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @b2 {{.*}} {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @after : tensor<32x8xf32> = <{{.*}}>{{$}}
// NONE-NOT: f16
// ALL: otf.weight @a1 {{.*}} {encoding = #otf.encoding<f16>}
// ALL: otf.weight @after : tensor<32x8xf32> = <{{.*}}>{{$}}
otf.weight @before : tensor<8x16xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @a0 : tensor<16x8xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @b0 : tensor<8x16xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32> {encoding = #otf.encoding<int8, group = 32>}
otf.weight @a1 : tensor<16x8xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @b1 : tensor<8x16xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @a2 : tensor<16x8xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @b2 : tensor<8x16xf32> = #otf.blob<file = 0, offset = 0, length = 512, type = f32>
otf.weight @after : tensor<32x8xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>

func.func @model(%x: tensor<4x16xf32>) -> tensor<4x32xf32> {
  %w0 = otf.use @before : !otf.matrix<8x16, #otf.encoding<f32>>
  %0 = otf.linear %x, %w0 : (tensor<4x16xf32>, !otf.matrix<8x16, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %z = otf.use @after : !otf.matrix<32x8, #otf.encoding<f32>>
  %t = otf.linear %0, %z : (tensor<4x8xf32>, !otf.matrix<32x8, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %a0 = otf.use @a0 : !otf.matrix<16x8, #otf.encoding<f32>>
  %1 = otf.linear %0, %a0 : (tensor<4x8xf32>, !otf.matrix<16x8, #otf.encoding<f32>>) -> tensor<4x16xf32>
  %b0 = otf.use @b0 : !otf.matrix<8x16, #otf.encoding<f32>>
  %2 = otf.linear %1, %b0 : (tensor<4x16xf32>, !otf.matrix<8x16, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %a1 = otf.use @a1 : !otf.matrix<16x8, #otf.encoding<f32>>
  %3 = otf.linear %2, %a1 : (tensor<4x8xf32>, !otf.matrix<16x8, #otf.encoding<f32>>) -> tensor<4x16xf32>
  %b1 = otf.use @b1 : !otf.matrix<8x16, #otf.encoding<f32>>
  %4 = otf.linear %3, %b1 : (tensor<4x16xf32>, !otf.matrix<8x16, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %a2 = otf.use @a2 : !otf.matrix<16x8, #otf.encoding<f32>>
  %5 = otf.linear %4, %a2 : (tensor<4x8xf32>, !otf.matrix<16x8, #otf.encoding<f32>>) -> tensor<4x16xf32>
  %b2 = otf.use @b2 : !otf.matrix<8x16, #otf.encoding<f32>>
  %6 = otf.linear %5, %b2 : (tensor<4x16xf32>, !otf.matrix<8x16, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %7 = otf.linear %6, %z : (tensor<4x8xf32>, !otf.matrix<32x8, #otf.encoding<f32>>) -> tensor<4x32xf32>
  return %7 : tensor<4x32xf32>
}
