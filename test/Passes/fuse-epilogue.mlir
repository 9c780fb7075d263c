// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-fuse-epilogue | FileCheck %s
// RUN: otf-opt %s --otf-fuse-epilogue --otf-fuse-epilogue | FileCheck %s
// RUN: otf-opt %s --otf-fuse-epilogue --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

!w = !otf.matrix<8x32, #otf.encoding<f32>>

// CHECK-LABEL: func.func @sum_with_a_vector_is_the_bias(
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<8xf32>
// LOC-LABEL: func.func @sum_with_a_vector_is_the_bias(
func.func @sum_with_a_vector_is_the_bias(%b: tensor<8xf32>, %x: tensor<4x32xf32>, %w: !w) -> tensor<4x8xf32> {
  // CHECK: otf.linear %{{.*}}, %{{.*}} bias %[[B]] : {{.*}} -> tensor<4x8xf32>{{$}}
  // CHECK-NOT: tensor.generate
  // LOC: otf.linear {{.*}} loc(fused["matmul", "add"])
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !w) -> tensor<4x8xf32> loc("matmul")
  %1 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %b[%j] : tensor<8xf32>
    %f = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %v = arith.addf %e, %f : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32> loc("add")
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @residual(
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<4x8xf32>
func.func @residual(%r: tensor<4x8xf32>, %x: tensor<4x32xf32>, %w: !w) -> tensor<4x8xf32> {
  // CHECK: otf.linear {{.*}} epilogue {
  // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32, %[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK-NEXT: %[[E:.*]] = tensor.extract %[[R]][%[[I]], %[[J]]]
  // CHECK-NEXT: %[[V:.*]] = arith.addf %[[SUM]], %[[E]]
  // CHECK-NEXT: otf.yield %[[V]] : f32
  // CHECK-NOT: tensor.generate
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %1 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %f = tensor.extract %r[%i, %j] : tensor<4x8xf32>
    %v = arith.addf %e, %f : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// The later of two linears computes the product, and reads the earlier's result.
// CHECK-LABEL: func.func @gate_and_up(
func.func @gate_and_up(%x: tensor<4x32xf32>, %g: !w, %u: !w) -> tensor<4x8xf32> {
  // CHECK: %[[G:.*]] = otf.linear {{.*}} -> tensor<4x8xf32>{{$}}
  // CHECK: otf.linear {{.*}} epilogue {
  // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32,
  // CHECK-NEXT: %[[E:.*]] = tensor.extract %[[G]]
  // CHECK-NEXT: arith.mulf %[[E]], %[[SUM]]
  %0 = otf.linear %x, %g : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %1 = otf.linear %x, %u : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %2 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %f = tensor.extract %1[%i, %j] : tensor<4x8xf32>
    %v = arith.mulf %e, %f : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// The later one is a result too, so the earlier one takes the body; it moves down to where both are known.
// CHECK-LABEL: func.func @only_one_can(
func.func @only_one_can(%x: tensor<4x32xf32>, %g: !w, %u: !w) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[U:.*]] = otf.linear {{.*}} -> tensor<4x8xf32>{{$}}
  // CHECK: otf.linear {{.*}} epilogue {
  // CHECK: tensor.extract %[[U]]
  %0 = otf.linear %x, %g : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %1 = otf.linear %x, %u : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %2 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %f = tensor.extract %1[%i, %j] : tensor<4x8xf32>
    %v = arith.mulf %e, %f : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  return %2, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A body that could not be fused before (its producer had two readers) continues an epilogue; the type may change.
// CHECK-LABEL: func.func @continues_an_epilogue(
func.func @continues_an_epilogue(%x: tensor<4x32xf32>, %w: !w) -> tensor<4x8xf16> {
  // CHECK: otf.linear {{.*}} -> tensor<4x8xf16> epilogue {
  // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32,
  // CHECK-NEXT: %[[A:.*]] = math.exp %[[SUM]]
  // CHECK-NEXT: %[[B:.*]] = arith.truncf %[[A]]
  // CHECK-NEXT: otf.yield %[[B]] : f16
  // CHECK-NOT: tensor.generate
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !w) -> tensor<4x8xf32> epilogue {
  ^bb0(%sum: f32, %i: index, %j: index):
    %e = math.exp %sum : f32
    otf.yield %e : f32
  }
  %1 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %v = arith.truncf %e : f32 to f16
    tensor.yield %v : f16
  } : tensor<4x8xf16>
  return %1 : tensor<4x8xf16>
}

// Another index than its own: the sum is not there yet.
// CHECK-LABEL: func.func @transposed_read_stays(
func.func @transposed_read_stays(%x: tensor<8x32xf32>, %w: !w) -> tensor<8x8xf32> {
  // CHECK: otf.linear {{.*}} -> tensor<8x8xf32>{{$}}
  // CHECK: tensor.generate
  %0 = otf.linear %x, %w : (tensor<8x32xf32>, !w) -> tensor<8x8xf32>
  %1 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%j, %i] : tensor<8x8xf32>
    tensor.yield %e : f32
  } : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Another reader needs the sums; contracting twice is never worth it.
// CHECK-LABEL: func.func @another_reader_stays(
func.func @another_reader_stays(%x: tensor<4x32xf32>, %w: !w) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: otf.linear {{.*}} -> tensor<4x8xf32>{{$}}
  // CHECK-NOT: otf.linear
  // CHECK: tensor.generate
  %0 = otf.linear %x, %w : (tensor<4x32xf32>, !w) -> tensor<4x8xf32>
  %1 = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %0[%i, %j] : tensor<4x8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A flattened product is contracted in the shape that its reader has.
// CHECK-LABEL: func.func @reshape_moves_to_the_input(
func.func @reshape_moves_to_the_input(%x: tensor<?x32xf32, #otf.dims<"b*s">>, %w: !w) -> tensor<?x?x8xf32, #otf.dims<"b", "s">> {
  // CHECK: %[[X:.*]] = otf.reshape %{{.*}} : tensor<?x32xf32, #otf.dims<"b*s">> -> tensor<?x?x32xf32, #otf.dims<"b", "s">>
  // CHECK: otf.linear %[[X]], {{.*}} -> tensor<?x?x8xf32, #otf.dims<"b", "s">> epilogue {
  // CHECK-NOT: tensor.generate
  %0 = otf.linear %x, %w : (tensor<?x32xf32, #otf.dims<"b*s">>, !w) -> tensor<?x8xf32, #otf.dims<"b*s">>
  %1 = otf.reshape %0 : tensor<?x8xf32, #otf.dims<"b*s">> -> tensor<?x?x8xf32, #otf.dims<"b", "s">>
  %b = otf.size "b"
  %s = otf.size "s"
  %2 = tensor.generate %b, %s {
  ^bb0(%i: index, %j: index, %k: index):
    %e = tensor.extract %1[%i, %j, %k] : tensor<?x?x8xf32, #otf.dims<"b", "s">>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<?x?x8xf32, #otf.dims<"b", "s">>
  return %2 : tensor<?x?x8xf32, #otf.dims<"b", "s">>
}
