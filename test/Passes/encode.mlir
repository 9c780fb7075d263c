// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-encode | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-encode --otf-encode | FileCheck %s

otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}
otf.weight @k : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
// Readers of one input share the prologue, whatever their codes.
// CHECK-LABEL: func.func @shares(
// CHECK-SAME: %[[X:.*]]: tensor
func.func @shares(%x: tensor<?x32xf32, #otf.dims<"s">>) -> (tensor<?x8xf32, #otf.dims<"s">>, tensor<?x8xf32, #otf.dims<"s">>) {
  // CHECK: %[[Q:.*]] = otf.use @q : !otf.matrix<8x32, #otf.encoding<int4, group = 32>>
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: %[[K:.*]] = otf.use @k : !otf.matrix<8x32, #otf.encoding<int8, group = 32>>
  %k = otf.use @k : !otf.matrix<8x32, #otf.encoding<f32>>
  // 32 codes, a scale, a sum: 40 bytes, padded to 64.
  // CHECK: %[[R:.*]] = otf.prologue none %[[X]] : (tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x64xi8, #otf.dims<"s">>
  // CHECK: otf.linear %[[R]], %[[Q]]
  // CHECK-NOT: otf.prologue
  // CHECK: otf.linear %[[R]], %[[K]]
  %0 = otf.linear %x, %q : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  %1 = otf.linear %x, %k : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  return %0, %1 : tensor<?x8xf32, #otf.dims<"s">>, tensor<?x8xf32, #otf.dims<"s">>
}

// -----

