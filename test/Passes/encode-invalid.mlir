// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -verify-diagnostics --otf-encode

// expected-error@+1 {{has outliers, and a plain encoding, which keeps every column anyway}}
otf.weight @q : tensor<8x32xf32> = #otf.blob<file = 0, offset = 0, length = 1024, type = f32>
    {encoding = #otf.encoding<f16>, outliers = #otf.outliers<[1]>}
func.func @outliers_of_a_plain_weight() {
  %q = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
  return
}
