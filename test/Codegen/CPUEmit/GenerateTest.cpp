// SPDX-License-Identifier: Apache-2.0
//
// tensor.generate: every kind of body that importing and fusing produce, on ragged sizes.

#include "test/Codegen/CPUEmit/Harness.h"

#include <algorithm>
#include <array>

namespace otf::test {
namespace {

class Generate : public LevelTest {};
OTF_LEVELS(Generate);

using Half = _Float16;

const std::string kernels = R"mlir(
plan.kernel @gelu(%x: tensor<?x37xf32, #otf.dims<"d0">>) -> tensor<?x37xf32, #otf.dims<"d0">> {
  %half = arith.constant 5.0e-01 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.707106769 : f32
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %v = tensor.extract %x[%i, %j] : tensor<?x37xf32, #otf.dims<"d0">>
    %s = arith.mulf %v, %root : f32
    %e = math.erf %s : f32
    %a = arith.addf %e, %one : f32
    %h = arith.mulf %v, %half : f32
    %r = arith.mulf %h, %a : f32
    tensor.yield %r : f32
  } : tensor<?x37xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x37xf32, #otf.dims<"d0">>
}
plan.kernel @broadcast(%a: tensor<?x?x37xf32, #otf.dims<"d0", "d1">>, %b: tensor<?x1xf32, #otf.dims<"d1">>, %s: tensor<f32>)
    -> tensor<?x?x37xf32, #otf.dims<"d0", "d1">> {
  %n = otf.size "d0"
  %m = otf.size "d1"
  %zero = arith.constant 0 : index
  %y = tensor.generate %n, %m {
  ^bb0(%i: index, %j: index, %k: index):
    %u = tensor.extract %a[%i, %j, %k] : tensor<?x?x37xf32, #otf.dims<"d0", "d1">>
    %v = tensor.extract %b[%j, %zero] : tensor<?x1xf32, #otf.dims<"d1">>
    %w = tensor.extract %s[] : tensor<f32>
    %p = arith.mulf %u, %v : f32
    %r = arith.addf %p, %w : f32
    tensor.yield %r : f32
  } : tensor<?x?x37xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x37xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @window(%a: tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>) -> tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">> {
  %n = otf.size "d0"
  %h = otf.size "d1"
  %w = otf.size "d2"
  %y = tensor.generate %n, %h, %w {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %nothing = arith.constant 0.0 : f32
    %some = arith.cmpi slt, %zero, %h : index
    %r = scf.if %some -> (f32) {
      %j1 = arith.subi %j, %one : index
      %up = arith.maxsi %j1, %zero : index
      %in = arith.cmpi sle, %zero, %j1 : index
      %k1 = arith.subi %k, %one : index
      %left = arith.maxsi %k1, %zero : index
      %k2 = arith.addi %k, %one : index
      %last = arith.subi %w, %one : index
      %right = arith.minsi %k2, %last : index
      %u = tensor.extract %a[%i, %up, %k, %l] : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
      %us = arith.select %in, %u, %nothing : f32
      %v = tensor.extract %a[%i, %j, %left, %l] : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
      %c = tensor.extract %a[%i, %j, %k, %l] : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
      %x = tensor.extract %a[%i, %j, %right, %l] : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
      %s1 = arith.addf %us, %v : f32
      %s2 = arith.subf %s1, %c : f32
      %s3 = arith.addf %s2, %x : f32
      scf.yield %s3 : f32
    } else {
      scf.yield %nothing : f32
    }
    tensor.yield %r : f32
  } : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
  plan.return %y : tensor<?x?x?x5xf32, #otf.dims<"d0", "d1", "d2">>
}
plan.kernel @transpose(%a: tensor<?x5x?x3xf32, #otf.dims<"d0", "d1">>) -> tensor<3x?x5x?xf32, #otf.dims<"d1", "d0">> {
  %n = otf.size "d0"
  %m = otf.size "d1"
  %y = tensor.generate %m, %n {
  ^bb0(%l: index, %k: index, %j: index, %i: index):
    %u = tensor.extract %a[%i, %j, %k, %l] : tensor<?x5x?x3xf32, #otf.dims<"d0", "d1">>
    tensor.yield %u : f32
  } : tensor<3x?x5x?xf32, #otf.dims<"d1", "d0">>
  plan.return %y : tensor<3x?x5x?xf32, #otf.dims<"d1", "d0">>
}
plan.kernel @reverse(%a: tensor<?xi64, #otf.dims<"d0">>) -> tensor<?xi64, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %last = otf.size "d0 - 1"
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %j = arith.subi %last, %i : index
    %u = tensor.extract %a[%j] : tensor<?xi64, #otf.dims<"d0">>
    tensor.yield %u : i64
  } : tensor<?xi64, #otf.dims<"d0">>
  plan.return %y : tensor<?xi64, #otf.dims<"d0">>
}
plan.kernel @concat(%a: tensor<?x3xf32, #otf.dims<"d0">>, %b: tensor<?x7xf32, #otf.dims<"d0">>) -> tensor<?x10xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %three = arith.constant 3 : index
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %first = arith.cmpi slt, %j, %three : index
    %r = scf.if %first -> (f32) {
      %u = tensor.extract %a[%i, %j] : tensor<?x3xf32, #otf.dims<"d0">>
      scf.yield %u : f32
    } else {
      %k = arith.subi %j, %three : index
      %u = tensor.extract %b[%i, %k] : tensor<?x7xf32, #otf.dims<"d0">>
      scf.yield %u : f32
    }
    tensor.yield %r : f32
  } : tensor<?x10xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x10xf32, #otf.dims<"d0">>
}
plan.kernel @concat_select(%a: tensor<?x3xf32, #otf.dims<"d0">>, %b: tensor<?x7xf32, #otf.dims<"d0">>) -> tensor<?x10xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %first = arith.cmpi slt, %j, %three : index
    %ja = arith.minsi %j, %two : index
    %d = arith.subi %j, %three : index
    %jb = arith.maxsi %d, %zero : index
    %u = tensor.extract %a[%i, %ja] : tensor<?x3xf32, #otf.dims<"d0">>
    %v = tensor.extract %b[%i, %jb] : tensor<?x7xf32, #otf.dims<"d0">>
    %r = arith.select %first, %u, %v : f32
    tensor.yield %r : f32
  } : tensor<?x10xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x10xf32, #otf.dims<"d0">>
}
plan.kernel @log_sum_exp(%x: tensor<?x?xf32, #otf.dims<"d0", "d1">>) -> tensor<?x1xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %m = otf.size "d1"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.constant 0xFF800000 : f32
  %nothing = arith.constant 0.0 : f32
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %max = scf.for %k = %zero to %m step %one iter_args(%c = %low) -> (f32) {
      %v = tensor.extract %x[%i, %k] : tensor<?x?xf32, #otf.dims<"d0", "d1">>
      %d = arith.maximumf %c, %v : f32
      scf.yield %d : f32
    }
    %sum = scf.for %k = %zero to %m step %one iter_args(%c = %nothing) -> (f32) {
      %v = tensor.extract %x[%i, %k] : tensor<?x?xf32, #otf.dims<"d0", "d1">>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %s = arith.addf %c, %e : f32
      scf.yield %s : f32
    }
    %l = math.log %sum : f32
    %r = arith.addf %l, %max : f32
    tensor.yield %r : f32
  } : tensor<?x1xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x1xf32, #otf.dims<"d0">>
}
plan.kernel @argmax(%x: tensor<?x?xf32, #otf.dims<"d0", "d1">>) -> tensor<?xi64, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %m = otf.size "d1"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.constant 0xFF800000 : f32
  %y = tensor.generate %n {
  ^bb0(%i: index):
    %best:2 = scf.for %k = %zero to %m step %one iter_args(%c = %low, %at = %zero) -> (f32, index) {
      %v = tensor.extract %x[%i, %k] : tensor<?x?xf32, #otf.dims<"d0", "d1">>
      %more = arith.cmpf ogt, %v, %c : f32
      %d = arith.select %more, %v, %c : f32
      %b = arith.select %more, %k, %at : index
      scf.yield %d, %b : f32, index
    }
    %r = arith.index_cast %best#1 : index to i64
    tensor.yield %r : i64
  } : tensor<?xi64, #otf.dims<"d0">>
  plan.return %y : tensor<?xi64, #otf.dims<"d0">>
}
plan.kernel @gather(%ids: tensor<?xi64, #otf.dims<"d0">>, %t: tensor<50x9xf32>) -> tensor<?x9xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %rows = arith.constant 50 : index
  %zero = arith.constant 0 : index
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %id = tensor.extract %ids[%i] : tensor<?xi64, #otf.dims<"d0">>
    %k = arith.index_cast %id : i64 to index
    %negative = arith.cmpi slt, %k, %zero : index
    %wrapped = arith.addi %k, %rows : index
    %row = arith.select %negative, %wrapped, %k : index
    %u = tensor.extract %t[%row, %j] : tensor<50x9xf32>
    tensor.yield %u : f32
  } : tensor<?x9xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x9xf32, #otf.dims<"d0">>
}
plan.kernel @causal(%keep: tensor<?x?xi1, #otf.dims<"d0", "d1">>) -> tensor<?x?xi1, #otf.dims<"d0", "d1">> {
  %n = otf.size "d0"
  %m = otf.size "d1"
  %past = otf.size "d1 - d0"
  %y = tensor.generate %n, %m {
  ^bb0(%i: index, %j: index):
    %last = arith.addi %i, %past : index
    %seen = arith.cmpi sle, %j, %last : index
    %k = tensor.extract %keep[%i, %j] : tensor<?x?xi1, #otf.dims<"d0", "d1">>
    %r = arith.andi %seen, %k : i1
    tensor.yield %r : i1
  } : tensor<?x?xi1, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?xi1, #otf.dims<"d0", "d1">>
}
plan.kernel @to_single(%h: tensor<?xf16, #otf.dims<"d0">>, %b: tensor<?xbf16, #otf.dims<"d0">>, %i: tensor<?xi32, #otf.dims<"d0">>, %l: tensor<?xi8, #otf.dims<"d0">>)
    -> tensor<?x4xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%k: index, %c: index):
    %0 = tensor.extract %h[%k] : tensor<?xf16, #otf.dims<"d0">>
    %1 = tensor.extract %b[%k] : tensor<?xbf16, #otf.dims<"d0">>
    %2 = tensor.extract %i[%k] : tensor<?xi32, #otf.dims<"d0">>
    %3 = tensor.extract %l[%k] : tensor<?xi8, #otf.dims<"d0">>
    %a = arith.extf %0 : f16 to f32
    %d = arith.extf %1 : bf16 to f32
    %e = arith.sitofp %2 : i32 to f32
    %f = arith.uitofp %3 : i8 to f32
    %r = scf.index_switch %c -> f32
    case 0 { scf.yield %a : f32 }
    case 1 { scf.yield %d : f32 }
    case 2 { scf.yield %e : f32 }
    default { scf.yield %f : f32 }
    tensor.yield %r : f32
  } : tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
