// SPDX-License-Identifier: Apache-2.0
// REQUIRES: weights
// RUN: mkdir -p %t && %python %S/Inputs/columns.py %t/w.bin && %python %S/Inputs/statistics.py %t/s.safetensors
// RUN: otf-opt %s --otf-choose-smoothing="statistics=%t/s.safetensors" | FileCheck %s
// RUN: otf-opt %s --otf-choose-smoothing="power=1 center model=%t/model.onnx statistics=%t/s.safetensors" | FileCheck %s --check-prefix=CENTER
// RUN: %not otf-opt %s --otf-choose-smoothing 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: %not otf-opt %s --otf-choose-smoothing="power=3 statistics=%t/s.safetensors" 2>&1 | FileCheck %s --check-prefix=POWER

// NONE: error: otf-choose-smoothing: needs the statistics of a calibration
// POWER: error: otf-choose-smoothing: power must be from 0 to 2, got 3{{.*}}

module attributes {onnx.folder = "/nowhere", onnx.files = ["w.bin"]} {
  // Means are 0, and deviations 1, 8, 0.25, 1 and 4; units are their roots.
  // CHECK: otf.weight @w {{.*}}, otf.unit = dense<[1.000000e+00, 2.82842708, 5.000000e-01, 1.000000e+00, 2.000000e+00]> : tensor<5xf32>}
  // CENTER: otf.weight @w {{.*}}, otf.center = dense<0.000000e+00> : tensor<5xf32>, otf.center_products = dense<0.000000e+00> : tensor<3xf32>, otf.unit = dense<[1.000000e+00, 8.000000e+00, 2.500000e-01, 1.000000e+00, 4.000000e+00]> : tensor<5xf32>}
  otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int4, group = 32>}
  // What calibration has not seen, what is plain, and a table stay as they are.
  // CHECK-NOT: otf.unit
  otf.weight @unseen : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int4, group = 32>}
  otf.weight @plain : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<f16>}
  otf.weight @table : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int4, group = 32>, vocabulary}
}
