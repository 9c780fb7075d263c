// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-bits="linear=int4 vocabulary=int8 coded-head split-head" --mlir-print-local-scope | FileCheck %s

// A table that is a head too becomes two weights of the same bytes, of which the head is coded as linears are.
// CHECK: otf.weight @table : tensor<16x64xf32> = {{.*}}offset = 64, length = 4096, type = f32> {encoding = #otf.encoding<int8, group = 32>, vocabulary}
// CHECK: otf.weight @table.head : tensor<16x64xf32> = {{.*}}offset = 64, length = 4096, type = f32> {encoding = #otf.encoding<int4, group = 32>, otf.as_linear, otf.copy_of = "table", vocabulary}
otf.weight @table : tensor<16x64xf32> = #otf.blob<file = 0, offset = 64, length = 4096, type = f32>
func.func @main(%ids: tensor<4xi64>) -> tensor<4x16xf32> {
  // CHECK: %[[TABLE:.*]] = otf.use @table :
  %t = otf.use @table : !otf.matrix<16x64, #otf.encoding<f32>>
  // CHECK: otf.embedding %{{.*}}, %[[TABLE]]
  %x = otf.embedding %ids, %t : (tensor<4xi64>, !otf.matrix<16x64, #otf.encoding<f32>>) -> tensor<4x64xf32>
  // CHECK: %[[HEAD:.*]] = otf.use @table.head :
  // CHECK: otf.linear %{{.*}}, %[[HEAD]]
  %y = otf.linear %x, %t : (tensor<4x64xf32>, !otf.matrix<16x64, #otf.encoding<f32>>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
