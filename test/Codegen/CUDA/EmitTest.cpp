// SPDX-License-Identifier: Apache-2.0
//
// plan.kernel to CUDA source: what is emitted compiles alone, for every operator that has a kernel
// and for every operation of scalar programs; a kernel that cannot be printed is the host's, with the reason.
#include "dialects/Plan/Plan.h"
#include "lib/Codegen/CUDA/EmitKernel.h"
#include "runtime/CUDA/Nvrtc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace {

using namespace otf;

struct Emitted {
  std::optional<cuda::CudaSource> source;
  std::string diagnostics;
};

Emitted emit(llvm::StringRef text) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<OTFDialect, plan::PlanDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect>();
  Emitted result;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    result.diagnostics += d.str() + "\n";
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return result;
  cuda::CudaSource source = cuda::emitCudaSource(*module);
  for (const auto &[kernel, reason] : source.host)
    result.diagnostics += kernel + ": " + reason + "\n";
  if (source.host.empty())
    result.source = std::move(source);
  return result;
}

/// Emits, and compiles where NVRTC is.
cuda::CudaSource compiled(llvm::StringRef text) {
  Emitted e = emit(text);
  EXPECT_TRUE(e.source.has_value()) << e.diagnostics;
  if (!e.source)
    return {};
  static runtime::Result<std::unique_ptr<runtime::Nvrtc>> nvrtc = runtime::Nvrtc::open();
  if (nvrtc.ok()) {
    auto binary = nvrtc.value()->compile(e.source->text, "sm_90");
    EXPECT_TRUE(binary.ok()) << binary.status().message();
    if (binary.ok()) {
      EXPECT_EQ(binary.value().log.find("warning"), std::string::npos) << binary.value().log;
      for (const runtime::KernelUsage &kernel : binary.value().kernels)
        EXPECT_EQ(kernel.spillStores, 0u) << kernel.name;
    }
  }
  return *e.source;
}

