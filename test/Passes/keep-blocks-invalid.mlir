// SPDX-License-Identifier: Apache-2.0
// RUN: %not otf-opt %s --otf-keep-blocks=first=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: %not otf-opt %s --otf-keep-blocks=last=2 2>&1 | FileCheck %s --check-prefix=NOTHING

// NEGATIVE: error: otf-keep-blocks: first and last must not be negative, got -1 and 0
// NOTHING: error: otf-keep-blocks: finds no blocks, of which the first 0 and the last 2 could stay f16
module {}