plan.kernel @to_half(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?xf16, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%k: index):
    %0 = tensor.extract %x[%k] : tensor<?xf32, #otf.dims<"d0">>
    %r = arith.truncf %0 : f32 to f16
    tensor.yield %r : f16
  } : tensor<?xf16, #otf.dims<"d0">>
  plan.return %y : tensor<?xf16, #otf.dims<"d0">>
}
plan.kernel @double_to_half(%x: tensor<?xf64, #otf.dims<"d0">>) -> tensor<?xf16, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%k: index):
    %0 = tensor.extract %x[%k] : tensor<?xf64, #otf.dims<"d0">>
    %1 = math.exp %0 : f64
    %r = arith.truncf %1 : f64 to f16
    tensor.yield %r : f16
  } : tensor<?xf16, #otf.dims<"d0">>
  plan.return %y : tensor<?xf16, #otf.dims<"d0">>
}
plan.kernel @to_brain(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?xbf16, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%k: index):
    %0 = tensor.extract %x[%k] : tensor<?xf32, #otf.dims<"d0">>
    %r = arith.truncf %0 : f32 to bf16
    tensor.yield %r : bf16
  } : tensor<?xbf16, #otf.dims<"d0">>
  plan.return %y : tensor<?xbf16, #otf.dims<"d0">>
}
plan.kernel @to_integer(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<?xi32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %y = tensor.generate %n {
  ^bb0(%k: index):
    %0 = tensor.extract %x[%k] : tensor<?xf32, #otf.dims<"d0">>
    %r = arith.fptosi %0 : f32 to i32
    tensor.yield %r : i32
  } : tensor<?xi32, #otf.dims<"d0">>
  plan.return %y : tensor<?xi32, #otf.dims<"d0">>
}
plan.kernel @constants(%x: tensor<?x4xf32, #otf.dims<"d0">>) -> tensor<?x4xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %scale = arith.constant dense<[1.5, -2.0, 0.25, 8.0]> : tensor<4xf32>
  %keep = arith.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %order = arith.constant dense<[3, 0, 2, 1]> : tensor<4xi64>
  %same = arith.constant dense<7.0> : tensor<4xf32>
  %two = arith.constant 2 : index
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %o = tensor.extract %order[%j] : tensor<4xi64>
    %k = arith.index_cast %o : i64 to index
    %v = tensor.extract %x[%i, %k] : tensor<?x4xf32, #otf.dims<"d0">>
    %s = tensor.extract %scale[%j] : tensor<4xf32>
    %p = arith.mulf %v, %s : f32
    %row = arith.divui %j, %two : index
    %column = arith.remui %j, %two : index
    %c = tensor.extract %keep[%row, %column] : tensor<2x2xi1>
    %d = tensor.extract %same[%j] : tensor<4xf32>
    %r = arith.select %c, %p, %d : f32
    tensor.yield %r : f32
  } : tensor<?x4xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xf32, #otf.dims<"d0">>
}
plan.kernel @functions(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<13x?xf32, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %three = arith.constant 3.0 : f32
  %odd = arith.constant 2.7 : f32
  %y = tensor.generate %n {
  ^bb0(%f: index, %k: index):
    %v = tensor.extract %x[%k] : tensor<?xf32, #otf.dims<"d0">>
    %a = math.absf %v : f32
    %r = scf.index_switch %f -> f32
    case 0 { %0 = math.exp %v : f32
      scf.yield %0 : f32 }
    case 1 { %0 = math.tanh %v : f32
      scf.yield %0 : f32 }
    case 2 { %0 = math.erf %v : f32
      scf.yield %0 : f32 }
    case 3 { %0 = math.log %a : f32
      scf.yield %0 : f32 }
    case 4 { %0 = math.sin %v : f32
      scf.yield %0 : f32 }
    case 5 { %0 = math.cos %v : f32
      scf.yield %0 : f32 }
    case 6 { %0 = math.sqrt %a : f32
      scf.yield %0 : f32 }
    case 7 { %0 = math.rsqrt %a : f32
      scf.yield %0 : f32 }
    case 8 { %0 = math.powf %v, %three : f32
      scf.yield %0 : f32 }
    case 9 { %0 = math.powf %a, %odd : f32
      scf.yield %0 : f32 }
    case 10 { %0 = math.roundeven %v : f32
      scf.yield %0 : f32 }
    case 11 { %0 = math.floor %v : f32
      scf.yield %0 : f32 }
    default { %0 = math.atan %v : f32
      scf.yield %0 : f32 }
    tensor.yield %r : f32
  } : tensor<13x?xf32, #otf.dims<"d0">>
  plan.return %y : tensor<13x?xf32, #otf.dims<"d0">>
}
plan.kernel @division(%x: tensor<?x2xi64, #otf.dims<"d0">>) -> tensor<?x3xi64, #otf.dims<"d0">> {
  %n = otf.size "d0"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %y = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %a = tensor.extract %x[%i, %zero] : tensor<?x2xi64, #otf.dims<"d0">>
    %b = tensor.extract %x[%i, %one] : tensor<?x2xi64, #otf.dims<"d0">>
    %r = scf.index_switch %j -> i64
    case 0 { %0 = arith.floordivsi %a, %b : i64
      scf.yield %0 : i64 }
    case 1 { %0 = arith.ceildivsi %a, %b : i64
      scf.yield %0 : i64 }
    default { %0 = arith.remsi %a, %b : i64
      scf.yield %0 : i64 }
    tensor.yield %r : i64
  } : tensor<?x3xi64, #otf.dims<"d0">>
  plan.return %y : tensor<?x3xi64, #otf.dims<"d0">>
}
plan.kernel @scalar(%x: tensor<?xf32, #otf.dims<"d0">>) -> tensor<f32> {
  %m = otf.size "d0"
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  %y = tensor.generate {
    %sum = scf.for %k = %zero to %m step %one iter_args(%c = %nothing) -> (f32) {
      %v = tensor.extract %x[%k] : tensor<?xf32, #otf.dims<"d0">>
      %s = arith.addf %c, %v : f32
      scf.yield %s : f32
    }
    tensor.yield %sum : f32
  } : tensor<f32>
  plan.return %y : tensor<f32>
}
)mlir";

