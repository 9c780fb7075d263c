// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-schedule=wide-linear=4 | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-schedule=wide-linear=4 --otf-schedule=wide-linear=4 | FileCheck %s

plan.kernel @norm_0(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
// %0 lives until the second launch, so %1 needs another slot and %2 takes the first again.
// CHECK-LABEL: func.func @slots_are_reused
func.func @slots_are_reused() {
  %x = plan.input "x" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  %y = plan.output "y" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 0 : i64}
  %0 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 1 : i64}
  %1 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 0 : i64}
  %2 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  plan.launch @norm_0(%x) outs(%0) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @norm_0(%0) outs(%1) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @norm_0(%1) outs(%2) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @norm_0(%2) outs(%y) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  return
}

// -----

plan.kernel @norm_0(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
// A buffer lives as long as a view of it is read.
// CHECK-LABEL: func.func @views_prolong
func.func @views_prolong() {
  %x = plan.input "x" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  %y = plan.output "y" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 0 : i64}
  %0 = plan.alloc : !plan.buffer<tensor<?xf32, #otf.dims<"4*s">>>
  %v = plan.view %0 : !plan.buffer<tensor<?xf32, #otf.dims<"4*s">>> -> !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 1 : i64}
  %1 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  plan.launch @norm_0(%x) outs(%v) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @norm_0(%x) outs(%1) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @norm_0(%v) outs(%y) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  return
}

// -----

plan.kernel @generate_0(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %e = tensor.extract %x[%i, %c0] : tensor<?x4xf32, #otf.dims<"d0">>
    tensor.yield %e : f32
  } : tensor<?xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?xf32, #otf.dims<"d0">>
}
plan.kernel @generate_1(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"d0">>
    tensor.yield %e : f32
  } : tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
