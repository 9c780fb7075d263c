// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-fuse-elementwise | FileCheck %s
// RUN: otf-opt %s --otf-fuse-elementwise --otf-fuse-elementwise | FileCheck %s
// RUN: otf-opt %s --otf-fuse-elementwise=max-ops=0 | FileCheck %s --check-prefix=ZERO
// RUN: otf-opt %s --otf-fuse-elementwise --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// CHECK-LABEL: func.func @gated_activation(
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<?x8xf32, #otf.dims<"s">>, %[[U:[a-z0-9]*]]: tensor<?x8xf32
func.func @gated_activation(%g: tensor<?x8xf32, #otf.dims<"s">>, %u: tensor<?x8xf32, #otf.dims<"s">>) -> tensor<?x8xf32, #otf.dims<"s">> {
  // CHECK: %[[S:.*]] = otf.size "s"
  // CHECK: tensor.generate %[[S]] {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK-NEXT: %[[GE:.*]] = tensor.extract %[[G]][%[[I]], %[[J]]]
  // CHECK-NEXT: %[[UE:.*]] = tensor.extract %[[U]][%[[I]], %[[J]]]
  // CHECK-NEXT: %[[N:.*]] = arith.negf %[[GE]]
  // CHECK-NEXT: %[[E:.*]] = math.exp %[[N]]
  // CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
  // CHECK-NEXT: %[[D:.*]] = arith.addf %[[ONE]], %[[E]]
  // CHECK-NEXT: %[[A:.*]] = arith.divf %[[GE]], %[[D]]
  // CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[A]], %[[UE]]
  // CHECK-NEXT: tensor.yield %[[Y]]
  %0 = otf.gated_activation silu %g, %u : tensor<?x8xf32, #otf.dims<"s">>
  return %0 : tensor<?x8xf32, #otf.dims<"s">>
}

// CHECK-LABEL: func.func @chain_becomes_one(
// LOC-LABEL: func.func @chain_becomes_one(
func.func @chain_becomes_one(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: tensor.generate
  // CHECK:   math.exp
  // CHECK:   arith.negf
  // CHECK:   math.tanh
  // CHECK-NOT: tensor.generate
  // LOC: loc(fused["a", "b", "c"])
  %a = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32> loc("a")
  %b = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %a[%i] : tensor<8xf32>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32> loc("b")
  %c = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %b[%i] : tensor<8xf32>
    %v = math.tanh %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32> loc("c")
  return %c : tensor<8xf32>
}

// Two equal reads are one, so the square takes its producer in.
// CHECK-LABEL: func.func @equal_reads_are_one(
func.func @equal_reads_are_one(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: tensor.generate
  // CHECK: %[[V:.*]] = math.exp
  // CHECK: arith.mulf %[[V]], %[[V]]
  // CHECK-NOT: tensor.generate
  %a = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  %b = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %a[%i] : tensor<8xf32>
    %f = tensor.extract %a[%i] : tensor<8xf32>
    %v = arith.mulf %e, %f : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  return %b : tensor<8xf32>
}

// Moving data costs nothing, so each reader does it for itself.
// CHECK-LABEL: func.func @moves_go_everywhere(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8xf32>
// ZERO-LABEL: func.func @moves_go_everywhere(
func.func @moves_go_everywhere(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: tensor.generate
  // CHECK: tensor.extract %[[X]]
  // CHECK: arith.negf
  // CHECK: tensor.generate
  // CHECK: tensor.extract %[[X]]
  // CHECK: math.exp
  // CHECK-NOT: tensor.generate
  // ZERO: tensor.generate
  // ZERO: tensor.generate
  // ZERO: tensor.generate
  %t = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %x[%j, %i] : tensor<4x8xf32>
    tensor.yield %e : f32
  } : tensor<8x4xf32>
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %t[%i, %j] : tensor<8x4xf32>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<8x4xf32>
  %b = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %t[%i, %j] : tensor<8x4xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<8x4xf32>
  return %a, %b : tensor<8x4xf32>, tensor<8x4xf32>
}

// Two readers of an exponential would compute it twice.
// CHECK-LABEL: func.func @costly_with_two_readers_stays(
func.func @costly_with_two_readers_stays(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[A:.*]] = tensor.generate
  // CHECK: math.exp
  // CHECK: tensor.extract %[[A]]
  // CHECK: tensor.extract %[[A]]
  %a = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  %b = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %a[%i] : tensor<8xf32>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  %c = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %a[%i] : tensor<8xf32>
    %v = math.absf %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  return %b, %c : tensor<8xf32>, tensor<8xf32>
}

// A broadcast would compute the reduction of a row once for each element of it.
// CHECK-LABEL: func.func @reduction_read_by_a_broadcast_stays(
func.func @reduction_read_by_a_broadcast_stays(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[A:.*]] = tensor.generate
  // CHECK: scf.for
  // CHECK: tensor.generate
  // CHECK-NOT: scf.for
  // CHECK: tensor.extract %[[A]]
  %a = tensor.generate {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
      %e = tensor.extract %x[%i, %k] : tensor<4x8xf32>
      %n = arith.addf %s, %e : f32
      scf.yield %n : f32
    }
    tensor.yield %sum : f32
  } : tensor<4xf32>
  %b = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %x[%i, %j] : tensor<4x8xf32>
    %s = tensor.extract %a[%i] : tensor<4xf32>
    %v = arith.subf %e, %s : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// Once an element, it goes along.
