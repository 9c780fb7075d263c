// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: otf-opt %t/imported.mlir -split-input-file -verify-diagnostics --otf-verify-stage=imported
// RUN: otf-opt %t/annotated.mlir -split-input-file -verify-diagnostics --otf-verify-stage=annotated
// RUN: otf-opt %t/quantized.mlir -split-input-file -verify-diagnostics --otf-verify-stage=quantized
// RUN: otf-opt %t/fused.mlir -split-input-file -verify-diagnostics --otf-verify-stage=fused
// RUN: otf-opt %t/planned.mlir -split-input-file -verify-diagnostics --otf-verify-stage=planned
// RUN: %not otf-opt %t/fused.mlir --otf-verify-stage 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: otf-verify-stage: names no stage; write imported, annotated, quantized, fused or planned

//--- imported.mlir

// A module that keeps the contract gives no word.
func.func @valid(%x: tensor<?xf16, #otf.dims<"s">> {otf.name = "x"}) -> (tensor<?xf32, #otf.dims<"s">> {otf.name = "y"}) {
  %s = otf.size "s"
  %0 = tensor.generate %s {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<?xf16, #otf.dims<"s">>
    %f = arith.extf %e : f16 to f32
    tensor.yield %f : f32
  } : tensor<?xf32, #otf.dims<"s">>
  return %0 : tensor<?xf32, #otf.dims<"s">>
}

// -----

// expected-error@+1 {{argument #0 has no otf.name}}
func.func @argument_name(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error@+1 {{result #0 has no otf.name}}
func.func @result_name(%x: tensor<4xf32> {otf.name = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument #0 has a dynamic dimension without a name: tensor<?xf32>}}
func.func @nameless_size(%x: tensor<?xf32> {otf.name = "x"}) {
  return
}

// -----

func.func @storage_type(%x: tensor<4xf16> {otf.name = "x"}) -> (tensor<4xf32> {otf.name = "y"}) {
  // expected-error@+1 {{computes in a storage type: tensor<4xf16>}}
  %0 = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf16>
    tensor.yield %e : f16
  } : tensor<4xf16>
  %1 = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %0[%i] : tensor<4xf16>
    %f = arith.extf %e : f16 to f32
    tensor.yield %f : f32
  } : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @foreign_operator(%x: tensor<4xf32> {otf.name = "x"}) {
  %c = arith.constant 0 : index
  // expected-error@+1 {{is no operator of otf, tensor.generate or constant}}
  %0 = tensor.extract %x[%c] : tensor<4xf32>
  return
}

//--- annotated.mlir

// expected-error@+1 {{has no encoding (stage annotated; run otf-choose-bits)}}
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
// What nothing reads as a matrix needs none.
otf.weight @g : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
func.func @main(%x: tensor<4x32xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
  %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %g = otf.use @g : tensor<32xf32>
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- quantized.mlir

otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}
func.func @main(%x: tensor<4x32xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
  // expected-error@+1 {{does not follow its weight, which has #otf.encoding<int4, group = 32> and 0 outliers, got '!otf.matrix<8x32, #otf.encoding<f32>>'}}
  %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %v = otf.use @q : !otf.matrix<8x32, #otf.encoding<int4, group = 32>>
  // expected-error@+1 {{must read records, i8, for '!otf.matrix<8x32, #otf.encoding<int4, group = 32>>', got 'tensor<4x32xf32>'}}
  %0 = otf.linear %x, %v : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<int4, group = 32>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- fused.mlir

func.func @main(%x: tensor<4x8xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
  // expected-error@+1 {{is not fused (run otf-fuse-elementwise)}}
  %0 = otf.gated_activation silu %x, %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- planned.mlir

plan.kernel @norm_0(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
func.func @launches() {
  %x = plan.input "x" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // expected-error@+1 {{is a second input of the name "x"}}
  %x2 = plan.input "x" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  %z = plan.output "z" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // expected-error@+1 {{is a second output of the name "z"}}
  %z2 = plan.output "z" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // expected-error@+1 {{has the slot -1}}
  %y1 = plan.alloc {slot = -1 : i64} : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // expected-error@+1 {{has no slot (run otf-schedule)}}
  %y = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // expected-error@+1 {{has no extent or grain (run otf-schedule)}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+2 {{gives a size that is none: "s / 2"}}
  // expected-error@+1 {{has an extent that is no size: "s / 2"}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s / 2"] {extent = "s / 2", grain = 1 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{has a grain of -1, which must be from 1 to 4294967295}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s"] {extent = "s", grain = -1 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{has a grain of 4294967296, which must be from 1 to 4294967295}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s"] {extent = "s", grain = 4294967296 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{has a negative extent: -1}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s"] {extent = "-1", grain = 1 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{has a grain of 0, which must be from 1 to 4294967295}}
  plan.launch @norm_0(%x) outs(%y) sizes ["s"] {extent = "s", grain = 0 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{gives 0 sizes, and @norm_0 names 1}}
  plan.launch @norm_0(%x) outs(%y) sizes [] {extent = "s", grain = 1 : i64} : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  // expected-error@+1 {{is not of the plan dialect}}
  %s = otf.size "s"
  return
}
// expected-error@+1 {{still has arguments or results (run otf-bufferize)}}
func.func @values(%x: tensor<?x4xf32, #otf.dims<"s">>) {
  // expected-error@+1 {{has no buffers (run otf-bufferize)}}
  %y = plan.call @norm_0(%x) sizes ["s"] : (tensor<?x4xf32, #otf.dims<"s">>) -> tensor<?x4xf32, #otf.dims<"s">>
  return
}

// -----

// expected-error@+1 {{returns no operator's result}}
plan.kernel @copy_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  plan.return %x : tensor<4xf32>
}
