// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt --otf-import %s | FileCheck %s

// GroupQueryAttention with packed heads and a rotation. The cache's width, which the input leaves open, follows from the
// operator; new positions begin where a row's length says.
// CHECK-LABEL: module
// CHECK-DAG: otf.cache @k0 : !otf.state<1x8xf32> {input = "k0", output = "k1"}
// CHECK-DAG: otf.cache @v0 : !otf.state<1x8xf32> {input = "v0", output = "v1"}
// CHECK: func.func @main
// CHECK-DAG: %[[KP:.*]] = otf.state @k0
// CHECK-DAG: %[[VP:.*]] = otf.state @v0
// CHECK: otf.rope %{{.*}} {positions_first}
// CHECK: otf.rope %{{.*}} {positions_first}
// CHECK: %[[K:.*]] = otf.append %[[KP]], %{{.*}} at %[[AT:.*]] :
// CHECK: %[[V:.*]] = otf.append %[[VP]], %{{.*}} at %[[AT]] :
// CHECK: otf.attention %{{.*}}, %[[K]], %[[V]] mask %{{.*}} sink %{{.*}} {scale = 2.500000e-01 : f32, softcap = 5.000000e+00 : f32}
// CHECK: otf.norm rms %[[SUM:.*]] scale
// CHECK: return %{{.*}}, %[[SUM]] :
module attributes {onnx.files = ["model.onnx"]} {
  onnx.initializer @cos = #onnx.blob<file = 0, offset = 0, length = 1024, type = 1, dims = [64, 4]>
  onnx.initializer @sin = #onnx.blob<file = 0, offset = 1024, length = 1024, type = 1, dims = [64, 4]>
  onnx.initializer @gain = #onnx.blob<file = 0, offset = 2048, length = 64, type = 1, dims = [16]>
  onnx.initializer @sink = dense<[0.5, 1.0]> : tensor<2xf32>
  func.func @main(%qkv: !onnx.value {onnx.name = "qkv", onnx.type = 1 : i64, onnx.dims = ["b", "s", 32]},
                  %k0: !onnx.value {onnx.name = "k0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", "d"]},
                  %v0: !onnx.value {onnx.name = "v0", onnx.type = 1 : i64, onnx.dims = ["b", 1, "p", "d"]},
                  %lengths: !onnx.value {onnx.name = "lengths", onnx.type = 6 : i64, onnx.dims = ["b"]},
                  %total: !onnx.value {onnx.name = "total", onnx.type = 6 : i64, onnx.dims = []})
      -> (!onnx.value {onnx.name = "y", onnx.type = 1 : i64}, !onnx.value {onnx.name = "sum", onnx.type = 1 : i64},
          !onnx.value {onnx.name = "k1", onnx.type = 1 : i64}, !onnx.value {onnx.name = "v1", onnx.type = 1 : i64}) {
    %none = onnx.none
    %cos = onnx.get @cos
    %sin = onnx.get @sin
    %gain = onnx.get @gain
    %sink = onnx.get @sink
    %y:3 = onnx.node "GroupQueryAttention" domain "com.microsoft" version 1 (%qkv, %none, %none, %k0, %v0, %lengths, %total, %cos, %sin, %none, %none, %sink) {do_rotary = 1 : i64, kv_num_heads = 1 : i64, local_window_size = 8 : i64, num_heads = 2 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+00 : f32}
    %n:4 = onnx.node "SkipSimplifiedLayerNormalization" domain "com.microsoft" version 1 (%y#0, %y#0, %gain) {epsilon = 9.99999997E-7 : f32}
    return %n#0, %n#3, %y#1, %y#2 : !onnx.value, !onnx.value, !onnx.value, !onnx.value
  }
}
