// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s | otf-opt | FileCheck %s

// Every operator, attribute and type of the dialect, printed as it was written.

// CHECK: otf.weight @q : tensor<8x32xf32> = <file = 0, offset = 64, length = 1024, type = f32, transposed>
// CHECK-SAME: {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[3, 17]>, scale = @gain}
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 64, length = 1024, type = f32, transposed>
    {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[3, 17]>, scale = @gain}
// CHECK: otf.weight @gain : tensor<32xf32> = <file = 1, offset = 0, length = 64, type = f16>
otf.weight @gain : tensor<32xf32> = #otf.blob<file = 1, offset = 0, length = 64, type = f16>
// CHECK: otf.weight @table : tensor<100x32xf32> = <{{.*}}type = bf16> {encoding = #otf.encoding<f16>, vocabulary}
otf.weight @table : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 6400, type = bf16>
    {encoding = #otf.encoding<f16>, vocabulary}
// CHECK: otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}
otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}

// CHECK-LABEL: func.func @values
func.func @values() -> (index, index) {
  // CHECK: otf.use @gain : tensor<32xf32>
  %0 = otf.use @gain : tensor<32xf32>
  // CHECK: otf.use @q : !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>
  %1 = otf.use @q : !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>
  // CHECK: otf.state @key : <2x16xf32>
  %2 = otf.state @key : !otf.state<2x16xf32>
  // CHECK: otf.size "past + s"
  %3 = otf.size "past + s"
  // CHECK: otf.size "2*b*s - 1"
  %4 = otf.size "2*b*s - 1"
  return %3, %4 : index, index
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<?x?x32xf32, #otf.dims<"b", "s">>) -> tensor<?x32xf32, #otf.dims<"b*s">> {
  // CHECK: otf.reshape %{{.*}} : tensor<?x?x32xf32, #otf.dims<"b", "s">> -> tensor<?x32xf32, #otf.dims<"b*s">>
  %0 = otf.reshape %x : tensor<?x?x32xf32, #otf.dims<"b", "s">> -> tensor<?x32xf32, #otf.dims<"b*s">>
  return %0 : tensor<?x32xf32, #otf.dims<"b*s">>
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<?x32xf32, #otf.dims<"s">>, %w: !otf.matrix<8x32, #otf.encoding<f32>>, %b: tensor<8xf32>)
    -> tensor<?x8xi1, #otf.dims<"s">> {
  // CHECK: otf.linear %{{.*}}, %{{.*}} bias %{{.*}} : (
  // CHECK-SAME: -> tensor<?x8xi1, #otf.dims<"s">> epilogue {
  // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32, %{{.*}}: index, %{{.*}}: index):
  // CHECK:      otf.yield %{{.*}} : i1
  %0 = otf.linear %x, %w bias %b
      : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<8x32, #otf.encoding<f32>>, tensor<8xf32>)
      -> tensor<?x8xi1, #otf.dims<"s">> epilogue {
  ^bb0(%sum: f32, %i: index, %j: index):
    %zero = arith.constant 0.0 : f32
    %1 = arith.cmpf ogt, %sum, %zero : f32
    otf.yield %1 : i1
  }
  return %0 : tensor<?x8xi1, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @convolution
