// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-bufferize | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-bufferize --otf-bufferize | FileCheck %s

plan.kernel @norm_0(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
// A result is written into its output, through a view where the shapes differ.
// CHECK-LABEL: func.func @main() {
func.func @main(%x: tensor<?x4xf32, #otf.dims<"s">> {otf.name = "x"}) -> (tensor<?xf32, #otf.dims<"4*s">> {otf.name = "y"}) {
  // CHECK-NEXT: %[[X:.*]] = plan.input "x" : <tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK-NEXT: %[[Y:.*]] = plan.output "y" : <tensor<?xf32, #otf.dims<"4*s">>>
  // CHECK-NEXT: %[[V:.*]] = plan.view %[[Y]] : {{.*}} -> <tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK-NEXT: %[[A:.*]] = plan.alloc : <tensor<?x4xf32, #otf.dims<"s">>>
  // CHECK-NEXT: plan.launch @norm_0(%[[X]]) outs(%[[A]]) sizes ["s"] :
  %0 = plan.call @norm_0(%x) sizes ["s"] : (tensor<?x4xf32, #otf.dims<"s">>) -> tensor<?x4xf32, #otf.dims<"s">>
  // CHECK-NEXT: plan.launch @norm_0(%[[A]]) outs(%[[V]]) sizes ["s"] :
  %1 = plan.call @norm_0(%0) sizes ["s"] : (tensor<?x4xf32, #otf.dims<"s">>) -> tensor<?x4xf32, #otf.dims<"s">>
  // CHECK-NEXT: return
  %2 = otf.reshape %1 : tensor<?x4xf32, #otf.dims<"s">> -> tensor<?xf32, #otf.dims<"4*s">>
  return %2 : tensor<?xf32, #otf.dims<"4*s">>
}

// -----

// A cache and a weight are one buffer however often they are used, and an append writes the cache it reads.
otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}
otf.weight @g : tensor<16xf32> = #otf.blob<file = 0, offset = 0, length = 64, type = f32>
plan.kernel @append_0(%past: !otf.state<2x16xf32>, %x: tensor<1x2x1x16xf32>) -> !otf.state<2x16xf32> {
  %y = otf.append %past, %x : (!otf.state<2x16xf32>, tensor<1x2x1x16xf32>) -> !otf.state<2x16xf32>
  plan.return %y : !otf.state<2x16xf32>
}
plan.kernel @attention_0(%q: tensor<1x2x1x16xf32>, %k: !otf.state<2x16xf32>) -> tensor<1x2x1x16xf32> {
  %y = otf.attention %q, %k, %k {scale = 0.25 : f32}
      : (tensor<1x2x1x16xf32>, !otf.state<2x16xf32>, !otf.state<2x16xf32>) -> tensor<1x2x1x16xf32>
  plan.return %y : tensor<1x2x1x16xf32>
}
plan.kernel @norm_0(%x: tensor<1x2x1x16xf32>, %g: tensor<16xf32>) -> tensor<1x2x1x16xf32> {
  %y = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<1x2x1x16xf32>, tensor<16xf32>) -> tensor<1x2x1x16xf32>
  plan.return %y : tensor<1x2x1x16xf32>
}
// CHECK-LABEL: func.func @main() {
func.func @main(%x: tensor<1x2x1x16xf32> {otf.name = "x"}) -> (tensor<1x2x1x16xf32> {otf.name = "y"}) {
  // CHECK-DAG: %[[K:.*]] = plan.state @key
  // CHECK-DAG: %[[G:.*]] = plan.weight @g
  // CHECK-DAG: %[[Y:.*]] = plan.output "y"
  %past = otf.state @key : !otf.state<2x16xf32>
  %g0 = otf.use @g : tensor<16xf32>
  // CHECK: plan.launch @norm_0(%{{.*}}, %[[G]])
  %n = plan.call @norm_0(%x, %g0) sizes [] : (tensor<1x2x1x16xf32>, tensor<16xf32>) -> tensor<1x2x1x16xf32>
  // CHECK-NOT: plan.state
  // CHECK-NOT: plan.weight
  // CHECK: plan.launch @append_0(%[[K]], %{{.*}}) outs() sizes ["past", "capacity", "1"] :
  %k = plan.call @append_0(%past, %n) sizes ["past", "capacity", "1"] : (!otf.state<2x16xf32>, tensor<1x2x1x16xf32>) -> !otf.state<2x16xf32>
  // CHECK: plan.launch @attention_0(%{{.*}}, %[[K]]) outs(%{{.*}}) sizes ["past", "capacity", "1"] :
  %a = plan.call @attention_0(%n, %k) sizes ["past", "capacity", "1"] : (tensor<1x2x1x16xf32>, !otf.state<2x16xf32>) -> tensor<1x2x1x16xf32>
  %g1 = otf.use @g : tensor<16xf32>
  // CHECK: plan.launch @norm_0(%{{.*}}, %[[G]]) outs(%[[Y]])
  %r = plan.call @norm_0(%a, %g1) sizes [] : (tensor<1x2x1x16xf32>, tensor<16xf32>) -> tensor<1x2x1x16xf32>
  return %r : tensor<1x2x1x16xf32>
}