const int64_t sizes[] = {0, 1, 2, 7, 8, 33};

/// Neighbours are computed four at a time; pieces begin and end anywhere.
TEST_P(Generate, Window) {
  OTF_KERNEL(window, kernels, "window");
  for (auto [n, h, w] : {std::array<int64_t, 3>{1, 1, 1}, {2, 3, 4}, {1, 2, 11}, {2, 2, 3}}) {
    std::vector<float> a = floats(n * h * w * 5);
    auto y = run<float>(window, {a.data()}, {n, h, w}, n * h * w, a.size());
    for (int64_t i = 0; i < int64_t(y.size()); ++i) {
      int64_t l = i % 5, k = i / 5 % w, row = i / 5 / w;
      auto at = [&](int64_t row, int64_t k) { return a[size_t((row * w + k) * 5 + l)]; };
      float up = row % h ? at(row - 1, k) : 0;
      ASSERT_EQ(y[size_t(i)], up + at(row, std::max<int64_t>(k - 1, 0)) - at(row, k) + at(row, std::min(k + 1, w - 1)));
    }
  }
}

TEST_P(Generate, ElementwiseFunction) {
  OTF_KERNEL(gelu, kernels, "gelu");
  for (int64_t n : sizes) {
    std::vector<float> x = floats(n * 37, -6, 6);
    auto y = run<float>(gelu, {x.data()}, {n}, n, n * 37);
    for (size_t i = 0; i < y.size(); ++i)
      expectNear(y[i], 0.5 * x[i] * (1 + std::erf(x[i] / std::sqrt(2.0))), 2e-6, std::to_string(i));
  }
}

