// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-outline | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-outline --otf-outline | FileCheck %s

// Two layers with other weights and other names of sizes share a kernel.
otf.weight @q0 : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
otf.weight @q1 : tensor<8x32xf32> = #otf.blob<file = 0, offset = 1024, length = 1024, type = f32>
// CHECK:      plan.kernel @linear_0(%[[X:.*]]: tensor<?x32xf32, #otf.dims<"d0">>, %[[W:.*]]: !otf.matrix<8x32, #otf.encoding<f32>>)
// CHECK-SAME:     -> tensor<?x8xf32, #otf.dims<"d0">> {
// CHECK-NEXT:   %[[Y:.*]] = otf.linear %[[X]], %[[W]] : {{.*}} -> tensor<?x8xf32, #otf.dims<"d0">>
// CHECK-NEXT:   plan.return %[[Y]] : tensor<?x8xf32, #otf.dims<"d0">>
// CHECK-NEXT: }
// CHECK-NOT:  plan.kernel
// CHECK-LABEL: func.func @equal_kernels_merge
func.func @equal_kernels_merge(%x: tensor<?x32xf32, #otf.dims<"s">>, %z: tensor<?x32xf32, #otf.dims<"b*s">>)
    -> (tensor<?x8xf32, #otf.dims<"s">>, tensor<?x8xf32, #otf.dims<"b*s">>) {
  %q = otf.use @q0 : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: plan.call @linear_0(%{{.*}}, %{{.*}}) sizes ["s"] :
  %0 = otf.linear %x, %q : (tensor<?x32xf32, #otf.dims<"s">>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"s">>
  %k = otf.use @q1 : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: plan.call @linear_0(%{{.*}}, %{{.*}}) sizes ["b*s"] :
  %1 = otf.linear %z, %k : (tensor<?x32xf32, #otf.dims<"b*s">>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<?x8xf32, #otf.dims<"b*s">>
  return %0, %1 : tensor<?x8xf32, #otf.dims<"s">>, tensor<?x8xf32, #otf.dims<"b*s">>
}

// -----

// What passes said of an operator stays behind, but for sums that are exact, which choose a kernel.
otf.weight @q0 : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
// CHECK:      plan.kernel @linear_0
// CHECK:        otf.linear %{{[a-z0-9]*}}, %{{[a-z0-9]*}} :
// CHECK:      plan.kernel @linear_1
// CHECK:        otf.linear %{{[a-z0-9]*}}, %{{[a-z0-9]*}} {otf.exact_sums} :
func.func @exact_sums(%x: tensor<4x64xi8>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %q = otf.use @q0 : !otf.matrix<8x32, #otf.encoding<grid8>>
  %0 = otf.linear %x, %q {said} : (tensor<4x64xi8>, !otf.matrix<8x32, #otf.encoding<grid8>>) -> tensor<4x8xf32>
  %1 = otf.linear %x, %q {otf.exact_sums} : (tensor<4x64xi8>, !otf.matrix<8x32, #otf.encoding<grid8>>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Sizes are numbered as they appear in arguments, the result, then the body; constants and sizes come along.
// CHECK:      plan.kernel @generate_0(%[[X:.*]]: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d1">> {
// CHECK-DAG:    %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:    %[[EXTENT:.*]] = otf.size "d1"
// CHECK:        tensor.generate %[[EXTENT]] {
// CHECK:          otf.size "d2"
// CHECK:          tensor.extract %[[X]]
// CHECK:          arith.addf %{{.*}}, %[[ONE]]
// CHECK:        } : tensor<?x4xf32, #otf.dims<"d1">>
// CHECK-LABEL: func.func @sizes_in_order
func.func @sizes_in_order(%x: tensor<?x4xf32, #otf.dims<"past + s">>) -> tensor<?x4xf32, #otf.dims<"s">> {
  // CHECK-NOT: arith.constant
  %one = arith.constant 1.0 : f32
  %s = otf.size "s"
  // CHECK: plan.call @generate_0(%{{.*}}) sizes ["past + s", "s", "past"] :
  %0 = tensor.generate %s {
  ^bb0(%i: index, %j: index):
    %past = otf.size "past"
    %k = arith.addi %i, %past : index
    %e = tensor.extract %x[%k, %j] : tensor<?x4xf32, #otf.dims<"past + s">>
    %r = arith.addf %e, %one : f32
    tensor.yield %r : f32
  } : tensor<?x4xf32, #otf.dims<"s">>
  return %0 : tensor<?x4xf32, #otf.dims<"s">>
}

// -----

// What an epilogue reads is an argument, once.
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
// CHECK:      plan.kernel @linear_0(%{{.*}}: tensor<4x32xf32>, %{{.*}}: !otf.matrix<8x32, #otf.encoding<f32>>, %[[R:.*]]: tensor<4x8xf32>)
// CHECK:        tensor.extract %[[R]][
// CHECK:        tensor.extract %[[R]][
// CHECK-LABEL: func.func @epilogue_reads
func.func @epilogue_reads(%x: tensor<4x32xf32>, %r: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  // CHECK: plan.call @linear_0(%{{.*}}, %{{.*}}, %{{.*}}) sizes [] :
  %0 = otf.linear %x, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32> epilogue {
  ^bb0(%sum: f32, %i: index, %j: index):
    %a = tensor.extract %r[%i, %j] : tensor<4x8xf32>
    %c0 = arith.constant 0 : index
    %b = tensor.extract %r[%c0, %j] : tensor<4x8xf32>
    %1 = arith.addf %sum, %a : f32
    %2 = arith.mulf %1, %b : f32
    otf.yield %2 : f32
  }
  return %0 : tensor<4x8xf32>
}

// -----

// Kernels with caches get past, capacity and the batch after their sizes.
otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}
// CHECK: plan.kernel @append_0(%{{.*}}: !otf.state<2x16xf32>, %{{.*}}: tensor<?x2x?x16xf32, #otf.dims<"d0", "d1">>) -> !otf.state<2x16xf32>
// CHECK: plan.kernel @attention_0(%{{.*}}: tensor<?x2x?x16xf32, #otf.dims<"d0", "d1">>, %{{.*}}: !otf.state<2x16xf32>) -> tensor<
// CHECK-LABEL: func.func @caches
func.func @caches(%x: tensor<?x2x?x16xf32, #otf.dims<"b", "s">>) -> tensor<?x2x?x16xf32, #otf.dims<"b", "s">> {
  // CHECK: %[[PAST:.*]] = otf.state @key
  %past = otf.state @key : !otf.state<2x16xf32>
  // CHECK: %[[K:.*]] = plan.call @append_0(%[[PAST]], %{{.*}}) sizes ["b", "s", "past", "capacity", "b"] :
  %k = otf.append %past, %x : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"b", "s">>) -> !otf.state<2x16xf32>
  // CHECK: plan.call @attention_0(%{{.*}}, %[[K]]) sizes ["b", "s", "past", "capacity", "b"] :
  %0 = otf.attention %x, %k, %k {scale = 0.25 : f32}
      : (tensor<?x2x?x16xf32, #otf.dims<"b", "s">>, !otf.state<2x16xf32>, !otf.state<2x16xf32>)
      -> tensor<?x2x?x16xf32, #otf.dims<"b", "s">>
  return %0 : tensor<?x2x?x16xf32, #otf.dims<"b", "s">>
}

// -----

// An input that is a result, and a value that is two, need a kernel that writes them.
// CHECK-LABEL: func.func @results_are_written
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4xf32>
func.func @results_are_written(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<2xi64>) {
  // CHECK: %[[N:.*]] = plan.call @norm_0(%[[X]])
  %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[V:.*]] = otf.reshape %[[N]]
  %v = otf.reshape %n : tensor<4xf32> -> tensor<2x2xf32>
  %c = arith.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: %[[A:.*]] = plan.call @generate_0(%[[X]])
  // CHECK: %[[B:.*]] = plan.call @generate_1(%[[V]])
  // CHECK: %[[C:.*]] = plan.call @generate_2()
  // CHECK: return %[[A]], %[[N]], %[[B]], %[[C]] :
  return %x, %n, %v, %c : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<2xi64>
}

// -----

// What nothing reads has no kernel.
// CHECK-LABEL: module
// CHECK-NOT: plan.kernel @norm
// CHECK: func.func @dead
func.func @dead(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// The extent is a size like others, and each result is a value of its own.
// CHECK:      plan.kernel @compute_0(%[[X:.*]]: tensor<?xf32, #otf.dims<"d0">>) -> (tensor<?xf32, #otf.dims<"d0">>, tensor<?xi64, #otf.dims<"d0">>) {
// CHECK:        %[[Y:.*]]:2 = otf.compute "d1" : tensor<?xf32, #otf.dims<"d0">>, tensor<?xi64, #otf.dims<"d0">> {
// CHECK:        plan.return %[[Y]]#0, %[[Y]]#1 :
// CHECK-LABEL: func.func @compute_with_two_results
func.func @compute_with_two_results(%x: tensor<?xf32, #otf.dims<"s">>) -> (tensor<?xf32, #otf.dims<"s">>, tensor<?xi64, #otf.dims<"s">>) {
  // CHECK: %[[Y:.*]]:2 = plan.call @compute_0(%{{.*}}) sizes ["s", "2*b"] :
  %y:2 = otf.compute "2*b" : tensor<?xf32, #otf.dims<"s">>, tensor<?xi64, #otf.dims<"s">> {
  ^bb0(%i: index, %out: memref<?xf32>, %places: memref<?xi64>):
    %v = tensor.extract %x[%i] : tensor<?xf32, #otf.dims<"s">>
    memref.store %v, %out[%i] : memref<?xf32>
  }
  // CHECK: return %[[Y]]#0, %[[Y]]#1 :
  return %y#0, %y#1 : tensor<?xf32, #otf.dims<"s">>, tensor<?xi64, #otf.dims<"s">>
}

// -----

// Behind a checked reshape the result's sizes become known after the body has run: a kernel copies to the result.
// CHECK-LABEL: func.func @checked_result
func.func @checked_result(%x: tensor<4xf32>) -> tensor<?x?xf32, #otf.dims<"m", "n">> {
  // CHECK: %[[Y:.*]] = plan.call @generate_0(%{{.*}})
  %y = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    %n = arith.negf %e : f32
    tensor.yield %n : f32
  } : tensor<4xf32>
  %sizes = tensor.generate {
  ^bb0(%i: index):
    %two = arith.constant 2 : i64
    tensor.yield %two : i64
  } : tensor<2xi64>
  // CHECK: otf.bind
  otf.bind %sizes ["m", "n"] : tensor<2xi64>
  // CHECK: %[[R:.*]] = otf.reshape %[[Y]] {checked}
  %r = otf.reshape %y {checked} : tensor<4xf32> -> tensor<?x?xf32, #otf.dims<"m", "n">>
  // CHECK: %[[COPY:.*]] = plan.call @generate_2(%[[R]])
  // CHECK: return %[[COPY]]
  return %r : tensor<?x?xf32, #otf.dims<"m", "n">>
}

// -----

// An observation has no result, and its kernel returns nothing. Those of two layers are one kernel.
// CHECK: plan.kernel @observe_0(%{{.*}}: tensor<?x8xf32, #otf.dims<"d0">>, %{{.*}}: tensor<1xi64>, %{{.*}}: tensor<5x8xf64>, %{{.*}}: tensor<4096xi64>, %{{.*}}: tensor<36xf32>) {
// CHECK: plan.return
// CHECK-LABEL: func.func @observed
func.func @observed(%x: tensor<?x8xf32, #otf.dims<"s">> {otf.name = "x"}, %r: tensor<1xi64> {otf.name = "r"}, %m: tensor<5x8xf64> {otf.name = "m"},
                    %h: tensor<4096xi64> {otf.name = "h"}, %p: tensor<36xf32> {otf.name = "p"}) -> (tensor<?x8xf32, #otf.dims<"s">> {otf.name = "y"}) {
  // CHECK: plan.call @observe_0(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) sizes ["s"] : (
  // CHECK: plan.call @observe_0(
  otf.observe %x into %r, %m, %h, %p : tensor<?x8xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x8xf64>, tensor<4096xi64>, tensor<36xf32>
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x8xf32, #otf.dims<"s">>) -> tensor<?x8xf32, #otf.dims<"s">>
  otf.observe %y into %r, %m, %h, %p : tensor<?x8xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x8xf64>, tensor<4096xi64>, tensor<36xf32>
  return %y : tensor<?x8xf32, #otf.dims<"s">>
}
