// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --split-input-file --otf-insert-observers | FileCheck %s
// RUN: otf-opt %s --split-input-file --otf-insert-observers=max-width=16 | FileCheck %s --check-prefix=NARROW

// q and k read one tensor and share its statistics; o reads another.
// CHECK: otf.weight @q {{.*}} {otf.observed = "q"}
// CHECK: otf.weight @k {{.*}} {otf.observed = "q"}
// CHECK: otf.weight @o {{.*}} {otf.observed = "o"}
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
otf.weight @k : tensor<8x32xf32> = #otf.blob<file = 0, offset = 1024, length = 1024, type = f32>
otf.weight @o : tensor<8x8xf32> = #otf.blob<file = 0, offset = 2048, length = 256, type = f32>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x32xf32> {otf.name = "x"}
// CHECK-SAME: %[[ROWS:[a-z0-9]*]]: tensor<1xi64> {otf.name = "q/rows"}, %[[MOMENTS:[a-z0-9]*]]: tensor<5x32xf64> {otf.name = "q/moments"}
// CHECK-SAME: %[[HISTOGRAM:[a-z0-9]*]]: tensor<4096xi64> {otf.name = "q/histogram"}, %[[PRODUCTS:[a-z0-9]*]]: tensor<528xf32> {otf.name = "q/products"}
// CHECK-SAME: tensor<36xf32> {otf.name = "o/products"}
// NARROW: tensor<0xf32> {otf.name = "q/products"}
// NARROW-SAME: tensor<36xf32> {otf.name = "o/products"}
func.func @main(%x: tensor<4x32xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
  // CHECK-NEXT: otf.observe %[[X]] into %[[ROWS]], %[[MOMENTS]], %[[HISTOGRAM]], %[[PRODUCTS]] : tensor<4x32xf32>
  // CHECK-NOT: otf.observe
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  %k = otf.use @k : !otf.matrix<8x32, #otf.encoding<f32>>
  %o = otf.use @o : !otf.matrix<8x8, #otf.encoding<f32>>
  %0 = otf.linear %x, %q : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  // CHECK: %[[K:.*]] = otf.linear %[[X]]
  // CHECK: %[[K:.*]] = otf.linear %[[X]]
  %1 = otf.linear %x, %k : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
  // CHECK-NEXT: otf.observe %[[K]] into
  %2 = otf.linear %1, %o : (tensor<4x8xf32>, !otf.matrix<8x8, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// What a cache is given, and which of three experts tokens choose: ones and zeros, whose sums are counts.
// CHECK: module attributes {otf.observed_values = ["cache:key0", "experts:moe"]}
module {
  otf.cache @key0 : !otf.state<3x8xf32> {input = "past", output = "present"}
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[ROWS:[a-z0-9]*]]: tensor<1xi64> {otf.name = "cache:key0/rows"}
  // CHECK-SAME: tensor<0xf32> {otf.name = "cache:key0/products"}
  // CHECK-SAME: %[[COUNTS:[a-z0-9]*]]: tensor<5x3xf64> {otf.name = "experts:moe/moments"}
  func.func @main(%k: tensor<1x3x4x8xf32> {otf.name = "k"}, %ids: tensor<4x2xi64> {otf.name = "ids"}) -> (tensor<4x2xi64> {otf.name = "y"}) {
    // CHECK: otf.observe %{{.*}} into %[[ROWS]]
    %past = otf.state @key0 : !otf.state<3x8xf32>
    %now = otf.append %past, %k : (!otf.state<3x8xf32>, tensor<1x3x4x8xf32>) -> !otf.state<3x8xf32>
    // CHECK: %[[CHOICE:.*]] = tensor.generate
    %choice = tensor.generate {
    ^bb0(%i: index, %j: index):
      %id = tensor.extract %ids[%i, %j] : tensor<4x2xi64>
      tensor.yield %id : i64
    } {otf.experts = 3 : i64} : tensor<4x2xi64> loc("moe")
    // CHECK: %[[CHOSEN:.*]] = tensor.generate
    // CHECK: tensor.extract %[[CHOICE]]
    // CHECK: otf.observe %[[CHOSEN]] into %{{.*}}, %[[COUNTS]]
    return %choice : tensor<4x2xi64>
  }
}

// -----

// A weight that meets two tensors has the statistics of both, and so has everyone who reads one of them.
// CHECK: otf.weight @w {{.*}} {otf.observed = "w"}
otf.weight @w : tensor<8x8xf32> = #otf.blob<file = 0, offset = 0, length = 256, type = f32>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x8xf32> {otf.name = "x"}, %[[ROWS:[a-z0-9]*]]: tensor<1xi64> {otf.name = "w/rows"}
func.func @main(%x: tensor<4x8xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
  // CHECK: otf.observe %[[X]] into %[[ROWS]]
  %w = otf.use @w : !otf.matrix<8x8, #otf.encoding<f32>>
  // CHECK: %[[Y:.*]] = otf.linear %[[X]]
  // CHECK-NEXT: otf.observe %[[Y]] into %[[ROWS]]
  %0 = otf.linear %x, %w : (tensor<4x8xf32>, !otf.matrix<8x8, #otf.encoding<f32>>) -> tensor<4x8xf32>
  %1 = otf.linear %0, %w : (tensor<4x8xf32>, !otf.matrix<8x8, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