TEST_P(Generate, Broadcast) {
  OTF_KERNEL(broadcast, kernels, "broadcast");
  for (int64_t n : sizes)
    for (int64_t m : {1, 3, 5}) {
      std::vector<float> a = floats(n * m * 37), b = floats(m), s = floats(1);
      auto y = run<float>(broadcast, {a.data(), b.data(), s.data()}, {n, m}, n * m, n * m * 37);
      for (int64_t i = 0; i < n * m * 37; ++i)
        expectNear(y[i], double(a[i]) * b[i / 37 % m] + s[0], 1e-6, std::to_string(i));
    }
}

TEST_P(Generate, Transpose) {
  OTF_KERNEL(transpose, kernels, "transpose");
  for (int64_t n : sizes)
    for (int64_t m : {1, 4, 9}) {
      std::vector<float> a = floats(n * 5 * m * 3);
      auto y = run<float>(transpose, {a.data()}, {n, m}, 3 * m * 5, n * 5 * m * 3);
      for (int64_t l = 0; l < 3; ++l)
        for (int64_t k = 0; k < m; ++k)
          for (int64_t j = 0; j < 5; ++j)
            for (int64_t i = 0; i < n; ++i)
              ASSERT_EQ(y[((l * m + k) * 5 + j) * n + i], a[((i * 5 + j) * m + k) * 3 + l]);
    }
}

