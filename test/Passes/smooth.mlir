// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-smooth --mlir-print-local-scope | FileCheck %s

otf.weight @q : tensor<2x3xf32> = #otf.blob<file = 0, offset = 0, length = 24, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, otf.unit = dense<[2.0, 1.0, 0.5]> : tensor<3xf32>}
otf.weight @k : tensor<2x3xf32> = #otf.blob<file = 0, offset = 24, length = 24, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, otf.unit = dense<[2.0, 1.0, 0.5]> : tensor<3xf32>}
// CHECK-DAG: otf.weight @q.gain : tensor<3xf32> = {{.*}} {otf.derived = {of = @g, otherwise = 1.000000e+00 : f32, part = "quotient", unit = dense<[2.000000e+00, 1.000000e+00, 5.000000e-01]> : tensor<3xf32>}}
// CHECK-DAG: otf.weight @q.unit : tensor<3xf32> = {{.*}} {otf.derived = {of = @q, part = "values"}, otf.values = dense<[2.000000e+00, 1.000000e+00, 5.000000e-01]> : tensor<3xf32>}
// CHECK-NOT: @k.unit
// Linears that share an input and units share what is made of it.
// CHECK-LABEL: func.func @shares(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: %[[U:.*]] = otf.use @q.unit : tensor<3xf32>
// CHECK: %[[R:.*]] = tensor.generate
// CHECK: %[[VALUE:.*]] = tensor.extract %[[X]][%{{.*}}, %[[K:.*]]] :
// CHECK: %[[UNIT:.*]] = tensor.extract %[[U]][%[[K]]]
// CHECK: arith.divf %[[VALUE]], %[[UNIT]]
// CHECK: otf.linear %[[R]],
// CHECK: otf.linear %[[R]],
func.func @shares(%x: tensor<4x3xf32>) {
  %q = otf.use @q : !otf.matrix<2x3, #otf.encoding<f32>>
  %k = otf.use @k : !otf.matrix<2x3, #otf.encoding<f32>>
  %0 = otf.linear %x, %q : (tensor<4x3xf32>, !otf.matrix<2x3, #otf.encoding<f32>>) -> tensor<4x2xf32>
  %1 = otf.linear %x, %k : (tensor<4x3xf32>, !otf.matrix<2x3, #otf.encoding<f32>>) -> tensor<4x2xf32>
  return
}

// Behind a norm they are its gain and bias, and the norm for others stays.
otf.weight @g : tensor<3xf32> = #otf.blob<file = 0, offset = 48, length = 12, type = f32>
// CHECK-LABEL: func.func @norm(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: %[[GAIN:.*]] = otf.use @q.gain : tensor<3xf32>
// CHECK: %[[N:.*]] = otf.norm rms %[[X]] scale %[[GAIN]] {epsilon
// CHECK: otf.linear %[[N]],
// CHECK-NOT: otf.norm
func.func @norm(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %g = otf.use @g : tensor<3xf32>
  %q = otf.use @q : !otf.matrix<2x3, #otf.encoding<f32>>
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %0 = otf.linear %n, %q : (tensor<4x3xf32>, !otf.matrix<2x3, #otf.encoding<f32>>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

otf.weight @c : tensor<2x3xf32> = #otf.blob<file = 0, offset = 0, length = 24, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, otf.unit = dense<1.0> : tensor<3xf32>, otf.center = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>,
     otf.center_products = dense<[7.0, 8.0]> : tensor<2xf32>}
// What the center takes off comes back after the product.
// CHECK-LABEL: func.func @center(
// CHECK: arith.subf
// CHECK: %[[PRODUCTS:.*]] = otf.use @c.center_products : tensor<2xf32>
// CHECK: %[[SUM:.*]] = otf.linear
// CHECK: tensor.extract %[[SUM]]
// CHECK: tensor.extract %[[PRODUCTS]]
// CHECK: arith.addf
func.func @center(%x: tensor<4x3xf32>) -> tensor<4x2xf32> {
  %c = otf.use @c : !otf.matrix<2x3, #otf.encoding<f32>>
  %0 = otf.linear %x, %c : (tensor<4x3xf32>, !otf.matrix<2x3, #otf.encoding<f32>>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
