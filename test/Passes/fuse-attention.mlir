// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-fuse-attention | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-fuse-attention --otf-fuse-attention | FileCheck %s

otf.cache @key : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}

// A whole attention without a transposition left.
// CHECK-LABEL: func.func @rope_append_attention(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<?x?x4x16xf32, #otf.dims<"b", "s">>, %[[K:[a-z0-9]*]]: tensor<?x?x2x16xf32
func.func @rope_append_attention(%q: tensor<?x?x4x16xf32, #otf.dims<"b", "s">>, %k: tensor<?x?x2x16xf32, #otf.dims<"b", "s">>,
                                 %t: tensor<1x?x16xf32, #otf.dims<"s">>) -> tensor<?x?x4x16xf32, #otf.dims<"b", "s">> {
  // CHECK-NOT: tensor.generate
  %b = otf.size "b"
  %s = otf.size "s"
  %past = otf.state @key : !otf.state<2x16xf32>
  %qt = tensor.generate %b, %s {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %q[%i, %l, %j, %m] : tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
    tensor.yield %e : f32
  } : tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
  %kt = tensor.generate %b, %s {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %k[%i, %l, %j, %m] : tensor<?x?x2x16xf32, #otf.dims<"b", "s">>
    tensor.yield %e : f32
  } : tensor<?x2x?x16xf32, #otf.dims<"b", "s">>
  // CHECK: %[[QR:.*]] = otf.rope %[[Q]], %{{.*}}, %{{.*}} {positions_first} : (tensor<?x?x4x16xf32
  %qr = otf.rope %qt, %t, %t : (tensor<?x4x?x16xf32, #otf.dims<"b", "s">>, tensor<1x?x16xf32, #otf.dims<"s">>, tensor<1x?x16xf32, #otf.dims<"s">>) -> tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
  // CHECK: %[[KR:.*]] = otf.rope %[[K]], %{{.*}}, %{{.*}} {positions_first} : (tensor<?x?x2x16xf32
  %kr = otf.rope %kt, %t, %t : (tensor<?x2x?x16xf32, #otf.dims<"b", "s">>, tensor<1x?x16xf32, #otf.dims<"s">>, tensor<1x?x16xf32, #otf.dims<"s">>) -> tensor<?x2x?x16xf32, #otf.dims<"b", "s">>
  // CHECK: otf.append %{{.*}}, %[[KR]] {positions_first} : (
  %c = otf.append %past, %kr : (!otf.state<2x16xf32>, tensor<?x2x?x16xf32, #otf.dims<"b", "s">>) -> !otf.state<2x16xf32>
  // CHECK: %[[A:.*]] = otf.attention %[[QR]], {{.*}} {positions_first, scale = 2.500000e-01 : f32} : (tensor<?x?x4x16xf32{{.*}} -> tensor<?x?x4x16xf32
  %a = otf.attention %qr, %c, %c {scale = 0.25 : f32} : (tensor<?x4x?x16xf32, #otf.dims<"b", "s">>, !otf.state<2x16xf32>, !otf.state<2x16xf32>) -> tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
  // CHECK: return %[[A]]
  %at = tensor.generate %b, %s {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %a[%i, %l, %j, %m] : tensor<?x4x?x16xf32, #otf.dims<"b", "s">>
    tensor.yield %e : f32
  } : tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
  return %at : tensor<?x?x4x16xf32, #otf.dims<"b", "s">>
}

// -----

// A transposition that nothing cancels stays behind the operator.
// CHECK-LABEL: func.func @result_is_read_heads_first
func.func @result_is_read_heads_first(%q: tensor<1x5x4x16xf32>, %t: tensor<1x5x16xf32>) -> tensor<1x4x5x16xf32> {
  %qt = tensor.generate {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %q[%i, %l, %j, %m] : tensor<1x5x4x16xf32>
    tensor.yield %e : f32
  } : tensor<1x4x5x16xf32>
  // CHECK: %[[R:.*]] = otf.rope %{{.*}} {positions_first} : (tensor<1x5x4x16xf32>
  // CHECK: %[[T:.*]] = tensor.generate
  // CHECK: tensor.extract %[[R]]
  %r = otf.rope %qt, %t, %t : (tensor<1x4x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> tensor<1x4x5x16xf32>
  // CHECK: return %[[T]] : tensor<1x4x5x16xf32>
  return %r : tensor<1x4x5x16xf32>
}

// -----

// Another permutation is not the operator's other layout.
// CHECK-LABEL: func.func @other_permutation
func.func @other_permutation(%q: tensor<4x1x5x16xf32>, %t: tensor<1x5x16xf32>) -> tensor<1x4x5x16xf32> {
  // CHECK: tensor.generate
  %qt = tensor.generate {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %q[%j, %i, %l, %m] : tensor<4x1x5x16xf32>
    tensor.yield %e : f32
  } : tensor<1x4x5x16xf32>
  // CHECK-NOT: positions_first
  %r = otf.rope %qt, %t, %t : (tensor<1x4x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> tensor<1x4x5x16xf32>
  return %r : tensor<1x4x5x16xf32>
}

// -----

// Keys and values that are tensors have no other layout.
// CHECK-LABEL: func.func @tensor_keys_stay
func.func @tensor_keys_stay(%q: tensor<1x5x4x16xf32>) -> tensor<1x4x5x16xf32> {
  // CHECK: %[[K:.*]] = tensor.generate
  %kt = tensor.generate {
  ^bb0(%i: index, %j: index, %l: index, %m: index):
    %e = tensor.extract %q[%i, %l, %j, %m] : tensor<1x5x4x16xf32>
    tensor.yield %e : f32
  } : tensor<1x4x5x16xf32>
  // CHECK: otf.attention %{{.*}}, %[[K]], %[[K]] {positions_first
  %a = otf.attention %kt, %kt, %kt {scale = 0.25 : f32} : (tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>, tensor<1x4x5x16xf32>) -> tensor<1x4x5x16xf32>
  return %a : tensor<1x4x5x16xf32>
}