TEST_P(Generate, ReversedSlice) {
  OTF_KERNEL(reverse, kernels, "reverse");
  for (int64_t n : sizes) {
    std::vector<int64_t> a(n);
    for (int64_t &v : a)
      v = int64_t(random()) << 20;
    auto y = run<int64_t>(reverse, {a.data()}, {n}, 1, n);
    std::reverse(a.begin(), a.end());
    EXPECT_EQ(y, a);
  }
}

TEST_P(Generate, Concatenation) {
  for (const char *name : {"concat", "concat_select"}) {
    OTF_KERNEL(concat, kernels, name);
    for (int64_t n : sizes) {
      std::vector<float> a = floats(n * 3), b = floats(n * 7);
      auto y = run<float>(concat, {a.data(), b.data()}, {n}, n, n * 10);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < 10; ++j)
          ASSERT_EQ(y[i * 10 + j], j < 3 ? a[i * 3 + j] : b[i * 7 + j - 3]);
    }
  }
}

TEST_P(Generate, Reductions) {
  OTF_KERNEL(logSumExp, kernels, "log_sum_exp");
  OTF_KERNEL(argmax, kernels, "argmax");
  for (int64_t n : sizes)
    for (int64_t m : {1, 7, 8, 100}) {
      std::vector<float> x = floats(n * m, -30, 30);
      auto y = run<float>(logSumExp, {x.data()}, {n, m}, n, n);
      auto best = run<int64_t>(argmax, {x.data()}, {n, m}, 1, n);
      for (int64_t i = 0; i < n; ++i) {
        auto row = x.begin() + i * m;
        double sum = 0;
        for (int64_t k = 0; k < m; ++k)
          sum += std::exp(double(row[k]));
        expectNear(y[i], std::log(sum), 1e-5, std::to_string(i));
        EXPECT_EQ(best[i], std::max_element(row, row + m) - row);
      }
    }
}

