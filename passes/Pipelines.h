// SPDX-License-Identifier: Apache-2.0
//
// The pipelines between stages, as plain functions. otf-compile runs them one after another;
// otf-opt knows them as otf-annotate, otf-quantize, otf-fuse and otf-plan.
#ifndef OTF_PASSES_PIPELINES_H
#define OTF_PASSES_PIPELINES_H

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace otf {

struct DecideOptions : mlir::PassPipelineOptions<DecideOptions> {
  Option<std::string> linear{*this, "linear",
                             llvm::cl::desc("encoding of weights that linears read"),
                             llvm::cl::init("f32")};
  Option<std::string> vocabulary{*this, "vocabulary",
                                 llvm::cl::desc("encoding of embedding tables and heads"),
                                 llvm::cl::init("f32")};
  Option<int64_t> group{*this, "group",
                        llvm::cl::desc("columns that share a scale, or 0 for a row"),
                        llvm::cl::init(32)};
  Option<int64_t> vocabularyGroup{*this, "vocabulary-group",
                                  llvm::cl::desc("the same for embedding tables and heads, or -1 for that of linears"),
                                  llvm::cl::init(-1)};
  Option<double> outliers{*this, "outliers",
                          llvm::cl::desc("part of the columns kept in f16, from 0 to 1"),
                          llvm::cl::init(0.0)};
  Option<int64_t> keepFirst{*this, "keep-first", llvm::cl::desc("blocks from the input on whose linears stay f16"), llvm::cl::init(0)};
  Option<int64_t> keepLast{*this, "keep-last", llvm::cl::desc("blocks before the output whose linears stay f16"), llvm::cl::init(0)};
  Option<bool> keepNonfinite{*this, "keep-nonfinite", llvm::cl::desc("weights that hold NaN or infinity stay f32"), llvm::cl::init(false)};
  Option<bool> codedHead{*this, "coded-head", llvm::cl::desc("a head that is no embedding table too is coded as linears are"),
                         llvm::cl::init(false)};
  Option<bool> jointFit{*this, "joint-fit", llvm::cl::desc("fit both levels of ternary_sign together"), llvm::cl::init(false)};
  Option<std::string> rotation{*this, "rotation", llvm::cl::desc("of weights and inputs of linears: none, hadamard or kronecker"),
                               llvm::cl::init("none")};
  Option<int64_t> rotationBlock{*this, "rotation-block", llvm::cl::desc("largest order of a Hadamard matrix"), llvm::cl::init(1024)};
  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("of a rotation's signs and factors; 0 for no signs"), llvm::cl::init(0)};
  Option<double> feedback{*this, "feedback",
                          llvm::cl::desc("damping of error feedback, or 0 for nearest codes"),
                          llvm::cl::init(0.0)};
  Option<std::string> budget{*this, "budget", llvm::cl::desc("what otf-spend-budget may spend; empty: it is not run")};
  Option<std::string> choices{*this, "choices", llvm::cl::desc("encodings that otf-spend-budget chooses among, with + between")};
  Option<std::string> tables{*this, "tables", llvm::cl::desc("the same for vocabulary tables, each with its group: int8:32+int4:32")};
  Option<std::string> sensitivities{*this, "sensitivities", llvm::cl::desc("a file that otf-compile --calibrate made for recipes with choices")};
  Option<bool> staticGrids{*this, "static-grids",
                           llvm::cl::desc("one grid a tensor for activations of int8 weights"),
                           llvm::cl::init(false)};
  Option<bool> splitHead{*this, "split-head", llvm::cl::desc("a head that is an embedding table too is coded a second time"), llvm::cl::init(false)};
  Option<std::string> activations{*this, "activations", llvm::cl::desc("of coded linears: f32, row, or int8 in groups of 32"), llvm::cl::init("int8")};
  Option<std::string> cache{*this, "cache", llvm::cl::desc("of keys and values that sessions hold: f32, f16 or int8"), llvm::cl::init("f32")};
  Option<double> power{*this, "power", llvm::cl::desc("of deviations that inputs are relative to, or below 0 for none"), llvm::cl::init(-1.0)};
  Option<bool> center{*this, "center", llvm::cl::desc("relative inputs have their means taken off"), llvm::cl::init(false)};
  Option<int64_t> rank{*this, "rank", llvm::cl::desc("of what is added to coded linears, or of differences from a base"), llvm::cl::init(0)};
  Option<bool> rankGate{*this, "rank-gate", llvm::cl::desc("a rank only where it pays"), llvm::cl::init(false)};
  Option<bool> sharedBase{*this, "shared-base", llvm::cl::desc("one base for weights of a kind"), llvm::cl::init(false)};
  Option<int64_t> sweeps{*this, "sweeps", llvm::cl::desc("how often bases are fitted again"), llvm::cl::init(0)};
  Option<std::string> statistics{*this, "statistics",
                                 llvm::cl::desc("a file that otf-compile --calibrate made")};
  Option<std::string> model{*this, "model",
                            llvm::cl::desc("the model's file, whose folder holds the weights")};
};

/// imported to annotated.
void buildDecidePipeline(mlir::OpPassManager &manager, const DecideOptions &options,
                         WeightReaderFactory open = {}, CapturedEnergy captured = {});
/// annotated to quantized. Without `foldNorms` f32 weights are as in the model.
void buildRewritePipeline(mlir::OpPassManager &manager, bool foldNorms = true);
/// quantized to fused.
void buildFusePipeline(mlir::OpPassManager &manager);
/// fused to planned.
void buildLowerPipeline(mlir::OpPassManager &manager);

} // namespace otf

#endif // OTF_PASSES_PIPELINES_H
