// SPDX-License-Identifier: Apache-2.0
// RUN: otf-opt %s -split-input-file --otf-choose-bits="linear=int4 vocabulary=int8 group=64" | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-choose-bits="linear=int4 vocabulary=int8 group=64" \
// RUN:   --otf-choose-bits="linear=f16 vocabulary=f16" | FileCheck %s
// RUN: otf-opt %s -split-input-file --otf-choose-bits="linear=f16 vocabulary=f32" | FileCheck %s --check-prefix=PLAIN
// RUN: otf-opt %s -split-input-file --otf-choose-bits="linear=planes3x2 vocabulary=int8 group=0 vocabulary-group=32" \
// RUN:   | FileCheck %s --check-prefix=PLANES
// RUN: otf-opt %s -split-input-file --otf-choose-bits="linear=ternary_sign vocabulary=f16 group=64 coded-head joint-fit" \
// RUN:   | FileCheck %s --check-prefix=HEAD

// The first two expect the same text: a second run keeps what the first decided.

// CHECK-LABEL: otf.weight @hidden
// CHECK-SAME: {encoding = #otf.encoding<int4, group = 64>}
// HEAD: otf.weight @hidden {{.*}} {encoding = #otf.encoding<ternary_sign, group = 64>, joint_fit}
// HEAD: otf.weight @embedded {{.*}} {encoding = #otf.encoding<f16>, vocabulary}
// HEAD: otf.weight @head {{.*}} {encoding = #otf.encoding<ternary_sign, group = 64>, joint_fit, otf.as_linear, vocabulary}
// PLAIN-LABEL: otf.weight @hidden
// PLAIN-SAME: {encoding = #otf.encoding<f16>}
// PLANES-LABEL: otf.weight @hidden
// PLANES-SAME: {encoding = #otf.encoding<planes3x2>}
otf.weight @hidden : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>
// CHECK: otf.weight @embedded {{.*}} {encoding = #otf.encoding<int8, group = 64>, vocabulary}
otf.weight @embedded : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
// CHECK: otf.weight @head {{.*}} {encoding = #otf.encoding<int8, group = 64>, vocabulary}
// PLANES: otf.weight @head {{.*}} {encoding = #otf.encoding<int8, group = 32>, vocabulary}
// PLAIN: otf.weight @head {{.*}} {encoding = #otf.encoding<f32>, vocabulary}
otf.weight @head : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
// A choice made by hand stands.
// CHECK: otf.weight @by_hand {{.*}} {encoding = #otf.encoding<codebook2, group = 32>}
otf.weight @by_hand : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>
    {encoding = #otf.encoding<codebook2, group = 32>}
// What no linear and no embedding reads has no encoding.
// CHECK: otf.weight @gain : tensor<32xf32> = <file = 0, offset = 0, length = 128, type = f32>{{$}}
otf.weight @gain : tensor<32xf32> = #otf.blob<file = 0, offset = 0, length = 128, type = f32>
// CHECK: otf.weight @unused : tensor<32x32xf32> = <file = 0, offset = 0, length = 4096, type = f32>{{$}}
otf.weight @unused : tensor<32x32xf32> = #otf.blob<file = 0, offset = 0, length = 4096, type = f32>

// The head's result goes out through a reshape and a cast; the hidden one's through a norm.
func.func @main(%ids: tensor<4xi64>) -> (tensor<1x4x100xf16>, tensor<4x32xf32>) {
  %table = otf.use @embedded : !otf.matrix<100x32, #otf.encoding<f32>>
  %x = otf.embedding %ids, %table : (tensor<4xi64>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %w = otf.use @hidden : !otf.matrix<32x32, #otf.encoding<f32>>
  %h = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<32x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %v = otf.use @by_hand : !otf.matrix<32x32, #otf.encoding<f32>>
  %i = otf.linear %h, %v : (tensor<4x32xf32>, !otf.matrix<32x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %g = otf.use @gain : tensor<32xf32>
  %n = otf.norm rms %i scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
  %u = otf.use @head : !otf.matrix<100x32, #otf.encoding<f32>>
  %l = otf.linear %n, %u : (tensor<4x32xf32>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x100xf32>
  %r = otf.reshape %l : tensor<4x100xf32> -> tensor<1x4x100xf32>
  %c = tensor.generate {
  ^bb0(%b: index, %s: index, %k: index):
    %e = tensor.extract %r[%b, %s, %k] : tensor<1x4x100xf32>
    %t = arith.truncf %e : f32 to f16
    tensor.yield %t : f16
  } : tensor<1x4x100xf16>
  return %c, %n : tensor<1x4x100xf16>, tensor<4x32xf32>
}

// -----

// A tied table, read by an embedding and as the head, is one vocabulary weight.
// CHECK: otf.weight @tied {{.*}} {encoding = #otf.encoding<int8, group = 64>, vocabulary}
otf.weight @tied : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
func.func @main(%ids: tensor<4xi64>) -> tensor<4x100xf32> {
  %w = otf.use @tied : !otf.matrix<100x32, #otf.encoding<f32>>
  %x = otf.embedding %ids, %w : (tensor<4xi64>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x32xf32>
  %l = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x100xf32>
  return %l : tensor<4x100xf32>
}

// -----

// A head's logits may be moved: the last position alone is returned, as floats of another width.
// CHECK: otf.weight @moved {{.*}} {encoding = #otf.encoding<int8, group = 64>, vocabulary}
otf.weight @moved : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
func.func @main(%x: tensor<4x32xf32>) -> tensor<100xf16> {
  %w = otf.use @moved : !otf.matrix<100x32, #otf.encoding<f32>>
  %l = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x100xf32>
  %r = tensor.generate {
  ^bb0(%k: index):
    %last = arith.constant 3 : index
    %e = tensor.extract %l[%last, %k] : tensor<4x100xf32>
    %t = arith.truncf %e : f32 to f16
    tensor.yield %t : f16
  } : tensor<100xf16>
  return %r : tensor<100xf16>
}

// -----

// What computes with a linear's result makes an activation of it, though nothing else is read.
// CHECK: otf.weight @activated {{.*}} {encoding = #otf.encoding<int4, group = 64>}
otf.weight @activated : tensor<100x32xf32> = #otf.blob<file = 0, offset = 0, length = 12800, type = f32>
func.func @main(%x: tensor<4x32xf32>) -> tensor<4x100xf32> {
  %w = otf.use @activated : !otf.matrix<100x32, #otf.encoding<f32>>
  %l = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<100x32, #otf.encoding<f32>>) -> tensor<4x100xf32>
  %r = tensor.generate {
  ^bb0(%i: index, %k: index):
    %zero = arith.constant 0.0 : f32
    %e = tensor.extract %l[%i, %k] : tensor<4x100xf32>
    %m = arith.maximumf %e, %zero : f32
    tensor.yield %m : f32
  } : tensor<4x100xf32>
  return %r : tensor<4x100xf32>
}

// -----

// A convolution of few columns is not coded; one of more, and a linear on rows, are.
// CHECK: otf.weight @narrow {{.*}} {encoding = #otf.encoding<f32>}
// CHECK: otf.weight @wide {{.*}} {encoding = #otf.encoding<int4, group = 64>}
otf.weight @narrow : tensor<48x48xf32> = #otf.blob<file = 0, offset = 0, length = 9216, type = f32>
otf.weight @wide : tensor<48x432xf32> = #otf.blob<file = 0, offset = 0, length = 82944, type = f32>
func.func @main(%x: tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32> {
  %n = otf.use @narrow : !otf.matrix<48x48, #otf.encoding<f32>>
  %w = otf.use @wide : !otf.matrix<48x432, #otf.encoding<f32>>
  %0 = otf.linear %x, %n : (tensor<1x8x8x48xf32>, !otf.matrix<48x48, #otf.encoding<f32>>) -> tensor<1x8x8x48xf32>
  %1 = otf.linear %0, %w {window = #otf.window<[3, 3] stride [1, 1] dilation [1, 1] before [1, 1]>}
    : (tensor<1x8x8x48xf32>, !otf.matrix<48x432, #otf.encoding<f32>>) -> tensor<1x8x8x48xf32>
  %2 = tensor.generate {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    %e = tensor.extract %1[%a, %b, %c, %d] : tensor<1x8x8x48xf32>
    %f = arith.negf %e : f32
    tensor.yield %f : f32
  } : tensor<1x8x8x48xf32>
  return %2 : tensor<1x8x8x48xf32>
}