TEST_P(Generate, Gather) {
  OTF_KERNEL(gather, kernels, "gather");
  std::vector<float> table = floats(50 * 9);
  for (int64_t n : sizes) {
    std::vector<int64_t> ids(n);
    for (int64_t &id : ids)
      id = below(100) - 50;
    auto y = run<float>(gather, {ids.data(), table.data()}, {n}, n, n * 9);
    for (int64_t i = 0; i < n * 9; ++i) {
      int64_t row = ids[i / 9] < 0 ? ids[i / 9] + 50 : ids[i / 9];
      ASSERT_EQ(y[i], table[row * 9 + i % 9]);
    }
  }
}

TEST_P(Generate, MaskOfBytes) {
  OTF_KERNEL(causal, kernels, "causal");
  for (int64_t n : sizes)
    for (int64_t past : {0, 5, 31}) {
      int64_t m = n + past;
      std::vector<uint8_t> keep(n * m);
      for (uint8_t &k : keep)
        k = random() % 2 ? 1 + random() % 255 : 0; // any nonzero byte is true
      auto y = run<uint8_t>(causal, {keep.data()}, {n, m}, n, n * m);
      for (int64_t i = 0; i < n * m; ++i)
        ASSERT_EQ(y[i], i % m <= i / m + past && keep[i] != 0);
    }
}

