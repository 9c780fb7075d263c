// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s | otf-opt | FileCheck %s

// Every operator and type of the dialect, printed as it was written.

otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}

// CHECK-LABEL: plan.kernel @norm_0(%{{.*}}: tensor<?x32xf32, #otf.dims<"d0">>) -> tensor<?x32xf32, #otf.dims<"d0">> {
plan.kernel @norm_0(%x: tensor<?x32xf32, #otf.dims<"d0">>) -> tensor<?x32xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x32xf32, #otf.dims<"d0">>) -> tensor<?x32xf32, #otf.dims<"d0">>
  // CHECK: plan.return %{{.*}} : tensor<?x32xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x32xf32, #otf.dims<"d0">>
}
plan.kernel @append_0(%past: !otf.state<2x16xf32>, %new: tensor<1x2x?x16xf32, #otf.dims<"d0">>) -> !otf.state<2x16xf32> {
  %y = otf.append %past, %new : (!otf.state<2x16xf32>, tensor<1x2x?x16xf32, #otf.dims<"d0">>) -> !otf.state<2x16xf32>
  plan.return %y : !otf.state<2x16xf32>
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x32xf32, #otf.dims<"s">> {
  // CHECK: plan.call @norm_0(%{{.*}}) sizes ["s"] : (tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x32xf32, #otf.dims<"s">>
  %y = plan.call @norm_0(%x) sizes ["s"] : (tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x32xf32, #otf.dims<"s">>
  return %y : tensor<?x32xf32, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @launches
func.func @launches() {
  // CHECK: plan.input "x" : <tensor<?x32xf32, #otf.dims<"s">>>
  %x = plan.input "x" : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  // CHECK: plan.output "y" : <tensor<?x32xf32, #otf.dims<"s">>>
  %y = plan.output "y" : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  // CHECK: plan.weight @q : <!otf.matrix<8x32, #otf.encoding<f32>>>
  %w = plan.weight @q : !plan.buffer<!otf.matrix<8x32, #otf.encoding<f32>>>
  // CHECK: plan.state @key : <!otf.state<2x16xf32>>
  %k = plan.state @key : !plan.buffer<!otf.state<2x16xf32>>
  // CHECK: plan.alloc {slot = 2 : i64} : <tensor<?x32xf32, #otf.dims<"s">>>
  %0 = plan.alloc {slot = 2 : i64} : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  // CHECK: plan.view %{{.*}} : <tensor<?x32xf32, #otf.dims<"s">>> -> <tensor<1x2x?x16xf32, #otf.dims<"s">>>
  %1 = plan.view %0 : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>> -> !plan.buffer<tensor<1x2x?x16xf32, #otf.dims<"s">>>
  // CHECK: plan.launch @norm_0(%{{.*}}) outs(%{{.*}}) sizes ["s"] {extent = "s", grain = 1 : i64} : (
  plan.launch @norm_0(%x) outs(%0) sizes ["s"] {extent = "s", grain = 1 : i64}
      : (!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>)
  // An append writes the cache it reads, so it has no output.
  // CHECK: plan.launch @append_0(%{{.*}}, %{{.*}}) outs() sizes ["s", "past", "capacity", "1"] : (
  plan.launch @append_0(%k, %1) outs() sizes ["s", "past", "capacity", "1"]
      : (!plan.buffer<!otf.state<2x16xf32>>, !plan.buffer<tensor<1x2x?x16xf32, #otf.dims<"s">>>)
  return
}
