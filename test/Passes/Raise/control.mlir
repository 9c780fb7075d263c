// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-import | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-import --otf-fuse --otf-plan | FileCheck %s --check-prefix=PLAN
// RUN: otf-opt %s -split-input-file --otf-import --otf-fuse --otf-plan --otf-verify-stage=planned

// A branch that data picks. Where branches differ in a size, each says which.
// CHECK-LABEL: module @picked
// CHECK: otf.if %{{.*}} : (tensor<i1>) -> tensor<?xf32, #otf.dims<"branch">> {
// CHECK: otf.bind %{{.*}} ["branch"] : tensor<1xi64>
// CHECK: } else {
// CHECK: otf.bind %{{.*}} ["branch"] : tensor<1xi64>
// PLAN-LABEL: module @picked
// PLAN: plan.branch %{{.*}} else "else0"
// PLAN: plan.jump "end1"
// PLAN-NEXT: plan.label "else0"
// PLAN: plan.label "end1"
module @picked attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%c: !onnx.value {onnx.name = "c", onnx.type = 9 : i64, onnx.dims = []},
                  %x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "If" version 19 (%c) bodies ["then_branch", "else_branch"] {
      %1 = onnx.node "Neg" version 13 (%x)
      onnx.yield %1
    }, {
      %1 = onnx.node "Concat" version 13 (%x, %x) {axis = 0 : i64}
      onnx.yield %1
    }
    return %0 : !onnx.value
  }
}

// -----

// A condition that is known leaves its branch.
// CHECK-LABEL: module @constant
// CHECK-NOT: otf.if
// CHECK: arith.negf
module @constant attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @yes = dense<true> : tensor<i1>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %c = onnx.get @yes
    %0 = onnx.node "If" version 19 (%c) bodies ["then_branch", "else_branch"] {
      %1 = onnx.node "Neg" version 13 (%x)
      onnx.yield %1
    }, {
      onnx.yield %x
    }
    return %0 : !onnx.value
  }
}

// -----

// A loop that a condition ends. What it collects has room for all iterations, and is cut to those there were.
// CHECK-LABEL: module @loop
// CHECK: otf.bind %{{.*}} ["trips_0"]
// CHECK: %[[LOOP:.*]]:3 = otf.loop %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i1>, tensor<i64>, tensor<4xf32>, tensor<?x4xf32, #otf.dims<"trips_0">>)
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<?x4xf32, #otf.dims<"trips_0">>):
// CHECK: otf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<i1>, tensor<i64>, tensor<4xf32>, tensor<?x4xf32, #otf.dims<"trips_0">>
// CHECK: otf.bind %{{.*}} ["iterations_0"]
// PLAN-LABEL: module @loop
// PLAN: plan.bind %{{.*}} ["trips_0"]
// PLAN: plan.label "loop0"
// PLAN-NEXT: plan.branch %{{.*}} else "end1"
// PLAN: plan.jump "loop0"
// PLAN-NEXT: plan.label "end1"
module @loop attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @limit = dense<9.0> : tensor<f32>
  onnx.initializer @first = dense<0> : tensor<i64>
  func.func @main(%m: !onnx.value {onnx.name = "m", onnx.type = 7 : i64, onnx.dims = []},
                  %x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "all", onnx.type = 1 : i64}) {
    %limit = onnx.get @limit
    %first = onnx.get @first
    %none = onnx.none
    %0:2 = onnx.node "Loop" version 19 (%m, %none, %x) bodies ["body"] {
    ^bb0(%i: !onnx.value, %c: !onnx.value, %v: !onnx.value):
      %1 = onnx.node "Add" version 14 (%v, %x)
      %2 = onnx.node "Gather" version 13 (%1, %first) {axis = 0 : i64}
      %3 = onnx.node "Less" version 13 (%2, %limit)
      onnx.yield %3, %1, %1
    }
    return %0#0, %0#1 : !onnx.value, !onnx.value
  }
}

// -----

// A scan of few steps is those steps.
// CHECK-LABEL: module @scan
// CHECK-NOT: otf.loop
// CHECK: return %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<3x2xf32>
module @scan attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%s: !onnx.value {onnx.name = "s", onnx.type = 1 : i64, onnx.dims = [2]},
                  %x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [3, 2]})
      -> (!onnx.value {onnx.name = "t", onnx.type = 1 : i64}, !onnx.value {onnx.name = "all", onnx.type = 1 : i64}) {
    %0:2 = onnx.node "Scan" version 19 (%s, %x) {num_scan_inputs = 1 : i64} bodies ["body"] {
    ^bb0(%v: !onnx.value, %e: !onnx.value):
      %1 = onnx.node "Add" version 14 (%v, %e)
      onnx.yield %1, %1
    }
    return %0#0, %0#1 : !onnx.value, !onnx.value
  }
}

// -----

// torch's squeeze(dim): one rank; a run in which the dimension is not 1 ends, and one whose condition says so.
// CHECK-LABEL: module @squeezed
// CHECK-NOT: otf.if
// CHECK: otf.bind %{{.*}} ["squeeze_0"]
// CHECK: otf.reshape %{{.*}} {checked} : tensor<4x?xf32, {{.*}}> -> tensor<4xf32>
// CHECK: tensor.extract %arg0[] : tensor<i1>
// CHECK: otf.bind %{{.*}} ["squeezed_0"] "the branch that does not squeeze
module @squeezed attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%c: !onnx.value {onnx.name = "c", onnx.type = 9 : i64, onnx.dims = []},
                  %x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = [4, "n"]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %axes = onnx.node "Constant" version 13 () {value = dense<1> : tensor<1xi64>}
    %0 = onnx.node "If" version 19 (%c) bodies ["then_branch", "else_branch"] {
      %1 = onnx.node "Squeeze" version 13 (%x, %axes)
      onnx.yield %1
    }, {
      %1 = onnx.node "Identity" version 13 (%x)
      onnx.yield %1
    }
    return %0 : !onnx.value
  }
}