func.func @convolution(%x: tensor<1x?x4x8xf32, #otf.dims<"s">>, %w: !otf.matrix<16x48, #otf.encoding<f32>>)
    -> tensor<1x?x2x16xf32, #otf.dims<"s">> {
  // CHECK: otf.linear %{{.*}}, %{{.*}} {window = #otf.window<[3, 2] stride[1, 2] dilation[1, 1] before[1, 0]>} : (
  %0 = otf.linear %x, %w {window = #otf.window<[3, 2] stride [1, 2] dilation [1, 1] before [1, 0]>}
      : (tensor<1x?x4x8xf32, #otf.dims<"s">>, !otf.matrix<16x48, #otf.encoding<f32>>) -> tensor<1x?x2x16xf32, #otf.dims<"s">>
  return %0 : tensor<1x?x2x16xf32, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<?xi64, #otf.dims<"s">>, %t: !otf.matrix<100x32, #otf.encoding<f16>>)
    -> tensor<?x32xf32, #otf.dims<"s">> {
  // CHECK: otf.embedding %{{.*}}, %{{.*}} : (tensor<?xi64, #otf.dims<"s">>, !otf.matrix<100x32, #otf.encoding<f16>>)
  %0 = otf.embedding %ids, %t : (tensor<?xi64, #otf.dims<"s">>, !otf.matrix<100x32, #otf.encoding<f16>>)
      -> tensor<?x32xf32, #otf.dims<"s">>
  return %0 : tensor<?x32xf32, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @grids
func.func @grids(%x: tensor<4x32xf32>, %g: tensor<2xf32>) -> (tensor<4x32xf32>, tensor<4x64xi8>) {
  // CHECK: otf.on_grid %{{.*}}, %{{.*}} : (tensor<4x32xf32>, tensor<2xf32>) -> tensor<4x32xf32>
  %0 = otf.on_grid %x, %g : (tensor<4x32xf32>, tensor<2xf32>) -> tensor<4x32xf32>
  // CHECK: otf.prologue none %{{.*}} grid %{{.*}} : (
  %1 = otf.prologue none %x grid %g : (tensor<4x32xf32>, tensor<2xf32>) -> tensor<4x64xi8>
  return %0, %1 : tensor<4x32xf32>, tensor<4x64xi8>
}

// CHECK-LABEL: func.func @rotations
func.func @rotations(%x: tensor<?x576xf32, #otf.dims<"s">>) -> tensor<?x768xi8, #otf.dims<"s">> {
  // CHECK: otf.rotate %{{.*}} by <block = 64, factor = 9, seed = 18446744073709551615> : tensor<?x576xf32, #otf.dims<"s">>
  %0 = otf.rotate %x by <block = 64, factor = 9, seed = 18446744073709551615> : tensor<?x576xf32, #otf.dims<"s">>
  // CHECK: otf.prologue none %{{.*}} by <block = 2> : (
  %1 = otf.prologue none %0 by <block = 2> : (tensor<?x576xf32, #otf.dims<"s">>) -> tensor<?x768xi8, #otf.dims<"s">>
  return %1 : tensor<?x768xi8, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @norm_and_prologue
func.func @norm_and_prologue(%x: tensor<4x32xf32>, %g: tensor<32xf32>,
                             %w: !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>) -> tensor<4x64xi8> {
  // CHECK: otf.norm layer %{{.*}} scale %{{.*}} bias %{{.*}} {epsilon = 9.99999974E-6 : f32} : (
  %0 = otf.norm layer %x scale %g bias %g {epsilon = 1.0e-5 : f32}
      : (tensor<4x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  // CHECK: otf.prologue rms %{{.*}} columns %{{.*}} {epsilon = 9.99999974E-6 : f32} : (
  %1 = otf.prologue rms %0 columns %w {epsilon = 1.0e-5 : f32}
      : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<int4, group = 32>, outliers = 2>) -> tensor<4x64xi8>
  return %1 : tensor<4x64xi8>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x?x4x16xf32, #otf.dims<"b", "s">>, %new: tensor<?x2x?x16xf32, #otf.dims<"b", "s">>,
                     %t: tensor<1x?x8xf32, #otf.dims<"s">>, %m: tensor<?x1x?x?xi1, #otf.dims<"b", "s", "past + s">>)
    -> tensor<?x?x4x16xf32, #otf.dims<"b", "s">> {
  %past = otf.state @key : !otf.state<2x16xf32>
  // CHECK: otf.rope %{{.*}}, %{{.*}}, %{{.*}} {positions_first} : (
  %0 = otf.rope %q, %t, %t {positions_first}
      : (tensor<?x?x4x16xf32, #otf.dims<"b", "s">>, tensor<1x?x8xf32, #otf.dims<"s">>, tensor<1x?x8xf32, #otf.dims<"s">>)
      -> tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
  // CHECK: otf.append %{{.*}}, %{{.*}} : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"b", "s">>) -> !otf.state<2x16xf32>
  %1 = otf.append %past, %new : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"b", "s">>) -> !otf.state<2x16xf32>
  // CHECK: otf.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} {positions_first, scale = 2.500000e-01 : f32, softcap = 3.000000e+01 : f32} : (
  %2 = otf.attention %0, %1, %1 mask %m {scale = 0.25 : f32, softcap = 30.0 : f32, positions_first}
      : (tensor<?x?x4x16xf32, #otf.dims<"b", "s">>, !otf.state<2x16xf32>, !otf.state<2x16xf32>,
         tensor<?x1x?x?xi1, #otf.dims<"b", "s", "past + s">>) -> tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
  return %2 : tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
}

// CHECK-LABEL: func.func @observe
func.func @observe(%x: tensor<?x64xf32, #otf.dims<"s">>, %rows: tensor<1xi64>, %moments: tensor<5x64xf64>, %histogram: tensor<4096xi64>,
                   %products: tensor<2080xf32>, %none: tensor<0xf32>) {
  // CHECK: otf.observe %{{.*}} into %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x64xf64>, tensor<4096xi64>, tensor<2080xf32>
  otf.observe %x into %rows, %moments, %histogram, %products : tensor<?x64xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x64xf64>, tensor<4096xi64>, tensor<2080xf32>
  // CHECK: otf.observe {{.*}} tensor<0xf32>
  otf.observe %x into %rows, %moments, %histogram, %none : tensor<?x64xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x64xf64>, tensor<4096xi64>, tensor<0xf32>
  return
}

// CHECK-LABEL: func.func @places_and_sinks
func.func @places_and_sinks(%q: tensor<?x4x?x16xf32, #otf.dims<"b", "s">>, %past: !otf.state<2x16xf32>,
                            %new: tensor<?x2x?x16xf32, #otf.dims<"b", "s">>, %at: tensor<?xi64, #otf.dims<"b">>, %sink: tensor<4xf32>)
    -> tensor<?x4x?x16xf32, #otf.dims<"b", "s">> {
  // CHECK: otf.append %{{.*}}, %{{.*}} at %{{.*}} : (
  %0 = otf.append %past, %new at %at
      : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"b", "s">>, tensor<?xi64, #otf.dims<"b">>) -> !otf.state<2x16xf32>
  // CHECK: otf.attention %{{.*}}, %{{.*}}, %{{.*}} sink %{{.*}} {scale = 2.500000e-01 : f32} : (
  %1 = otf.attention %q, %0, %0 sink %sink {scale = 0.25 : f32}
      : (tensor<?x4x?x16xf32, #otf.dims<"b", "s">>, !otf.state<2x16xf32>, !otf.state<2x16xf32>, tensor<4xf32>)
      -> tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
  return %1 : tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
}

// CHECK-LABEL: func.func @gated_activation
func.func @gated_activation(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: otf.gated_activation gelu_tanh %{{.*}}, %{{.*}} : tensor<4x8xf32>
  %0 = otf.gated_activation gelu_tanh %x, %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Several results, and scratch; the terminator stays unsaid.
// CHECK-LABEL: func.func @compute
func.func @compute(%x: tensor<?x8xf32, #otf.dims<"b">>) -> tensor<?x8xf32, #otf.dims<"b">> {
  // CHECK: otf.compute "b" : tensor<?x8xf32, #otf.dims<"b">>, tensor<?xi1, #otf.dims<"b">> {
  // CHECK-NEXT: ^bb0(%[[ROW:.*]]: index, %[[OUT:.*]]: memref<?x8xf32>, %{{.*}}: memref<?xi1>):
  %y:2 = otf.compute "b" : tensor<?x8xf32, #otf.dims<"b">>, tensor<?xi1, #otf.dims<"b">> {
  ^bb0(%row: index, %out: memref<?x8xf32>, %seen: memref<?xi1>):
    %c0 = arith.constant 0 : index
    %v = tensor.extract %x[%row, %c0] : tensor<?x8xf32, #otf.dims<"b">>
    // CHECK: memref.store %{{.*}}, %[[OUT]][%[[ROW]], %{{.*}}] : memref<?x8xf32>
    memref.store %v, %out[%row, %c0] : memref<?x8xf32>
    // CHECK: memref.load %[[OUT]]
    // CHECK-NEXT: }
    %w = memref.load %out[%row, %c0] : memref<?x8xf32>
  }
  return %y#0 : tensor<?x8xf32, #otf.dims<"b">>
}
