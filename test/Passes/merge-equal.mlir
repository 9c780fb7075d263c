// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-merge-equal %s | FileCheck %s

// Bodies that compute the same are one, and so are the constants in them; another constant is another body.
// CHECK-LABEL: func.func @bodies
// CHECK: %[[A:.*]] = tensor.generate
// CHECK: arith.constant 1.0
// CHECK: %[[B:.*]] = tensor.generate
// CHECK: arith.constant 2.0
// CHECK-NOT: tensor.generate
// CHECK: return %[[A]], %[[A]], %[[B]]
func.func @bodies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    %c = arith.constant 1.0 : f32
    %s = arith.addf %e, %c : f32
    tensor.yield %s : f32
  } : tensor<4xf32>
  %1 = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    %again = tensor.extract %x[%i] : tensor<4xf32>
    %c = arith.constant 1.0 : f32
    %s = arith.addf %again, %c : f32
    tensor.yield %s : f32
  } : tensor<4xf32>
  %2 = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<4xf32>
    %c = arith.constant 2.0 : f32
    %s = arith.addf %e, %c : f32
    tensor.yield %s : f32
  } : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What one body computed is not there in the next.
// CHECK-LABEL: func.func @scopes
// CHECK-COUNT-2: arith.addi
func.func @scopes(%x: tensor<4xindex>, %k: index) -> (tensor<4xindex>, tensor<4xindex>) {
  %0 = tensor.generate {
  ^bb0(%i: index):
    %s = arith.addi %k, %k : index
    tensor.yield %s : index
  } : tensor<4xindex>
  %1 = tensor.generate {
  ^bb0(%i: index):
    %s = arith.addi %k, %k : index
    %t = arith.muli %s, %i : index
    tensor.yield %t : index
  } : tensor<4xindex>
  return %0, %1 : tensor<4xindex>, tensor<4xindex>
}

// What may have effects stays.
// CHECK-LABEL: func.func @effects
// CHECK-COUNT-2: call @effects
func.func @effects() {
  func.call @effects() : () -> ()
  func.call @effects() : () -> ()
  return
}
