// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-sink-transposes %s | FileCheck %s

// A body over a transposed contraction is computed in the contraction's order, and transposed after. The transpose that it
// reads stays for otf-fuse-elementwise.
// CHECK-LABEL: func.func @after
// CHECK: %[[Y:.*]] = otf.linear
// CHECK: } : tensor<2x16x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = tensor.generate
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[I:.*]]: index, %[[C:.*]]: index):
// CHECK: tensor.extract %{{.*}}[%[[N]], %[[C]], %[[I]]]
// CHECK: } : tensor<2x8x16xf32>
// CHECK-NEXT: tensor.generate
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[C:.*]]: index, %[[I:.*]]: index):
// CHECK-NEXT: tensor.extract %[[SUM]][%[[N]], %[[I]], %[[C]]]
// CHECK: } : tensor<2x16x8xf32>
func.func @after(%x: tensor<2x8x32xf32>, %w: !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x16x8xf32> {
  %0 = otf.linear %x, %w : (tensor<2x8x32xf32>, !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x8x16xf32>
  %1 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %0[%n, %i, %c] : tensor<2x8x16xf32>
    tensor.yield %e : f32
  } : tensor<2x16x8xf32>
  %2 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %1[%n, %c, %i] : tensor<2x16x8xf32>
    %s = arith.addf %e, %e : f32
    tensor.yield %s : f32
  } : tensor<2x16x8xf32>
  return %2 : tensor<2x16x8xf32>
}

// A transpose that undoes it is gone.
// CHECK-LABEL: func.func @undone
// CHECK: %[[Y:.*]] = otf.linear
// CHECK-NOT: tensor.generate
// CHECK: return %[[Y]]
func.func @undone(%x: tensor<2x8x32xf32>, %w: !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x8x16xf32> {
  %0 = otf.linear %x, %w : (tensor<2x8x32xf32>, !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x8x16xf32>
  %1 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %0[%n, %i, %c] : tensor<2x8x16xf32>
    tensor.yield %e : f32
  } : tensor<2x16x8xf32>
  %2 = tensor.generate {
  ^bb0(%n: index, %i: index, %c: index):
    %e = tensor.extract %1[%n, %c, %i] : tensor<2x16x8xf32>
    tensor.yield %e : f32
  } : tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// A transpose of what is no contraction keeps its readers as they are.
// CHECK-LABEL: func.func @other
// CHECK: arith.addf
// CHECK-NEXT: tensor.yield
// CHECK-NEXT: } : tensor<2x16x8xf32>
// CHECK-NEXT: return
func.func @other(%x: tensor<2x8x16xf32>) -> tensor<2x16x8xf32> {
  %1 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %x[%n, %i, %c] : tensor<2x8x16xf32>
    tensor.yield %e : f32
  } : tensor<2x16x8xf32>
  %2 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %1[%n, %c, %i] : tensor<2x16x8xf32>
    %s = arith.addf %e, %e : f32
    tensor.yield %s : f32
  } : tensor<2x16x8xf32>
  return %2 : tensor<2x16x8xf32>
}

// What says that it has its order keeps it, though it reads a transposed contraction.
// CHECK-LABEL: func.func @ordered
// CHECK: otf.linear
// CHECK: arith.addf
// CHECK-NEXT: tensor.yield
// CHECK-NEXT: } {otf.keeps_order} : tensor<2x8x16xf32>
// CHECK-NEXT: return
func.func @ordered(%x: tensor<2x8x32xf32>, %w: !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x8x16xf32> {
  %0 = otf.linear %x, %w : (tensor<2x8x32xf32>, !otf.matrix<16x32, #otf.encoding<f32>>) -> tensor<2x8x16xf32>
  %1 = tensor.generate {
  ^bb0(%n: index, %c: index, %i: index):
    %e = tensor.extract %0[%n, %i, %c] : tensor<2x8x16xf32>
    tensor.yield %e : f32
  } : tensor<2x16x8xf32>
  %2 = tensor.generate {
  ^bb0(%n: index, %i: index, %c: index):
    %e = tensor.extract %1[%n, %c, %i] : tensor<2x16x8xf32>
    %s = arith.addf %e, %e : f32
    tensor.yield %s : f32
  } {otf.keeps_order} : tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}