otf.weight @q : tensor<8x33xf32> = #otf.blob<file = 0, offset = 0, length = 1056, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[5]>}
otf.weight @k : tensor<8x33xf32> = #otf.blob<file = 0, offset = 0, length = 1056, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}
// A weight with outliers orders its input in its own way.
// CHECK-LABEL: func.func @outliers_have_their_own
func.func @outliers_have_their_own(%x: tensor<4x33xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[Q:.*]] = otf.use @q : !otf.matrix<8x33, #otf.encoding<int4, group = 32>, outliers = 1>
  %q = otf.use @q : !otf.matrix<8x33, #otf.encoding<f32>>
  %k = otf.use @k : !otf.matrix<8x33, #otf.encoding<f32>>
  // CHECK: %[[A:.*]] = otf.prologue none %{{.*}} columns %[[Q]] : {{.*}} -> tensor<4x64xi8>
  // CHECK: otf.linear %[[A]], %[[Q]]
  // 33 columns are two groups: 64 codes and 16 bytes, padded to 128.
  // CHECK: %[[B:.*]] = otf.prologue none %{{[a-z0-9]*}} : (tensor<4x33xf32>) -> tensor<4x128xi8>
  // CHECK: otf.linear %[[B]]
  %0 = otf.linear %x, %q : (tensor<4x33xf32>, !otf.matrix<8x33, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %k : (tensor<4x33xf32>, !otf.matrix<8x33, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<f16>}
otf.weight @undecided : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
// Plain weights read floats.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: otf.prologue
func.func @plain(%x: tensor<4x32xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: otf.use @q : !otf.matrix<8x32, #otf.encoding<f16>>
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: otf.use @undecided : !otf.matrix<8x32, #otf.encoding<f32>>
  %u = otf.use @undecided : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: otf.linear %{{.*}} : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f16>>)
  %0 = otf.linear %x, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %u : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

otf.weight @t : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
    {encoding = #otf.encoding<int8, group = 0>}
// An embedding decodes rows and needs no record.
// CHECK-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<4xi64>) -> tensor<4x32xf32> {
  %t = otf.use @t : !otf.matrix<100x32, #otf.encoding<f32>>
  // CHECK: otf.embedding %{{.*}} : (tensor<4xi64>, !otf.matrix<100x32, #otf.encoding<int8>>) -> tensor<4x32xf32>
  %0 = otf.embedding %ids, %t : (tensor<4xi64>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

otf.weight @q : tensor<2x32xf32> = #otf.blob<file = 0, offset = 0, length = 64, type = i8>
    {encoding = #otf.encoding<grid8>, keeps_given, float_activations, otf.row_sums = dense<[3.0, -4.0]> : tensor<2xf32>,
     otf.row_scales = dense<[2.0, 1.0]> : tensor<2xf32>,
     given = #otf.given<bits = 8, isSigned = true, pitch = 32, block = 32, scales = array<f32: 2.0, 1.0>, scaleRow = 1>}
// Codes that the file gives on both sides are multiplied as they are. What the zero point adds, -8 · sums, comes off, and then come
// scales, 0.5 and the row's, and the bias.
// CHECK-LABEL: func.func @on_grid
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor
func.func @on_grid(%x: tensor<?x32xf32, #otf.dims<"s">>, %b: tensor<2xf32>)
    -> (tensor<?x2xf32, #otf.dims<"s">>, tensor<?x2xf32, #otf.dims<"s">>) {
  %q = otf.use @q : !otf.matrix<2x32, #otf.encoding<f32>>
  // CHECK-DAG: %[[GRID:.*]] = arith.constant dense<[5.000000e-01, -8.000000e+00]>
  %grid = arith.constant dense<[0.5, -8.0]> : tensor<2xf32>
  %y = otf.on_grid %x, %grid : (tensor<?x32xf32, #otf.dims<"s">>, tensor<2xf32>) -> tensor<?x32xf32, #otf.dims<"s">>
  // CHECK: %[[R:.*]] = otf.prologue none %[[X]] grid %[[GRID]]
  // CHECK: %[[SHIFT:.*]] = arith.constant dense<[-2.400000e+01, 3.200000e+01]>
  // CHECK: %[[SCALE:.*]] = arith.constant dense<[1.000000e+00, 5.000000e-01]>
  // CHECK: otf.linear %[[R]], %{{[a-z0-9]*}} :
  // CHECK: tensor.extract %[[SHIFT]]
  // CHECK: arith.subf
  // CHECK: tensor.extract %[[SCALE]]
  // CHECK: arith.mulf
  // CHECK-NOT: otf.prologue
  // CHECK: otf.linear %[[R]], %{{[a-z0-9]*}} :
  // CHECK: arith.addf
  %0 = otf.linear %y, %q : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<2x32, #otf.encoding<f32>>) -> tensor<?x2xf32, #otf.dims<"s">>
  %1 = otf.linear %y, %q bias %b : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<2x32, #otf.encoding<f32>>, tensor<2xf32>)
      -> tensor<?x2xf32, #otf.dims<"s">>
  return %0, %1 : tensor<?x2xf32, #otf.dims<"s">>, tensor<?x2xf32, #otf.dims<"s">>
}

// -----

otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
// A weight that is coded anew reads what the grid gives, as floats.
// CHECK-LABEL: func.func @anew
func.func @anew(%x: tensor<4x32xf32>, %grid: tensor<2xf32>) -> tensor<4x8xf32> {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: %[[Y:.*]] = tensor.generate
  // CHECK: math.roundeven
  // CHECK: otf.prologue none %[[Y]] :
  %y = otf.on_grid %x, %grid : (tensor<4x32xf32>, tensor<2xf32>) -> tensor<4x32xf32>
  %0 = otf.linear %y, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

otf.weight @q : tensor<2x32xf32> = #otf.blob<file = 0, offset = 0, length = 256, type = f32>
    {encoding = #otf.encoding<grid8>, otf.exact_sums, otf.row_sums = dense<[3.0, -4.0]> : tensor<2xf32>, otf.row_scales = dense<[2.0, 1.0]> : tensor<2xf32>}
// A grid that was decided for a linear is as one that the file gives; what reads one tensor on one grid shares a record.
// Sums that are exact in any order may be of integers, which the linear says to the code generators.
// CHECK-LABEL: func.func @decided
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor
func.func @decided(%x: tensor<4x32xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %q = otf.use @q : !otf.matrix<2x32, #otf.encoding<f32>>
  // CHECK: %[[GRID:.*]] = arith.constant dense<[5.000000e-01, -8.000000e+00]>
  // CHECK: %[[R:.*]] = otf.prologue none %[[X]] grid %[[GRID]]
  // CHECK: otf.linear %[[R]], %{{[a-z0-9]*}} {otf.exact_sums} :
  // CHECK-NOT: otf.prologue
  // CHECK: otf.linear %[[R]], %{{[a-z0-9]*}} {otf.exact_sums} :
  %0 = otf.linear %x, %q {otf.grid = array<f32: 0.5, -8.0>} : (tensor<4x32xf32>, !otf.matrix<2x32, #otf.encoding<f32>>) -> tensor<4x2xf32>
  %1 = otf.linear %x, %q {otf.grid = array<f32: 0.5, -8.0>} : (tensor<4x32xf32>, !otf.matrix<2x32, #otf.encoding<f32>>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}

otf.weight @in_place : tensor<8x288xf32> = #otf.blob<file = 0, offset = 0, length = 9216, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
otf.weight @copied : tensor<8x72xf32> = #otf.blob<file = 0, offset = 0, length = 2304, type = f32>
    {encoding = #otf.encoding<int8, group = 32>}
// A window reads records of positions where a group of 32 lies in one tap. Elsewhere all windows are written, and a record is one of a window.
// CHECK-LABEL: func.func @windows(
// CHECK-SAME: %[[X:.*]]: tensor
func.func @windows(%x: tensor<1x6x6x32xf32>) -> tensor<1x3x6x8xf32> {
  %a = otf.use @in_place : !otf.matrix<8x288, #otf.encoding<f32>>
  %b = otf.use @copied : !otf.matrix<8x72, #otf.encoding<f32>>
  // CHECK: %[[R:.*]] = otf.prologue none %[[X]] : (tensor<1x6x6x32xf32>) -> tensor<1x6x6x64xi8>
  // CHECK: %[[Y:.*]] = otf.linear %[[R]], %{{.*}} {window = #otf.window<[3, 3] stride[1, 1] dilation[1, 1] before[1, 1]>}
  %0 = otf.linear %x, %a {window = #otf.window<[3, 3] stride [1, 1] dilation [1, 1] before [1, 1]>}
    : (tensor<1x6x6x32xf32>, !otf.matrix<8x288, #otf.encoding<f32>>) -> tensor<1x6x6x8xf32>
  // CHECK: %[[W:.*]] = tensor.generate
  // CHECK: scf.if
  // CHECK: tensor.extract %[[Y]]
  // CHECK: } : tensor<1x3x6x3x3x8xf32>
  // CHECK: %[[F:.*]] = otf.reshape %[[W]] : tensor<1x3x6x3x3x8xf32> -> tensor<1x3x6x72xf32>
  // CHECK: %[[S:.*]] = otf.prologue none %[[F]]
  // CHECK: otf.linear %[[S]], %{{.*}} : (tensor<1x3x6x128xi8>
  %1 = otf.linear %0, %b {window = #otf.window<[3, 3] stride [2, 1] dilation [1, 1] before [1, 1]>}
    : (tensor<1x6x6x8xf32>, !otf.matrix<8x72, #otf.encoding<f32>>) -> tensor<1x3x6x8xf32>
  return %1 : tensor<1x3x6x8xf32>
}