uint16_t brainOf(float value) { // to nearest even
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TEST_P(Generate, Casts) {
  OTF_KERNEL(toSingle, kernels, "to_single");
  OTF_KERNEL(toHalf, kernels, "to_half");
  OTF_KERNEL(toBrain, kernels, "to_brain");
  OTF_KERNEL(toInteger, kernels, "to_integer");
  OTF_KERNEL(doubleToHalf, kernels, "double_to_half");
  for (int64_t n : sizes) {
    std::vector<float> x = floats(n, -900, 900);
    auto half = run<Half>(toHalf, {x.data()}, {n}, 1, n);
    auto brain = run<uint16_t>(toBrain, {x.data()}, {n}, 1, n);
    auto integer = run<int32_t>(toInteger, {x.data()}, {n}, 1, n);
    std::vector<int8_t> bytes(n);
    std::vector<double> wide(n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(half[i], Half(x[i]));
      ASSERT_EQ(brain[i], brainOf(x[i]));
      ASSERT_EQ(integer[i], int32_t(x[i]));
      bytes[i] = int8_t(random());
      wide[i] = x[i] / 100;
    }
    auto y = run<float>(toSingle, {half.data(), brain.data(), integer.data(), bytes.data()}, {n}, n,
                        n * 4);
    auto narrow = run<Half>(doubleToHalf, {wide.data()}, {n}, 1, n);
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits = uint32_t(brain[i]) << 16;
      float widened;
      std::memcpy(&widened, &bits, 4);
      ASSERT_EQ(y[4 * i], float(half[i]));
      ASSERT_EQ(y[4 * i + 1], widened);
      ASSERT_EQ(y[4 * i + 2], float(integer[i]));
      ASSERT_EQ(y[4 * i + 3], float(uint8_t(bytes[i])));
      ASSERT_NEAR(float(narrow[i]), std::exp(wide[i]), 0.001 * std::exp(wide[i]));
    }
  }
}

TEST_P(Generate, DenseConstants) {
  OTF_KERNEL(constants, kernels, "constants");
  const float scale[] = {1.5, -2, 0.25, 8};
  const int order[] = {3, 0, 2, 1};
  for (int64_t n : sizes) {
    std::vector<float> x = floats(n * 4);
    auto y = run<float>(constants, {x.data()}, {n}, n, n * 4);
    for (int64_t i = 0; i < n * 4; ++i)
      ASSERT_EQ(y[i], i % 4 == 1 ? 7.0f : x[i / 4 * 4 + order[i % 4]] * scale[i % 4]);
  }
}

TEST_P(Generate, MathFunctions) {
  OTF_KERNEL(functions, kernels, "functions");
  int64_t n = 203;
  std::vector<float> x = floats(n, -8, 8);
  x[0] = 0;
  auto y = run<float>(functions, {x.data()}, {n}, 13, 13 * n);
  for (int64_t i = 0; i < n; ++i) {
    double v = x[i], a = std::fabs(v);
    const double expected[] = {
        std::exp(v),       std::tanh(v),  std::erf(v),      std::log(a), std::sin(v),
        std::cos(v),       std::sqrt(a),  1 / std::sqrt(a), v * v * v,   std::pow(a, double(2.7f)),
        std::nearbyint(v), std::floor(v), std::atan(v)};
    for (int f = 0; f < 13; ++f)
      expectNear(y[f * n + i], expected[f], 1e-6 + 5e-7 * std::fabs(expected[f]),
                 "function " + std::to_string(f) + " of " + std::to_string(v));
  }
}

TEST_P(Generate, IntegerDivision) {
  OTF_KERNEL(division, kernels, "division");
  int64_t n = 100;
  std::vector<int64_t> x(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    x[2 * i] = below(201) - 100;
    x[2 * i + 1] = (below(9) + 1) * (random() % 2 ? 1 : -1);
  }
  auto y = run<int64_t>(division, {x.data()}, {n}, n, 3 * n);
  for (int64_t i = 0; i < n; ++i) {
    double quotient = double(x[2 * i]) / double(x[2 * i + 1]);
    ASSERT_EQ(y[3 * i], int64_t(std::floor(quotient)));
    ASSERT_EQ(y[3 * i + 1], int64_t(std::ceil(quotient)));
    ASSERT_EQ(y[3 * i + 2], x[2 * i] % x[2 * i + 1]);
  }
}

TEST_P(Generate, RankZero) {
  OTF_KERNEL(scalar, kernels, "scalar");
  for (int64_t n : sizes) {
    std::vector<float> x = floats(n);
    double sum = 0;
    for (float v : x)
      sum += v;
    expectNear(run<float>(scalar, {x.data()}, {n}, 1, 1)[0], sum, 1e-5, std::to_string(n));
  }
}

} // namespace
} // namespace otf::test