// CHECK-LABEL: func.func @reduction_read_once_an_element(
func.func @reduction_read_once_an_element(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK: tensor.generate
  // CHECK: scf.for
  // CHECK: math.sqrt
  // CHECK-NOT: tensor.generate
  %a = tensor.generate {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
      %e = tensor.extract %x[%i, %k] : tensor<4x8xf32>
      %n = arith.addf %s, %e : f32
      scf.yield %n : f32
    }
    tensor.yield %sum : f32
  } : tensor<4xf32>
  %b = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %a[%i] : tensor<4xf32>
    %v = math.sqrt %e : f32
    tensor.yield %v : f32
  } : tensor<4xf32>
  return %b : tensor<4xf32>
}

// Short arithmetic goes into a loop that reads it; nothing else does.
// CHECK-LABEL: func.func @short_into_a_loop(
func.func @short_into_a_loop(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK: tensor.generate
  // CHECK: scf.for
  // CHECK: arith.negf
  // CHECK-NOT: tensor.generate
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %x[%i, %j] : tensor<4x8xf32>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  %b = tensor.generate {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 {
      %e = tensor.extract %a[%i, %k] : tensor<4x8xf32>
      %n = arith.addf %s, %e : f32
      scf.yield %n : f32
    }
    tensor.yield %sum : f32
  } : tensor<4xf32>
  return %b : tensor<4xf32>
}

// A reshape that adds ones is in nobody's way; one that merges dimensions is.
// CHECK-LABEL: func.func @reads_through_ones(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x8xf32, #otf.dims<"s">>
func.func @reads_through_ones(%x: tensor<?x8xf32, #otf.dims<"s">>, %m: tensor<4x2xf32>) -> (tensor<?x8xf32, #otf.dims<"s">>, tensor<8xf32>) {
  // CHECK-NOT: otf.reshape %[[X]]
  %r = otf.reshape %x : tensor<?x8xf32, #otf.dims<"s">> -> tensor<1x?x1x8xf32, #otf.dims<"s">>
  %s = otf.size "s"
  // CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK: tensor.extract %[[X]][%[[I]], %[[J]]]
  %a = tensor.generate %s {
  ^bb0(%i: index, %j: index):
    %c0 = arith.constant 0 : index
    %e = tensor.extract %r[%c0, %i, %c0, %j] : tensor<1x?x1x8xf32, #otf.dims<"s">>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<?x8xf32, #otf.dims<"s">>
  // CHECK: %[[M:.*]] = otf.reshape %{{.*}} : tensor<4x2xf32> -> tensor<8xf32>
  %n = otf.reshape %m : tensor<4x2xf32> -> tensor<8xf32>
  // CHECK: tensor.extract %[[M]]
  %b = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %n[%i] : tensor<8xf32>
    %v = arith.negf %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  return %a, %b : tensor<?x8xf32, #otf.dims<"s">>, tensor<8xf32>
}

// A compute is no reader that takes in its producers: its body may read an element many times.
// CHECK-LABEL: func.func @compute_keeps_its_producers
func.func @compute_keeps_its_producers(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[A:.*]] = tensor.generate
  %a = tensor.generate {
  ^bb0(%i: index):
    %e = tensor.extract %x[%i] : tensor<8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  // CHECK: otf.compute
  // CHECK: tensor.extract %[[A]]
  %y = otf.compute "8" : tensor<8xf32> {
  ^bb0(%i: index, %out: memref<8xf32>):
    %v = tensor.extract %a[%i] : tensor<8xf32>
    memref.store %v, %out[%i] : memref<8xf32>
  }
  return %y : tensor<8xf32>
}

// A transposition is the business of those who read it: what it turns is computed in its own order, though only it reads it.
// CHECK-LABEL: func.func @turned_for_a_body
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @turned_for_a_body(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  // CHECK: %[[A:.*]] = tensor.generate
  // CHECK: math.exp
  // CHECK: } : tensor<4x8xf32>
  %a = tensor.generate {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %x[%i, %j] : tensor<4x8xf32>
    %v = math.exp %e : f32
    tensor.yield %v : f32
  } : tensor<4x8xf32>
  %t = tensor.generate {
  ^bb0(%j: index, %i: index):
    %e = tensor.extract %a[%i, %j] : tensor<4x8xf32>
    tensor.yield %e : f32
  } : tensor<8x4xf32>
  // CHECK: tensor.extract %[[A]][%{{.*}}, %{{.*}}] : tensor<4x8xf32>
  // CHECK: tensor.extract %[[A]][%{{.*}}, %{{.*}}] : tensor<4x8xf32>
  // CHECK: } : tensor<8xf32>
  %y = tensor.generate {
  ^bb0(%j: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %e = tensor.extract %t[%j, %c0] : tensor<8x4xf32>
    %f = tensor.extract %t[%j, %c1] : tensor<8x4xf32>
    %s = arith.addf %e, %f : f32
    tensor.yield %s : f32
  } : tensor<8xf32>
  return %y : tensor<8xf32>
}