// Of two free slots the one of equal size is taken: %2 is as large as %1, in slot 1, although slot 0 is free too.
// CHECK-LABEL: func.func @equal_sizes_first
func.func @equal_sizes_first() {
  %x = plan.input "x" : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  %y = plan.output "y" : !plan.buffer<tensor<?xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 0 : i64} : <tensor<?xf32
  %0 = plan.alloc : !plan.buffer<tensor<?xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 1 : i64} : <tensor<?x4xf32
  %1 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  // A rank-one result is one work item.
  // CHECK: plan.launch @generate_0({{.*}} {extent = "1", grain = 1 : i64}
  plan.launch @generate_0(%x) outs(%0) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @generate_1({{.*}} {extent = "s", grain = 1 : i64}
  plan.launch @generate_1(%0) outs(%1) sizes ["s"] : (!plan.buffer<tensor<?xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  plan.launch @generate_0(%1) outs(%y) sizes ["s"] : (!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?xf32, #otf.dims<"s">>>)
  // CHECK: plan.alloc {slot = 1 : i64} : <tensor<?x4xf32
  %2 = plan.alloc : !plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>
  plan.launch @generate_1(%y) outs(%2) sizes ["s"] : (!plan.buffer<tensor<?xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x4xf32, #otf.dims<"s">>>)
  return
}

// -----

// Work items of operators that are not counted by rows of their result.
otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}
otf.weight @w : tensor<25x32xf32> = #otf.blob<file = 0, offset = 0, length = 3200, type = f32>
otf.weight @n : tensor<24x32xf32> = #otf.blob<file = 0, offset = 0, length = 3072, type = f32>
plan.kernel @linear_0(%x: tensor<?x32xf32, #otf.dims<"d0">>, %w: !otf.matrix<25x32, #otf.encoding<f32>>) -> tensor<?x25xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x32xf32, #otf.dims<"d0">>, !otf.matrix<25x32, #otf.encoding<f32>>) -> tensor<?x25xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x25xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x32xf32, #otf.dims<"d0">>, %w: !otf.matrix<24x32, #otf.encoding<f32>>) -> tensor<?x24xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x32xf32, #otf.dims<"d0">>, !otf.matrix<24x32, #otf.encoding<f32>>) -> tensor<?x24xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x24xf32, #otf.dims<"d0">>
}
plan.kernel @append_0(%past: !otf.state<2x16xf32>, %x: tensor<?x2x?x16xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x16xf32> {
  %y = otf.append %past, %x : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x16xf32>
  plan.return %y : !otf.state<2x16xf32>
}
plan.kernel @attention_0(%q: tensor<?x?x4x16xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<2x16xf32>) -> tensor<?x?x4x16xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k {scale = 0.25 : f32, positions_first}
      : (tensor<?x?x4x16xf32, #otf.dims<"d0", "d1">>, !otf.state<2x16xf32>, !otf.state<2x16xf32>) -> tensor<?x?x4x16xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x4x16xf32, #otf.dims<"d0", "d1">>
}
// CHECK-LABEL: func.func @extents
func.func @extents() {
  %x = plan.input "x" : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  %w = plan.weight @w : !plan.buffer<!otf.matrix<25x32, #otf.encoding<f32>>>
  %n = plan.weight @n : !plan.buffer<!otf.matrix<24x32, #otf.encoding<f32>>>
  %y = plan.output "y" : !plan.buffer<tensor<?x25xf32, #otf.dims<"s">>>
  %z = plan.output "z" : !plan.buffer<tensor<?x24xf32, #otf.dims<"s">>>
  // 25 rows are four tiles, which is wide here.
  // CHECK: plan.launch @linear_0({{.*}} {extent = "4", grain = 2 : i64}
  plan.launch @linear_0(%x, %w) outs(%y) sizes ["s"] : (!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<25x32, #otf.encoding<f32>>>) outs(!plan.buffer<tensor<?x25xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_1({{.*}} {extent = "3", grain = 1 : i64}
  plan.launch @linear_1(%x, %n) outs(%z) sizes ["s"] : (!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<24x32, #otf.encoding<f32>>>) outs(!plan.buffer<tensor<?x24xf32, #otf.dims<"s">>>)
  %k = plan.state @key : !plan.buffer<!otf.state<2x16xf32>>
  %u = plan.input "u" : !plan.buffer<tensor<?x2x?x16xf32, #otf.dims<"b", "s">>>
  %q = plan.input "q" : !plan.buffer<tensor<?x?x4x16xf32, #otf.dims<"b", "s">>>
  %o = plan.output "o" : !plan.buffer<tensor<?x?x4x16xf32, #otf.dims<"b", "s">>>
  // CHECK: plan.launch @append_0({{.*}} {extent = "2*b*s", grain = 1 : i64}
  plan.launch @append_0(%k, %u) outs() sizes ["b", "s", "past", "capacity", "b"] : (!plan.buffer<!otf.state<2x16xf32>>, !plan.buffer<tensor<?x2x?x16xf32, #otf.dims<"b", "s">>>)
  // Eight parts of one row's heads, which threads share.
  // CHECK: plan.launch @attention_0({{.*}} {extent = "28*b + 4*b*s", grain = 1 : i64}
  plan.launch @attention_0(%q, %k) outs(%o) sizes ["b", "s", "past", "capacity", "b"] : (!plan.buffer<tensor<?x?x4x16xf32, #otf.dims<"b", "s">>>, !plan.buffer<!otf.state<2x16xf32>>) outs(!plan.buffer<tensor<?x?x4x16xf32, #otf.dims<"b", "s">>>)
  return
}

// -----

plan.kernel @compute_0(%x: tensor<?xf32, #otf.dims<"d0">>) -> (tensor<?xf32, #otf.dims<"d0">>, tensor<?xi64, #otf.dims<"d0">>) {
  %y:2 = otf.compute "3*d1" : tensor<?xf32, #otf.dims<"d0">>, tensor<?xi64, #otf.dims<"d0">> {
  ^bb0(%i: index, %out: memref<?xf32>, %places: memref<?xi64>):
    %v = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"d0">>
    memref.store %v, %out[%i] : memref<?xf32>
  }
  plan.return %y#0, %y#1 : tensor<?xf32, #otf.dims<"d0">>, tensor<?xi64, #otf.dims<"d0">>
}
// A compute says itself how many work items it has. Scratch that nothing reads has a slot while it is written.
// CHECK-LABEL: func.func @compute_extent
func.func @compute_extent() {
  %x = plan.input "x" : !plan.buffer<tensor<?xf32, #otf.dims<"s">>>
  %y = plan.output "y" : !plan.buffer<tensor<?xf32, #otf.dims<"s">>>
  // CHECK: plan.alloc {slot = 0 : i64}
  %0 = plan.alloc : !plan.buffer<tensor<?xi64, #otf.dims<"s">>>
  // CHECK: plan.launch @compute_0({{.*}} {extent = "6*b", grain = 1 : i64}
  plan.launch @compute_0(%x) outs(%y, %0) sizes ["s", "2*b"] : (!plan.buffer<tensor<?xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?xf32, #otf.dims<"s">>>, !plan.buffer<tensor<?xi64, #otf.dims<"s">>>)
  return
}
