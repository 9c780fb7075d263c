// SPDX-License-Identifier: Apache-2.0
// REQUIRES: weights
// RUN: mkdir -p %t && %python %S/Inputs/columns.py %t/w.bin
// RUN: otf-opt %s --otf-choose-outliers="fraction=0.4 model=%t/model.onnx" | FileCheck %s
// RUN: otf-opt %s --otf-choose-outliers="fraction=0.4 model=%t/model.onnx" --otf-choose-outliers="fraction=1.0 model=%t/model.onnx" | FileCheck %s
// RUN: otf-opt %s --otf-choose-outliers="fraction=0.1 model=%t/model.onnx" | FileCheck %s --check-prefix=HALF
// RUN: otf-opt %s --otf-choose-outliers="fraction=0.09 model=%t/model.onnx" | FileCheck %s --check-prefix=NONE
// RUN: %python %S/Inputs/statistics.py %t/s.safetensors
// RUN: otf-opt %s --otf-choose-outliers="fraction=0.4 model=%t/model.onnx statistics=%t/s.safetensors" | FileCheck %s --check-prefix=CALIBRATED

// With statistics the scores are norms times mean |x|: 1.7, 69, 3.9, 0 and 35 for @w, so the largest norm loses. What they do not have is ranked by norms.
// CALIBRATED: otf.weight @w {{.*}} otf.scored_by = "column norm times mean |x|", outliers = #otf.outliers<[1, 4]>}

// Norms of the columns are 3, 75, 243, 0 and 75 (squared). Two of five columns: the largest, and the first of the equal ones.
module attributes {onnx.folder = "/nowhere", onnx.files = ["w.bin"]} {
  // CHECK: otf.weight @w {{.*}} outliers = #otf.outliers<[1, 2]>}
  // 0.1 · 5 + 0.5 is one column, 0.09 · 5 + 0.5 none.
  // HALF: otf.weight @w {{.*}} outliers = #otf.outliers<[2]>}
  // NONE-NOT: outliers = #otf.outliers<[2]>
  otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
      {encoding = #otf.encoding<codebook2, group = 32>}
  // What has outliers keeps them; vocabulary tables and plain weights have none.
  // CHECK: otf.weight @given {{.*}} outliers = #otf.outliers<[0]>}
  otf.weight @given : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
      {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[0]>}
  // CHECK: otf.weight @table {{.*}} {encoding = #otf.encoding<int8, group = 32>, vocabulary}
  otf.weight @table : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
      {encoding = #otf.encoding<int8, group = 32>, vocabulary}
  // CHECK: otf.weight @plain {{.*}} {encoding = #otf.encoding<f16>}
  otf.weight @plain : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
      {encoding = #otf.encoding<f16>}
  // CHECK: otf.weight @undecided {{.*}} type = f32>{{$}}
  otf.weight @undecided : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
}
