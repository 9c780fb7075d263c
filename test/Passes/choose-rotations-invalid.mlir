// SPDX-License-Identifier: Apache-2.0
// RUN: %not otf-opt %s --otf-choose-rotations=kind=fourier 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: %not otf-opt %s --otf-choose-rotations=block=48 2>&1 | FileCheck %s --check-prefix=BLOCK

// KIND: error: otf-choose-rotations: kind must be hadamard or kronecker, got "fourier"
// BLOCK: error: otf-choose-rotations: the block of a rotation must be a power of two of at most 8192, got 48
module {}
