// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-import | FileCheck %s

// A merged decoder: the branch that appends to a past is the decoder, since with a past of length 0 it is the other one too.
// CHECK-LABEL: module @merged
// CHECK: otf.cache @past
// CHECK: func.func @main(%arg0: tensor<?x2x?x8xf32, {{.*}}> {otf.name = "x"})
// CHECK-NOT: otf.if
// CHECK: otf.append
module @merged attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["batch", 2, "length", 8]},
                  %past: !onnx.value {onnx.name = "past", onnx.type = 1 : i64, onnx.dims = ["batch", 2, "past_length", 8]},
                  %c: !onnx.value {onnx.name = "use_cache_branch", onnx.type = 9 : i64, onnx.dims = [1]})
      -> (!onnx.value {onnx.name = "present", onnx.type = 1 : i64}, !onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0:2 = onnx.node "If" version 19 (%c) bodies ["then_branch", "else_branch"] {
      %1 = onnx.node "Concat" version 13 (%past, %x) {axis = -2 : i64}
      %2 = onnx.node "Neg" version 13 (%x)
      onnx.yield %1, %2
    }, {
      %1 = onnx.node "Identity" version 13 (%x)
      %2 = onnx.node "Neg" version 13 (%x)
      onnx.yield %1, %2
    }
    return %0#0, %0#1 : !onnx.value, !onnx.value
  }
}

// -----

// A past that is read otherwise, as a cross attention's is, has its first contents from the other branch.
// CHECK-LABEL: module @cross
// CHECK: func.func @main({{.*}}otf.name = "use_cache_branch"
// CHECK: otf.if
module @cross attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["batch", 2, "length", 8]},
                  %past: !onnx.value {onnx.name = "past", onnx.type = 1 : i64, onnx.dims = ["batch", 2, "length", 8]},
                  %c: !onnx.value {onnx.name = "use_cache_branch", onnx.type = 9 : i64, onnx.dims = [1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %0 = onnx.node "If" version 19 (%c) bodies ["then_branch", "else_branch"] {
      %1 = onnx.node "Neg" version 13 (%past)
      onnx.yield %1
    }, {
      %1 = onnx.node "Neg" version 13 (%x)
      onnx.yield %1
    }
    return %0 : !onnx.value
  }
}