TEST(Emit, NormAndPrologue) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @norm_0(%x: tensor<?x576xf32, #otf.dims<"d0">>, %g: tensor<576xf32>) -> tensor<?x576xf32, #otf.dims<"d0">> {
  %y = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<?x576xf32, #otf.dims<"d0">>, tensor<576xf32>) -> tensor<?x576xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x576xf32, #otf.dims<"d0">>
}
plan.kernel @prologue_0(%x: tensor<?x576xf32, #otf.dims<"d0">>) -> tensor<?x768xi8, #otf.dims<"d0">> {
  %y = otf.prologue layer %x {epsilon = 1.0e-5 : f32} : (tensor<?x576xf32, #otf.dims<"d0">>) -> tensor<?x768xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x768xi8, #otf.dims<"d0">>
}
plan.kernel @prologue_1(%x: tensor<?x576xf32, #otf.dims<"d0">>, %g: tensor<2xf32>) -> tensor<?x768xi8, #otf.dims<"d0">> {
  %y = otf.prologue none %x grid %g : (tensor<?x576xf32, #otf.dims<"d0">>, tensor<2xf32>) -> tensor<?x768xi8, #otf.dims<"d0">>
  plan.return %y : tensor<?x768xi8, #otf.dims<"d0">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 3u);
  EXPECT_EQ(source.kernels[0].name, "norm_0");
  EXPECT_EQ(source.kernels[0].grid.str(), "d0");
}

TEST(Emit, LinearWithBiasAndEpilogue) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @linear_0(%x: tensor<?x?x768xi8, #otf.dims<"d0", "d1">>, %w: !otf.matrix<1536x576, #otf.encoding<int4, group = 32>>,
                      %b: tensor<1536xf32>, %r: tensor<?x?x1536xf32, #otf.dims<"d0", "d1">>) -> tensor<?x?x1536xf32, #otf.dims<"d0", "d1">> {
  %y = otf.linear %x, %w bias %b : (tensor<?x?x768xi8, #otf.dims<"d0", "d1">>, !otf.matrix<1536x576, #otf.encoding<int4, group = 32>>, tensor<1536xf32>)
      -> tensor<?x?x1536xf32, #otf.dims<"d0", "d1">> epilogue {
  ^bb0(%acc: f32, %i: index, %j: index, %n: index):
    %old = tensor.extract %r[%i, %j, %n] : tensor<?x?x1536xf32, #otf.dims<"d0", "d1">>
    %sum = arith.addf %acc, %old : f32
    otf.yield %sum : f32
  }
  plan.return %y : tensor<?x?x1536xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @linear_1(%x: tensor<?x33xf32, #otf.dims<"d0">>, %w: !otf.matrix<10x33, #otf.encoding<f16>>) -> tensor<?x10xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x33xf32, #otf.dims<"d0">>, !otf.matrix<10x33, #otf.encoding<f16>>) -> tensor<?x10xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x10xf32, #otf.dims<"d0">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 2u);
  // The residual is read at the offset that is written: no division recovers i and j.
  EXPECT_NE(source.kernels[0].source.find("[p]"), std::string::npos) << source.kernels[0].source;
}

TEST(Emit, PlanesBringTheirTables) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @linear_0(%x: tensor<?x768xi8, #otf.dims<"d0">>, %w: !otf.matrix<40x576, #otf.encoding<planes3x2>>) -> tensor<?x40xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x768xi8, #otf.dims<"d0">>, !otf.matrix<40x576, #otf.encoding<planes3x2>>) -> tensor<?x40xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x40xf32, #otf.dims<"d0">>
}
plan.kernel @linear_1(%x: tensor<?x100xf32, #otf.dims<"d0">>, %w: !otf.matrix<10x100, #otf.encoding<planes4x3, group = 64>>) -> tensor<?x10xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x100xf32, #otf.dims<"d0">>, !otf.matrix<10x100, #otf.encoding<planes4x3, group = 64>>) -> tensor<?x10xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x10xf32, #otf.dims<"d0">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 2u);
  // Window, group, offset, then the first table: 30, 0, 22, 45.
  EXPECT_NE(source.kernels[0].source.find("otf::Planes<3, 576, 62, 756416542u, "), std::string::npos) << source.kernels[0].source;
  EXPECT_NE(source.kernels[1].source.find("otf::Decoded<otf::Weight<otf::Planes<4, 64, 65, "), std::string::npos)
      << source.kernels[1].source;
}

TEST(Emit, HeadsAndCaches) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @rope_0(%x: tensor<?x?x9x64xf32, #otf.dims<"d0", "d1">>, %c: tensor<1x?x64xf32, #otf.dims<"d1">>, %s: tensor<1x?x64xf32, #otf.dims<"d1">>)
    -> tensor<?x?x9x64xf32, #otf.dims<"d0", "d1">> {
  %y = otf.rope %x, %c, %s {positions_first} : (tensor<?x?x9x64xf32, #otf.dims<"d0", "d1">>, tensor<1x?x64xf32, #otf.dims<"d1">>, tensor<1x?x64xf32, #otf.dims<"d1">>)
      -> tensor<?x?x9x64xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x9x64xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @append_0(%k: !otf.state<3x64xf16>, %x: tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>) -> !otf.state<3x64xf16> {
  %y = otf.append %k, %x {positions_first} : (!otf.state<3x64xf16>, tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>) -> !otf.state<3x64xf16>
  plan.return %y : !otf.state<3x64xf16>
}
plan.kernel @attention_0(%q: tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<3x64xf16>, %v: !otf.state<3x64xf16>,
                         %m: tensor<?x1x?x?xi1, #otf.dims<"d0", "d1", "d2">>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %v mask %m {scale = 0.125 : f32} : (tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, !otf.state<3x64xf16>, !otf.state<3x64xf16>,
      tensor<?x1x?x?xi1, #otf.dims<"d0", "d1", "d2">>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @append_1(%k: !otf.state<3x64xf32>, %x: tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>, %at: tensor<?xi64, #otf.dims<"d0">>) -> !otf.state<3x64xf32> {
  %y = otf.append %k, %x at %at {positions_first} : (!otf.state<3x64xf32>, tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>, tensor<?xi64, #otf.dims<"d0">>) -> !otf.state<3x64xf32>
  plan.return %y : !otf.state<3x64xf32>
}
plan.kernel @attention_2(%q: tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<3x64xf32>, %s: tensor<9xf32>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k sink %s {scale = 0.125 : f32} : (tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, !otf.state<3x64xf32>, !otf.state<3x64xf32>, tensor<9xf32>)
      -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @attention_1(%q: tensor<?x4x?x32xf32, #otf.dims<"d0", "d1">>, %k: tensor<?x4x?x32xf32, #otf.dims<"d0", "d2">>,
                         %m: tensor<1x1x?x?xf32, #otf.dims<"d1", "d2">>) -> tensor<?x4x?x32xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k mask %m {scale = 1.0 : f32, softcap = 30.0 : f32} : (tensor<?x4x?x32xf32, #otf.dims<"d0", "d1">>,
      tensor<?x4x?x32xf32, #otf.dims<"d0", "d2">>, tensor<?x4x?x32xf32, #otf.dims<"d0", "d2">>, tensor<1x1x?x?xf32, #otf.dims<"d1", "d2">>)
      -> tensor<?x4x?x32xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x4x?x32xf32, #otf.dims<"d0", "d1">>
}
)mlir");
  EXPECT_EQ(source.kernels.size(), 6u);
}

/// Few rows divide the keys of a cache over blocks, whose results a second kernel joins; keys that are in none stay whole.
TEST(Emit, AttentionToALongCacheHasASecondKernel) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @append_0(%k: !otf.state<3x64xi8>, %x: tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>) -> !otf.state<3x64xi8> {
  %y = otf.append %k, %x {positions_first} : (!otf.state<3x64xi8>, tensor<?x?x3x64xf32, #otf.dims<"d0", "d1">>) -> !otf.state<3x64xi8>
  plan.return %y : !otf.state<3x64xi8>
}
plan.kernel @attention_0(%q: tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, %k: !otf.state<3x64xi8>, %v: !otf.state<3x64xi8>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %v {scale = 0.125 : f32} : (tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, !otf.state<3x64xi8>, !otf.state<3x64xi8>)
      -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
}
plan.kernel @attention_1(%q: tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, %k: tensor<?x3x?x64xf32, #otf.dims<"d0", "d2">>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">> {
  %y = otf.attention %q, %k, %k {scale = 0.125 : f32} : (tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>, tensor<?x3x?x64xf32, #otf.dims<"d0", "d2">>,
      tensor<?x3x?x64xf32, #otf.dims<"d0", "d2">>) -> tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x9x?x64xf32, #otf.dims<"d0", "d1">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 3u);
  const cuda::CudaKernel &cached = source.kernels[1], &whole = source.kernels[2];
  // Rows of 68 bytes, and the work between caches and result.
  EXPECT_NE(cached.source.find("otf::Heads<signed char>{b1, 3ll * capacity * 68ll, capacity * 68ll, 68ll}"), std::string::npos) << cached.source;
  EXPECT_NE(cached.source.find("*const work = static_cast<float *>(a.buffers[3])"), std::string::npos) << cached.source;
  EXPECT_NE(cached.source.find("*const y4 = static_cast<float *>(a.buffers[4])"), std::string::npos) << cached.source;
  EXPECT_EQ(cached.second, "attention_0_second");
  EXPECT_EQ(cached.secondExtent, *Size::parse("past + d1 - 512"));
  EXPECT_EQ(cached.grid, *Size::parse("9*d0*d1 + 261*d0"));
  // 15 rows of 3 heads, 66 floats a block of 32 keys.
  EXPECT_EQ(cached.work, *Size::parse("372*capacity*d0 + 11880*d0 + 64"));
  EXPECT_TRUE(whole.second.empty());
  EXPECT_EQ(whole.work, Size());
  EXPECT_EQ(whole.grid, *Size::parse("9*d0*d1"));
}

TEST(Emit, EmbeddingOfAnEncodedTable) {
  compiled(R"mlir(
plan.kernel @embedding_0(%i: tensor<?x?xi64, #otf.dims<"d0", "d1">>, %w: !otf.matrix<100x576, #otf.encoding<int8, group = 0>>)
    -> tensor<?x?x576xf32, #otf.dims<"d0", "d1">> {
  %y = otf.embedding %i, %w : (tensor<?x?xi64, #otf.dims<"d0", "d1">>, !otf.matrix<100x576, #otf.encoding<int8, group = 0>>) -> tensor<?x?x576xf32, #otf.dims<"d0", "d1">>
  plan.return %y : tensor<?x?x576xf32, #otf.dims<"d0", "d1">>
}
)mlir");
}

TEST(Emit, ScalarProgramWithLoopBranchAndConstants) {
  compiled(R"mlir(
plan.kernel @generate_0(%x: tensor<?x8xf16, #otf.dims<"d0">>, %ids: tensor<?xi64, #otf.dims<"d0">>) -> tensor<?x4xi1, #otf.dims<"d0">> {
  %table = arith.constant dense<[1.0, 2.5, -3.0, 0x7F800000]> : tensor<4xf32>
  %ones = arith.constant dense<1.0> : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %size = otf.size "d0"
  %y = tensor.generate %size {
  ^bb0(%i: index, %j: index):
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
      %h = tensor.extract %x[%i, %k] : tensor<?x8xf16, #otf.dims<"d0">>
      %f = arith.extf %h : f16 to f32
      %e = math.exp %f : f32
      %t = arith.addf %s, %e : f32
      scf.yield %t : f32
    }
    %id = tensor.extract %ids[%i] : tensor<?xi64, #otf.dims<"d0">>
    %idx = arith.index_cast %id : i64 to index
    %near = arith.cmpi slt, %idx, %j : index
    %v = scf.if %near -> (f32) {
      %a = tensor.extract %table[%j] : tensor<4xf32>
      scf.yield %a : f32
    } else {
      %b = tensor.extract %ones[%j] : tensor<4xf32>
      %c = arith.maximumf %b, %sum : f32
      scf.yield %c : f32
    }
    %r = math.powf %v, %sum : f32
    %o = arith.cmpf ogt, %r, %zero : f32
    tensor.yield %o : i1
  } : tensor<?x4xi1, #otf.dims<"d0">>
  plan.return %y : tensor<?x4xi1, #otf.dims<"d0">>
}
)mlir");
}

TEST(Emit, IntegersAndConversions) {
  compiled(R"mlir(
plan.kernel @generate_1(%x: tensor<?xi32, #otf.dims<"d0">>) -> tensor<?xf16, #otf.dims<"d0">> {
  %size = otf.size "d0"
  %min = arith.constant -2147483648 : i32
  %seven = arith.constant 7 : i32
  %y = tensor.generate %size {
  ^bb0(%i: index):
    %a = tensor.extract %x[%i] : tensor<?xi32, #otf.dims<"d0">>
    %b = arith.addi %a, %min : i32
    %c = arith.floordivsi %b, %seven : i32
    %d = arith.remui %c, %seven : i32
    %e = arith.extsi %d : i32 to i64
    %f = arith.trunci %e : i64 to i8
    %g = arith.sitofp %f : i8 to f32
    %h = arith.bitcast %g : f32 to i32
    %k = arith.shrui %h, %seven : i32
    %l = arith.uitofp %k : i32 to f64
    %m = math.sqrt %l : f64
    %n = arith.truncf %m : f64 to f16
    %o = arith.mulf %n, %n : f16
    tensor.yield %o : f16
  } : tensor<?xf16, #otf.dims<"d0">>
  plan.return %y : tensor<?xf16, #otf.dims<"d0">>
}
)mlir");
}

TEST(Emit, ComputeStoresSeveralResults) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @compute_0(%x: tensor<?x?xf32, #otf.dims<"d0", "d1">>)
    -> (tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  %y:2 = otf.compute "2*d0" : tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">> {
  ^bb0(%row: index, %sums: memref<?x?xf32>, %negative: memref<?xi1>):
    %n = otf.size "d1"
    %end = scf.while (%i = %zero) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%i: index):
      %v = tensor.extract %x[%row, %i] : tensor<?x?xf32, #otf.dims<"d0", "d1">>
      memref.store %v, %sums[%row, %i] : memref<?x?xf32>
      %next = arith.addi %i, %one : index
      scf.yield %next : index
    }
    %some = arith.cmpi sgt, %end, %zero : index
    scf.if %some {
      %v = memref.load %sums[%row, %zero] : memref<?x?xf32>
      %below = arith.cmpf olt, %v, %nothing : f32
      memref.store %below, %negative[%row] : memref<?xi1>
    }
  }
  plan.return %y#0, %y#1 : tensor<?x?xf32, #otf.dims<"d0", "d1">>, tensor<?xi1, #otf.dims<"d0">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 1u);
  EXPECT_NE(source.kernels[0].source.find("y2"), std::string::npos) << source.kernels[0].source;
}

TEST(Emit, AConvolutionsGridFollowsItsRows) {
  cuda::CudaSource source = compiled(R"mlir(
plan.kernel @linear_3(%x: tensor<?x56x56x288xf32, #otf.dims<"d0">>, %w: !otf.matrix<64x288, #otf.encoding<f32>>) -> tensor<?x56x56x64xf32, #otf.dims<"d0">> {
  %y = otf.linear %x, %w : (tensor<?x56x56x288xf32, #otf.dims<"d0">>, !otf.matrix<64x288, #otf.encoding<f32>>) -> tensor<?x56x56x64xf32, #otf.dims<"d0">>
  plan.return %y : tensor<?x56x56x64xf32, #otf.dims<"d0">>
}
)mlir");
  ASSERT_EQ(source.kernels.size(), 1u);
  EXPECT_EQ(source.kernels[0].grid.str(), "49*d0"); // 3136 rows in blocks of 64, 64 columns in one of 128
}

TEST(Emit, AKernelWithAnUnprintableOperationIsTheHosts) {
  Emitted e = emit(R"mlir(
plan.kernel @generate_2(%x: tensor<4xf32>) -> tensor<4xi32> {
  %y = tensor.generate {
  ^bb0(%i: index):
    %a = tensor.extract %x[%i] : tensor<4xf32>
    %b = arith.fptosi %a : f32 to i32
    %c = math.ctpop %b : i32
    tensor.yield %c : i32
  } : tensor<4xi32>
  plan.return %y : tensor<4xi32>
}
)mlir");
  EXPECT_FALSE(e.source.has_value());
  EXPECT_EQ(e.diagnostics, "generate_2: 'math.ctpop' cannot be part of a CUDA kernel's scalar program\n");
}

TEST(Emit, RecordsForAPlainWeightAreRefused) {
  Emitted e = emit(R"mlir(
plan.kernel @linear_2(%x: tensor<4x320xi8>, %w: !otf.matrix<8x256, #otf.encoding<f32>>) -> tensor<4x8xf32> {
  %y = otf.linear %x, %w : (tensor<4x320xi8>, !otf.matrix<8x256, #otf.encoding<f32>>) -> tensor<4x8xf32>
  plan.return %y : tensor<4x8xf32>
}
)mlir");
  EXPECT_FALSE(e.source.has_value());
  EXPECT_NE(e.diagnostics.find("prologue"), std::string::npos) << e.diagnostics;
}

} // namespace
