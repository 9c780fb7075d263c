// SPDX-License-Identifier: Apache-2.0
// RUN: %not otf-opt %s --otf-choose-bits=linear=int3 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: %not otf-opt %s --otf-choose-bits="linear=int4 group=48" 2>&1 | FileCheck %s --check-prefix=GROUP

// KIND: error: otf-choose-bits: linear must be f32, f16, int8, int4, codebook2, ternary_sign, planes3x1 to planes3x4 or planes4x1 to planes4x3, got "int3"
// GROUP: error: otf-choose-bits: group must be a multiple of 32, or 0 for a whole row, got 48
module {}
