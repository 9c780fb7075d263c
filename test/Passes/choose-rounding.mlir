// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s --otf-choose-rounding | FileCheck %s
// RUN: otf-opt %s --otf-choose-rounding=damping=0.05 | FileCheck %s --check-prefix=DAMPED
// RUN: %not otf-opt %s --otf-choose-rounding=damping=0 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: otf-choose-rounding: damping must be above 0 and at most 1, got 0

// CHECK: otf.weight @w {{.*}} {encoding = #otf.encoding<int4, group = 32>, feedback = 1.000000e-02 : f64}
// DAMPED: otf.weight @w {{.*}} feedback = 5.000000e-02 : f64}
otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
    {encoding = #otf.encoding<int4, group = 32>}
// A decision that stands is kept.
// DAMPED: otf.weight @decided {{.*}} feedback = 1.000000e-01 : f64}
otf.weight @decided : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
    {encoding = #otf.encoding<int4, group = 32>, feedback = 0.1 : f64}
// Plain, a table, and undecided: nothing to choose.
// CHECK: otf.weight @plain {{.*}} {encoding = #otf.encoding<f16>}
otf.weight @plain : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
    {encoding = #otf.encoding<f16>}
// CHECK: otf.weight @table {{.*}} {encoding = #otf.encoding<int8, group = 32>, vocabulary}
otf.weight @table : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
    {encoding = #otf.encoding<int8, group = 32>, vocabulary}
// CHECK: otf.weight @undecided {{.*}} type = f32>{{$}}
otf.weight @undecided : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
