// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-quantize-rows --mlir-print-local-scope | FileCheck %s

otf.weight @q : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int8, group = 32>, otf.row_activations}
otf.weight @k : tensor<8x64xf32> = #otf.blob<file = 0, offset = 2048, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>, otf.row_activations}
// Scales, codes and the record are made once; the scale and the bias come after the sum.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[X:.*]]: tensor<4x64xf32>, %[[BIAS:.*]]: tensor<8xf32>
// CHECK: %[[A:.*]] = tensor.generate
// CHECK: scf.for
// CHECK: math.absf
// CHECK: arith.divf
// CHECK: %[[CODES:.*]] = tensor.generate
// CHECK: math.roundeven
// CHECK: %[[ONE:.*]] = arith.constant dense<[1.000000e+00, 0.000000e+00]> : tensor<2xf32>
// CHECK: %[[R:.*]] = otf.prologue none %[[CODES]] grid %[[ONE]] : (tensor<4x64xf32>, tensor<2xf32>) -> tensor<4x128xi8>
// CHECK: %[[SUM:.*]] = otf.linear %[[R]], %{{[a-z0-9]*}} : (tensor<4x128xi8>, !otf.matrix<8x64, #otf.encoding<int8, group = 32>>) -> tensor<4x8xf32>
// CHECK: tensor.extract %[[SUM]]
// CHECK: tensor.extract %[[A]]
// CHECK: arith.mulf
// CHECK: tensor.extract %[[BIAS]]
// CHECK: arith.addf
// CHECK-NOT: otf.prologue
// CHECK: otf.linear %[[R]], %{{.*}}!otf.matrix<8x64, #otf.encoding<int4, group = 32>>
func.func @rows(%x: tensor<4x64xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %q = otf.use @q : !otf.matrix<8x64, #otf.encoding<f32>>
  %k = otf.use @k : !otf.matrix<8x64, #otf.encoding<f32>>
  %0 = otf.linear %x, %q bias %b : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %k : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}
