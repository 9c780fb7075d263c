// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-merge-launches | FileCheck %s

// Linears of one record are independent. The prologue belongs to what is merged and has no lane.
plan.kernel @prologue_0(%x: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">> {
  %y = otf.prologue none %x : (tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x128xi8, #otf.dims<"d0">>
}
plan.kernel @linear_0(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<32x64, #otf.encoding<int4, group = 32>>) -> tensor<?x32xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<32x64, #otf.encoding<int4, group = 32>>) -> tensor<?x32xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x32xf32, #otf.dims<"d0">>
}
// CHECK-LABEL: func.func @readers_of_a_record
func.func @readers_of_a_record() {
  %x = plan.input "x" : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %r = plan.alloc : !plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>
  %q = plan.weight @q : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %k = plan.weight @k : !plan.buffer<!otf.matrix<32x64, #otf.encoding<int4, group = 32>>>
  %v = plan.weight @v : !plan.buffer<!otf.matrix<32x64, #otf.encoding<int4, group = 32>>>
  %a = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %b = plan.alloc : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  %c = plan.alloc : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  // CHECK: plan.launch @prologue_0{{.*}}{plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @prologue_0(%x) outs(%r) sizes ["s"] : (!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_0{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_0(%r, %q) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_1{{.*}}{plan.lane = 1 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_1(%r, %k) outs(%b) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<32x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_1{{.*}}{plan.lane = 2 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_1(%r, %v) outs(%c) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<32x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>)
  return
}

// -----

// An epilogue that reads its own place of another result follows in that lane.
plan.kernel @prologue_0(%x: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">> {
  %y = otf.prologue none %x : (tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x128xi8, #otf.dims<"d0">>
}
plan.kernel @linear_0(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>, %g: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %c0 = arith.constant 0 : index
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> epilogue {
  ^bb0(%acc: f32, %i: index, %n: index):
    %a = tensor.extract %g[%i, %n] : tensor<?x64xf32, #otf.dims<"d0">>
    %p = arith.mulf %a, %acc : f32
    otf.yield %p : f32
  }
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
// CHECK-LABEL: func.func @an_epilogue_follows
func.func @an_epilogue_follows() {
  %x = plan.input "x" : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %r = plan.alloc : !plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>
  %g = plan.weight @g : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %u = plan.weight @u : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %a = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %b = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  plan.launch @prologue_0(%x) outs(%r) sizes ["s"] : (!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_0{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_0(%r, %g) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_1{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_1(%r, %u, %a) outs(%b) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>, !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  return
}

// -----

// Of another place it cannot; then the record has a reader outside, and all stay as they are.
plan.kernel @prologue_0(%x: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">> {
  %y = otf.prologue none %x : (tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x128xi8, #otf.dims<"d0">>
}
plan.kernel @linear_0(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>, %g: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %c0 = arith.constant 0 : index
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> epilogue {
  ^bb0(%acc: f32, %i: index, %n: index):
    %a = tensor.extract %g[%i, %c0] : tensor<?x64xf32, #otf.dims<"d0">>
    %p = arith.mulf %a, %acc : f32
    otf.yield %p : f32
  }
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
// CHECK-LABEL: func.func @another_place
func.func @another_place() {
  %x = plan.input "x" : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %r = plan.alloc : !plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>
  %g = plan.weight @g : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %u = plan.weight @u : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %a = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %b = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  // CHECK-NOT: plan.unit
  // CHECK: return
  plan.launch @prologue_0(%x) outs(%r) sizes ["s"] : (!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>)
  plan.launch @linear_0(%r, %g) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  plan.launch @linear_1(%r, %u, %a) outs(%b) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>, !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  return
}

// -----

// Codecs that want another order of bytes make a record of their own.
plan.kernel @prologue_0(%x: tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">> {
  %y = otf.prologue none %x : (tensor<?x64xf32, #otf.dims<"d0">>) -> tensor<?x128xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x128xi8, #otf.dims<"d0">>
}
plan.kernel @linear_0(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<64x64, #otf.encoding<int4, group = 32>>) -> tensor<?x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x64xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x128xi8, #otf.dims<"d0">>, %w: !otf.matrix<32x64, #otf.encoding<planes3x2>>) -> tensor<?x32xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x128xi8, #otf.dims<"d0">>, !otf.matrix<32x64, #otf.encoding<planes3x2>>) -> tensor<?x32xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x32xf32, #otf.dims<"d0">>
}
// CHECK-LABEL: func.func @another_order
func.func @another_order() {
  %x = plan.input "x" : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %r = plan.alloc : !plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>
  %q = plan.weight @q : !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>
  %k = plan.weight @k : !plan.buffer<!otf.matrix<32x64, #otf.encoding<planes3x2>>>
  %a = plan.alloc : !plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>
  %b = plan.alloc : !plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>
  plan.launch @prologue_0(%x) outs(%r) sizes ["s"] : (!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>) outs(!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_0{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_0(%r, %q) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<64x64, #otf.encoding<int4, group = 32>>>) outs(!plan.buffer<tensor<?x64xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @linear_1{{.*}}{plan.lane = 1 : i64, plan.merged = 1 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @linear_1(%r, %k) outs(%b) sizes ["s"] : (!plan.buffer<tensor<?x128xi8, #otf.dims<"s">>>, !plan.buffer<!otf.matrix<32x64, #otf.encoding<planes3x2>>>) outs(!plan.buffer<tensor<?x32xf32, #otf.dims<"s">>>)
  return
}

// -----

// An append follows the rotary embedding that it reads; the other cache is independent.
plan.kernel @rope_0(%x: tensor<?x1x4x16xf32, #otf.dims<"d0">>, %c: tensor<1x1x16xf32>) -> tensor<?x1x4x16xf32, #otf.dims<"d0">> {
  %y = otf.rope %x, %c, %c {positions_first} : (tensor<?x1x4x16xf32, #otf.dims<"d0">>, tensor<1x1x16xf32>, tensor<1x1x16xf32>) -> tensor<?x1x4x16xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x1x4x16xf32, #otf.dims<"d0">>
}
plan.kernel @append_0(%k: !otf.state<4x16xf32>, %x: tensor<?x1x4x16xf32, #otf.dims<"d0">>) -> !otf.state<4x16xf32> {
  %y = otf.append %k, %x {positions_first} : (!otf.state<4x16xf32>, tensor<?x1x4x16xf32, #otf.dims<"d0">>) -> !otf.state<4x16xf32>
  plan.return %y : !otf.state<4x16xf32>
}
// CHECK-LABEL: func.func @heads
func.func @heads() {
  %k = plan.input "k" : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>
  %v = plan.input "v" : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>
  %c = plan.input "c" : !plan.buffer<tensor<1x1x16xf32>>
  %keys = plan.state @keys : !plan.buffer<!otf.state<4x16xf32>>
  %values = plan.state @values : !plan.buffer<!otf.state<4x16xf32>>
  %a = plan.alloc : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>
  // CHECK: plan.launch @rope_0{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @rope_0(%k, %c) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>, !plan.buffer<tensor<1x1x16xf32>>) outs(!plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @append_0{{.*}}{plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @append_0(%keys, %a) outs() sizes ["s", "past", "capacity", "s"] : (!plan.buffer<!otf.state<4x16xf32>>, !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @append_0{{.*}}{plan.lane = 1 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64}
  plan.launch @append_0(%values, %v) outs() sizes ["s", "past", "capacity", "s"] : (!plan.buffer<!otf.state<4x16xf32>>, !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>)
  return
}

// -----

// Heads that are joined in pairs before the cache: a warp would append what another one has rotated.
plan.kernel @rope_0(%x: tensor<?x1x4x16xf32, #otf.dims<"d0">>, %c: tensor<1x1x16xf32>) -> tensor<?x1x4x16xf32, #otf.dims<"d0">> {
  %y = otf.rope %x, %c, %c {positions_first} : (tensor<?x1x4x16xf32, #otf.dims<"d0">>, tensor<1x1x16xf32>, tensor<1x1x16xf32>) -> tensor<?x1x4x16xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x1x4x16xf32, #otf.dims<"d0">>
}
plan.kernel @append_0(%k: !otf.state<2x32xf32>, %x: tensor<?x1x2x32xf32, #otf.dims<"d0">>) -> !otf.state<2x32xf32> {
  %y = otf.append %k, %x {positions_first} : (!otf.state<2x32xf32>, tensor<?x1x2x32xf32, #otf.dims<"d0">>) -> !otf.state<2x32xf32>
  plan.return %y : !otf.state<2x32xf32>
}
// CHECK-LABEL: func.func @pairs
func.func @pairs() {
  %k = plan.input "k" : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>
  %c = plan.input "c" : !plan.buffer<tensor<1x1x16xf32>>
  %keys = plan.state @keys : !plan.buffer<!otf.state<2x32xf32>>
  %a = plan.alloc : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>
  %p = plan.view %a : !plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>> -> !plan.buffer<tensor<?x1x2x32xf32, #otf.dims<"s">>>
  // CHECK: plan.launch @rope_0
  // CHECK-NOT: plan.merged
  plan.launch @rope_0(%k, %c) outs(%a) sizes ["s"] : (!plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>, !plan.buffer<tensor<1x1x16xf32>>) outs(!plan.buffer<tensor<?x1x4x16xf32, #otf.dims<"s">>>)
  // CHECK: plan.launch @append_0
  // CHECK-NOT: plan.merged
  plan.launch @append_0(%keys, %p) outs() sizes ["s", "past", "capacity", "s"] : (!plan.buffer<!otf.state<2x32xf32>>, !plan.buffer<tensor<?x1x2x32xf32, #otf.dims<"s">>>)
  return
}
