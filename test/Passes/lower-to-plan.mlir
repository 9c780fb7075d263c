// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-lower-to-plan | FileCheck %s
// RUN: otf-opt %s --otf-lower-to-plan --otf-lower-to-plan | FileCheck %s

// CHECK: plan.kernel @norm_0
plan.kernel @norm_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  plan.return %y : tensor<4xf32>
}
// A kernel without a launch goes.
// CHECK-NOT: plan.kernel @norm_1
plan.kernel @norm_1(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<5xf32>) -> tensor<5xf32>
  plan.return %y : tensor<5xf32>
}
// CHECK-LABEL: func.func @main
func.func @main() {
  // An input that nothing reads is still the caller's to give.
  // CHECK: plan.input "unused"
  %u = plan.input "unused" : !plan.buffer<tensor<4xf32>>
  %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
  // CHECK-NOT: plan.view
  %v = plan.view %x : !plan.buffer<tensor<4xf32>> -> !plan.buffer<tensor<2x2xf32>>
  %y = plan.output "y" : !plan.buffer<tensor<4xf32>>
  plan.launch @norm_0(%x) outs(%y) sizes [] {extent = "1", grain = 1 : i64} : (!plan.buffer<tensor<4xf32>>) outs(!plan.buffer<tensor<4xf32>>)
  return
}
