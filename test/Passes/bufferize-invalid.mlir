// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file -verify-diagnostics --otf-bufferize

// expected-error@+1 {{argument #0 has no otf.name}}
func.func @argument_name(%x: tensor<4xf32>) {
  return
}

// -----

// expected-error@+1 {{no kernel writes result #0 alone; run otf-outline first}}
func.func @passed_through(%x: tensor<4xf32> {otf.name = "x"}) -> (tensor<4xf32> {otf.name = "y"}) {
  return %x : tensor<4xf32>
}

// -----

func.func @not_outlined(%x: tensor<4xf32> {otf.name = "x"}) {
  // expected-error@+1 {{is no call and has no memory; run otf-outline first}}
  %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error@+1 {{returns a state that is not the append to one of its arguments}}
plan.kernel @other_0(%k: !otf.state<2x16xf32>) -> !otf.state<2x16xf32> {
  plan.return %k : !otf.state<2x16xf32>
}
otf.cache @key : !otf.state<2x16xf32> {input = "a", output = "b"}
func.func @state_from_nowhere() {
  %0 = otf.state @key : !otf.state<2x16xf32>
  %1 = plan.call @other_0(%0) sizes [] : (!otf.state<2x16xf32>) -> !otf.state<2x16xf32>
  return
}
