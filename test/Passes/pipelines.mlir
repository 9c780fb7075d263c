// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-verify-stage=imported \
// RUN:   --otf-annotate="linear=int4 vocabulary=int8" --otf-verify-stage=annotated \
// RUN:   --otf-quantize --otf-verify-stage=quantized --otf-fuse --otf-verify-stage=fused \
// RUN:   --otf-plan --otf-verify-stage=planned | FileCheck %s

// One decoder layer with a cache, from raised to plan. Its launches are those of a hand-written engine: norms are in prologues,
// transpositions, bias, activation and residuals in what they belong to.

// CHECK-LABEL: func.func @main() {
// CHECK-DAG:  %[[IDS:.*]] = plan.input "ids"
// CHECK-DAG:  %[[LOGITS:.*]] = plan.output "logits"
// CHECK:      plan.launch @embedding_0(%[[IDS]]
// CHECK:      plan.launch @prologue_0(
// CHECK-NOT:  @norm
// CHECK-NOT:  @generate
// CHECK:      plan.launch @linear_0(
// CHECK-NOT:  @generate
// CHECK:      plan.launch @rope_0(
// CHECK:      plan.launch @append_0(
// CHECK:      plan.launch @attention_0(
// CHECK-NOT:  @generate
// CHECK:      plan.launch @linear_1(
// CHECK:      plan.launch @linear_2(
// CHECK:      plan.launch @linear_3(
// CHECK-NOT:  @generate
// CHECK:      plan.launch @linear_4({{.*}} outs(%[[LOGITS]])
// CHECK-NEXT: return

otf.cache @cache : !otf.state<2x16xf32> {input = "past.key", output = "present.key"}
otf.weight @table : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
otf.weight @gain : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
otf.weight @q : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>
otf.weight @o : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>
otf.weight @gate : tensor<64x32xf32> = #otf.blob<file = 0, offset = 0, length = 8192, type = f32>
otf.weight @up : tensor<64x32xf32> = #otf.blob<file = 0, offset = 0, length = 8192, type = f32>
otf.weight @head : tensor<100x64xf32> = #otf.blob<file = 0, offset = 0, length = 25600, type = f32>

!rows = tensor<1x?x32xf32, #otf.dims<"s">>
!wide = tensor<1x?x64xf32, #otf.dims<"s">>
!split = tensor<1x?x2x16xf32, #otf.dims<"s">>
!heads = tensor<1x2x?x16xf32, #otf.dims<"s">>
!table = tensor<1x?x16xf32, #otf.dims<"s">>

func.func @main(%ids: tensor<1x?xi64, #otf.dims<"s">> {otf.name = "ids"}, %cos: !table {otf.name = "cos"})
    -> (tensor<1x?x100xf32, #otf.dims<"s">> {otf.name = "logits"}) {
  %s = otf.size "s"
  %t = otf.use @table : !otf.matrix<100x32, #otf.encoding<f32>>
  %x = otf.embedding %ids, %t : (tensor<1x?xi64, #otf.dims<"s">>, !otf.matrix<100x32, #otf.encoding<f32>>) -> !rows
  %g = otf.use @gain : tensor<32xf32>
  %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (!rows, tensor<32xf32>) -> !rows
  %wq = otf.use @q : !otf.matrix<32x32, #otf.encoding<f32>>
  %q = otf.linear %n, %wq : (!rows, !otf.matrix<32x32, #otf.encoding<f32>>) -> !rows
  %qs = otf.reshape %q : !rows -> !split
  %qh = tensor.generate %s {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %e = tensor.extract %qs[%i, %k, %j, %l] : !split
    tensor.yield %e : f32
  } : !heads
  %qr = otf.rope %qh, %cos, %cos : (!heads, !table, !table) -> !heads
  %past = otf.state @cache : !otf.state<2x16xf32>
  %c = otf.append %past, %qr : (!otf.state<2x16xf32>, !heads) -> !otf.state<2x16xf32>
  %a = otf.attention %qr, %c, %c {scale = 0.25 : f32} : (!heads, !otf.state<2x16xf32>, !otf.state<2x16xf32>) -> !heads
  %as = tensor.generate %s {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %e = tensor.extract %a[%i, %k, %j, %l] : !heads
    tensor.yield %e : f32
  } : !split
  %ar = otf.reshape %as : !split -> !rows
  %wo = otf.use @o : !otf.matrix<32x32, #otf.encoding<f32>>
  %o = otf.linear %ar, %wo : (!rows, !otf.matrix<32x32, #otf.encoding<f32>>) -> !rows
  %r = tensor.generate %s {
  ^bb0(%i: index, %j: index, %k: index):
    %e = tensor.extract %x[%i, %j, %k] : !rows
    %f = tensor.extract %o[%i, %j, %k] : !rows
    %v = arith.addf %e, %f : f32
    tensor.yield %v : f32
  } : !rows
  %m = otf.norm rms %r scale %g {epsilon = 1.0e-5 : f32} : (!rows, tensor<32xf32>) -> !rows
  %wg = otf.use @gate : !otf.matrix<64x32, #otf.encoding<f32>>
  %gt = otf.linear %m, %wg : (!rows, !otf.matrix<64x32, #otf.encoding<f32>>) -> !wide
  %wu = otf.use @up : !otf.matrix<64x32, #otf.encoding<f32>>
  %up = otf.linear %m, %wu : (!rows, !otf.matrix<64x32, #otf.encoding<f32>>) -> !wide
  %act = otf.gated_activation silu %gt, %up : !wide
  %wh = otf.use @head : !otf.matrix<100x64, #otf.encoding<f32>>
  %y = otf.linear %act, %wh : (!wide, !otf.matrix<100x64, #otf.encoding<f32>>) -> tensor<1x?x100xf32, #otf.dims<"s">>
  return %y : tensor<1x?x100xf32, #otf.dims<"s">>
}
