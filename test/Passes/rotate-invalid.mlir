// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file -verify-diagnostics --otf-rotate

otf.weight @t : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, rotation = #otf.rotation<block = 64>}
func.func @an_embedding_of_rotated_rows(%ids: tensor<4xi64>) {
  %t = otf.use @t : !otf.matrix<8x64, #otf.encoding<f32>>
  // expected-error@+1 {{reads @t, whose rows are rotated; only linears can}}
  %0 = otf.embedding %ids, %t : (tensor<4xi64>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x64xf32>
  return
}

// -----

otf.weight @t : tensor<8x64xf32> = #otf.blob<file = 0, offset = 0, length = 2048, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, rotation = #otf.rotation<block = 64>}
func.func @records_are_made_later(%r: tensor<4x128xi8>) {
  %t = otf.use @t : !otf.matrix<8x64, #otf.encoding<int8, group = 32>>
  // expected-error@+1 {{reads records of rows that are not rotated, and a weight that is (run otf-rotate first)}}
  %0 = otf.linear %r, %t : (tensor<4x128xi8>, !otf.matrix<8x64, #otf.encoding<int8, group = 32>>) -> tensor<4x8xf32>
  return
}
