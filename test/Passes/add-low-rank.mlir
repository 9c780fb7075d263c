// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-add-low-rank --mlir-print-local-scope | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-add-low-rank --otf-encode --otf-fuse --mlir-print-local-scope | FileCheck %s --check-prefix=FUSED

// Two weights that no file has, two linears before the coded one, and a sum.
// CHECK: otf.weight @w : {{.*}}, otf.rank = 2 : i64}
// CHECK-DAG: otf.weight @w.left : tensor<8x2xf32> = {{.*}} {encoding = #otf.encoding<f16>, otf.derived = {of = @w, part = "left"}}
// CHECK-DAG: otf.weight @w.right : tensor<2x64xf32> = {{.*}} {encoding = #otf.encoding<f16>, otf.derived = {of = @w, part = "right"}}
otf.weight @w : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>, otf.rank = 2 : i64}
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: %[[Q:.*]] = otf.use @w.right : !otf.matrix<2x64, #otf.encoding<f16>>
// CHECK: %[[A:.*]] = otf.linear %[[X]], %[[Q]] : {{.*}} -> tensor<4x2xf32>
// CHECK: %[[P:.*]] = otf.use @w.left : !otf.matrix<8x2, #otf.encoding<f16>>
// CHECK: %[[B:.*]] = otf.linear %[[A]], %[[P]] : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[C:.*]] = otf.linear %[[X]], %{{.*}} : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
// CHECK: %[[Y:.*]] = tensor.generate
// CHECK: %[[CODED:.*]] = tensor.extract %[[C]]
// CHECK: %[[BACK:.*]] = tensor.extract %[[B]]
// CHECK: arith.addf %[[CODED]], %[[BACK]]
// CHECK: return %[[Y]]
// The coded linear takes the sum in.
// FUSED-LABEL: func.func @sum(
// FUSED: %[[B:.*]] = otf.linear {{.*}}matrix<8x2, #otf.encoding<f16>>
// FUSED: otf.linear {{.*}}!otf.matrix<8x64, #otf.encoding<int4, group = 32>>{{.*}} epilogue
// FUSED: tensor.extract %[[B]]
// FUSED-NOT: tensor.generate
func.func @sum(%x: tensor<4x64xf32>) -> tensor<4x8xf32> {
  %w = otf.use @w : !otf.matrix<8x64, #otf.encoding<f32>>
  %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// With a base, that is what the linear multiplies by, one for all.
// CHECK-DAG: otf.weight @shared : tensor<8x64xf32> = {{.*}} {encoding = #otf.encoding<f16>, otf.derived = {of = [@a, @b], part = "base"}}
// CHECK-DAG: otf.weight @a.left : {{.*}} otf.derived = {base = @shared, of = @a, part = "base_left"}}
// CHECK-DAG: otf.weight @b.right : {{.*}} otf.derived = {base = @shared, of = @b, part = "base_right"}}
otf.weight @a : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<f16>, otf.base = "shared", otf.rank = 2 : i64}
otf.weight @b : tensor<8x64xf32> = #otf.blob<file = 0, offset = 2048, length = 2048, type = f32> {encoding = #otf.encoding<f16>, otf.base = "shared", otf.rank = 2 : i64}
// CHECK-LABEL: func.func @base(
// CHECK: %[[FIRST:.*]] = otf.use @shared : !otf.matrix<8x64, #otf.encoding<f16>>
// CHECK: otf.linear %{{.*}}, %[[FIRST]]
// CHECK: %[[SECOND:.*]] = otf.use @shared : !otf.matrix<8x64, #otf.encoding<f16>>
// CHECK: otf.linear %{{.*}}, %[[SECOND]]
func.func @base(%x: tensor<4x64xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = otf.use @a : !otf.matrix<8x64, #otf.encoding<f32>>
  %b = otf.use @b : !otf.matrix<8x64, #otf.encoding<f32>>
  %y = otf.linear %x, %a : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %z = otf.linear %x, %b : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
