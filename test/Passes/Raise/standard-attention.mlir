// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import --split-input-file %s | FileCheck %s

// Attention 24 with a past: heads come apart, the past is a cache whose length becomes "past", causality and the mask,
// which is as long as the model says and not as the keys (no longer, which is looked at before), become one mask.
// CHECK-LABEL: module
// CHECK-DAG: otf.cache @k0 : !otf.state<1x8xf32> {input = "k0", output = "k1"}
// CHECK-DAG: otf.cache @v0 : !otf.state<1x8xf32> {input = "v0", output = "v1"}
// CHECK: func.func @main
// CHECK-DAG: %[[KP:.*]] = otf.state @k0
// CHECK-DAG: %[[VP:.*]] = otf.state @v0
// CHECK-DAG: %[[K:.*]] = otf.append %[[KP]]
// CHECK-DAG: %[[V:.*]] = otf.append %[[VP]]
// CHECK: otf.bind %{{.*}} ["mask_fits_0"]
// CHECK: %[[MASK:.*]] = tensor.generate
// CHECK: tensor<?x1x?x?xi1, #otf.dims<"b", "s", "past + s">>
// CHECK: otf.attention %{{.*}}, %[[K]], %[[V]] mask %[[MASK]] {scale = 2.500000e-01 : f32}
module attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", "s", 16]},
                  %k: !onnx.value {onnx.name = "k", onnx.type = 1 : i64, onnx.dims = ["b", "s", 8]},
                  %v: !onnx.value {onnx.name = "v", onnx.type = 1 : i64, onnx.dims = ["b", "s", 8]},
                  %mask: !onnx.value {onnx.name = "mask", onnx.type = 9 : i64, onnx.dims = ["b", 1, 1, "m"]},
                  %k0: !onnx.value {onnx.name = "k0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", 8]},
                  %v0: !onnx.value {onnx.name = "v0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "k1", onnx.type = 1 : i64},
          !onnx.value {onnx.name = "v1", onnx.type = 1 : i64}) {
    %y:3 = onnx.node "Attention" version 24 (%q, %k, %v, %mask, %k0, %v0) {is_causal = 1 : i64, kv_num_heads = 1 : i64, q_num_heads = 2 : i64, scale = 2.500000e-01 : f32}
    return %y#0, %y#1, %y#2 : !onnx.value, !onnx.value, !onnx.value
  }
}

// -----

// Norm and rotation. Rows of heads side by side are rotated as they lie.
// CHECK-LABEL: module
// CHECK: %[[X:.*]] = otf.norm rms %arg0 scale %{{.*}} {epsilon = 9.99999974E-6 : f32}
// CHECK: %[[HEADS:.*]] = otf.reshape %[[X]]
// CHECK: %[[Y:.*]] = otf.rope %[[HEADS]], %{{.*}}, %{{.*}} {positions_first}
// CHECK: otf.reshape %[[Y]]
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @gain = #onnx.blob<file = 0, offset = 0, length = 128, type = 1, dims = [32]>
  func.func @main(%x: !onnx.value {onnx.name = "x", onnx.type = 1 : i64, onnx.dims = ["b", "s", 32]},
                  %cos: !onnx.value {onnx.name = "cos", onnx.type = 1 : i64, onnx.dims = ["b", "s", 8]},
                  %sin: !onnx.value {onnx.name = "sin", onnx.type = 1 : i64, onnx.dims = ["b", "s", 8]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %gain = onnx.get @gain
    %0 = onnx.node "RMSNormalization" version 23 (%x, %gain) {axis = -1 : i64}
    %1 = onnx.node "RotaryEmbedding" version 23 (%0, %cos, %sin) {num_heads = 2 : i64}
    return %1 : !onnx.value
  }
}

// -----

// Zeros for rows that see no key, as torch's attention says: the mask hides all keys of such a row.
// CHECK-LABEL: module @empty_rows
// CHECK-NOT: otf.attention
// CHECK: %[[MASK:.*]] = tensor.generate
// CHECK: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
// CHECK: arith.select %{{.*}}, %[[NONE]], %{{.*}} : f32
// CHECK: %[[Y:.*]] = otf.attention %{{.*}} mask %[[MASK]]
// CHECK-NEXT: return %[[Y]]
module @empty_rows attributes {onnx.files = ["model.onnx"]} {
  func.func @main(%q: !onnx.value {onnx.name = "q", onnx.type = 1 : i64, onnx.dims = ["b", 2, "s", 8]},
                  %mask: !onnx.value {onnx.name = "mask", onnx.type = 1 : i64, onnx.dims = ["b", 1, "s", "s"]},
                  %empty: !onnx.value {onnx.name = "empty", onnx.type = 9 : i64, onnx.dims = ["b", 1, "s", 1]})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}) {
    %zero = onnx.node "Constant" version 13 () {value = dense<0.0> : tensor<f32>}
    %0 = onnx.node "Attention" version 23 (%q, %q, %q, %mask)
    %1 = onnx.node "Where" version 16 (%empty, %zero, %0)
    return %1 : !onnx.value
  }
}
