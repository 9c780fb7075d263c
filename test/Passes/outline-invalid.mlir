// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file -verify-diagnostics --otf-outline

func.func @not_fused(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has no kernel; run otf-fuse-elementwise first}}
  %0 = otf.gated_activation silu %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scalar_of_a_tensor(%x: tensor<4xf32>, %i: tensor<1xindex>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %k = tensor.extract %i[%c0] : tensor<1xindex>
  // expected-error@+1 {{reads a 'index' that is neither a constant nor made of sizes}}
  %0 = tensor.generate {
  ^bb0(%j: index):
    %e = tensor.extract %x[%k] : tensor<4xf32>
    tensor.yield %e : f32
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @scalar_result() -> index {
  %s = otf.size "s"
  // expected-error@+1 {{result #0 must be a tensor, got 'index'}}
  return %s : index
}
