// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-rotate | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-rotate --otf-rotate | FileCheck %s

otf.weight @q : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, rotation = #otf.rotation<block = 64>}
otf.weight @k : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, rotation = #otf.rotation<block = 64>}
otf.weight @other : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, rotation = #otf.rotation<block = 32, seed = 3>}
otf.weight @plain : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
// Linears that share an input and a rotation share the rotated input, before the first of them.
// CHECK-LABEL: func.func @shares(
// CHECK-SAME: %[[X:.*]]: tensor
func.func @shares(%x: tensor<?x64xf32, #otf.dims<"s">>) {
  %k = otf.use @k : !otf.matrix<8x64, #otf.encoding<f32>>
  %q = otf.use @q : !otf.matrix<8x64, #otf.encoding<f32>>
  %o = otf.use @other : !otf.matrix<8x64, #otf.encoding<f32>>
  %p = otf.use @plain : !otf.matrix<8x64, #otf.encoding<f32>>
  // CHECK: %[[R:.*]] = otf.rotate %[[X]] by <block = 64> : tensor<?x64xf32, #otf.dims<"s">>
  // CHECK: otf.linear %[[R]],
  // CHECK-NEXT: otf.linear %[[R]],
  %0 = otf.linear %x, %q : (tensor<?x64xf32, #otf.dims<"s">>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  %1 = otf.linear %x, %k : (tensor<?x64xf32, #otf.dims<"s">>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  // CHECK: %[[S:.*]] = otf.rotate %[[X]] by <block = 32, seed = 3>
  // CHECK: otf.linear %[[S]],
  %2 = otf.linear %x, %o : (tensor<?x64xf32, #otf.dims<"s">>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  // CHECK: otf.linear %[[X]],
  %3 = otf.linear %x, %p : (tensor<?x64xf32, #otf.dims<"s">>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  return
}
