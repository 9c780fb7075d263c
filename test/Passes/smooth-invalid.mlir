// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file -verify-diagnostics --otf-smooth

// expected-error @+1 {{cannot be made relative: products with its units are off by INF of their norms, and 2.000000e-06 is allowed}}
otf.weight @nothing : tensor<2x3xf32> = #otf.blob<file = 0, offset = 0, length = 24, type = f32> {otf.unit = dense<[2.0, 0.0, 0.5]> : tensor<3xf32>}

// -----

// expected-error @+1 {{has units and a center that do not fit it: otf.unit and otf.center have an element a column, otf.center_products one a row}}
otf.weight @short : tensor<2x3xf32> = #otf.blob<file = 0, offset = 0, length = 24, type = f32> {otf.unit = dense<[2.0, 1.0]> : tensor<2xf32>}

// -----

otf.weight @table : tensor<2x3xf32> = #otf.blob<file = 0, offset = 0, length = 24, type = f32> {otf.unit = dense<[2.0, 1.0, 0.5]> : tensor<3xf32>}
func.func @rows(%ids: tensor<4xi64>) {
  %t = otf.use @table : !otf.matrix<2x3, #otf.encoding<f32>>
  // expected-error @+1 {{reads @table, which has units; only linears of f32 without window can}}
  %0 = otf.embedding %ids, %t : (tensor<4xi64>, !otf.matrix<2x3, #otf.encoding<f32>>) -> tensor<4x3xf32>
  return
}
