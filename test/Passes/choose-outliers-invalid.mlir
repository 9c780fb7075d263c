// SPDX-License-Identifier: Apache-2.0
// RUN: %not otf-opt %s --otf-choose-outliers=fraction=1.5 2>&1 | FileCheck %s --check-prefix=FRACTION
// RUN: %not otf-opt %s --otf-choose-outliers=fraction=0.5 2>&1 | FileCheck %s --check-prefix=FILES

// FRACTION: error: otf-choose-outliers: fraction must be from 0 to 1, got 1.5
// The module names no files, or this build cannot read any.
// FILES: error: otf-choose-outliers: {{the module names no files|no model is open}}
otf.weight @w : tensor<3x5xf32> = #otf.blob<file = 0, offset = 0, length = 60, type = f32>
    {encoding = #otf.encoding<codebook2, group = 32>}
