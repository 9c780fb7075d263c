// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-activations | FileCheck %s
// RUN: otf-opt %s --otf-choose-activations=kind=row | FileCheck %s --check-prefix=ROW
// RUN: %not otf-opt %s --otf-choose-activations=kind=int8 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: otf-choose-activations: kind must be f32 or row, got "int8"

// CHECK: otf.weight @w {{.*}} {encoding = #otf.encoding<int4, group = 32>, float_activations}
// ROW: otf.weight @w {{.*}} {encoding = #otf.encoding<int4, group = 32>, otf.row_activations}
otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int4, group = 32>}
// Kernels of floats know integers only.
// CHECK: otf.weight @signs {{.*}} {encoding = #otf.encoding<ternary_sign, group = 32>}
// ROW: otf.weight @signs {{.*}}, otf.row_activations}
otf.weight @signs : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<ternary_sign, group = 32>}
// Outliers, plain weights and tables are left alone.
// CHECK-NOT: float_activations
// ROW-NOT: otf.row_activations
otf.weight @outliers : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int4, group = 32>, outliers = #otf.outliers<[1]>}
otf.weight @plain : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<f16>}
otf.weight @table : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32> {encoding = #otf.encoding<int8, group = 32>, vocabulary}
