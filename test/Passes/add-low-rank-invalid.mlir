// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file -verify-diagnostics --otf-encode --otf-add-low-rank

otf.weight @late : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32> {encoding = #otf.encoding<int4, group = 32>, otf.rank = 2 : i64}
func.func @late_rank(%x: tensor<4x64xf32>) -> tensor<4x8xf32> {
  %w = otf.use @late : !otf.matrix<8x64, #otf.encoding<f32>>
  // expected-error @+1 {{multiplies by @late, whose rank of 2 is for linears of f32 without window and epilogue (run otf-add-low-rank before otf-encode)}}
  %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
