// SPDX-License-Identifier: Apache-2.0
//
// Every pass after raising, in pipeline order. Decision passes write attributes, rewrite passes read them; so each
// choice can be printed, written by hand and overridden. None of them needs another to have run unless it says so.

#ifndef OTF_PASSES_PASSES_TD
#define OTF_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

class OtfPass<string argument> : Pass<argument, "mlir::ModuleOp">;

//===------------------------------------------------------------------------------------------===//
// Calibrate
//===------------------------------------------------------------------------------------------===//

def InsertObservers : OtfPass<"otf-insert-observers"> {
  let summary = "observes what each linear contracts with";
  let description = [{
    Adds an `otf.observe` behind each distinct tensor that a linear multiplies by a weight, and to `main` the arguments that hold its statistics. Tensors that meet the
    same weight share one set of statistics, and so do all weights that read them: q, k and v of a layer are one. The set has
    the name of its first weight; its arguments are "NAME/rows", "NAME/moments", "NAME/histogram", "NAME/products", and `otf.observed` on the others names it.
    Where linears read `otf.on_grid`, what is observed is on the grid. Matrices that are no weights are not observed.
    What an `otf.append` adds to a cache is observed too, without products, as the set "cache:CACHE"; and of a tensor of chosen experts (`otf.experts` on what makes
    it, its number of them) how many rows have chosen each, as sums of channels of the set "experts:NODE". `otf.observed_values` of the module names these sets.
    Of channels more than `max-width` there are no products. Run before gains are folded, since a recipe that codes weights keeps them apart.

    ```mlir
    func.func @main(%x: tensor<4x32xf32> {otf.name = "x"}) -> (tensor<4x8xf32> {otf.name = "y"}) {
      %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
      %y = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes
    func.func @main(%x: ..., %rows: tensor<1xi64> {otf.name = "q/rows"}, %moments: tensor<5x32xf64> {otf.name = "q/moments"},
        %histogram: tensor<4096xi64> {otf.name = "q/histogram"}, %products: tensor<528xf32> {otf.name = "q/products"}) -> ... {
      otf.observe %x into %rows, %moments, %histogram, %products : ...
      %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
      %y = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
    ```
  }];
  let options = [Option<"maxWidth", "max-width", "int64_t", "16384", "channels from which on there are no products">];
  let statistics = [
    Statistic<"numObserved", "observed", "Tensors that are observed">,
    Statistic<"numSets", "sets", "Sets of statistics">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

include "passes/Decide/Passes.td"
include "passes/Rewrite/Passes.td"
include "passes/Fuse/Passes.td"
include "passes/Lower/Passes.td"

//===------------------------------------------------------------------------------------------===//
// Contracts
//===------------------------------------------------------------------------------------------===//

def VerifyStage : OtfPass<"otf-verify-stage"> {
  let summary = "says whether a module has reached a stage";
  let description = [{
    `--otf-verify-stage=annotated` reports every operator that breaks the stage's contract, a sentence each, and fails
    if there is one. It changes nothing.

    1. imported: operators of otf, tensor.generate and constants only; every dynamic dimension has a name; scalars are
       f32, f64 and integers but for what `main` takes and gives; arguments and results have `otf.name`, and
       `otf.element` where the caller's type is not that of memory (ui8, f8E5M2, i4).
    2. annotated: imported, and every weight that is read as a matrix has an encoding; outliers only where it is coded.
    3. quantized: annotated, and matrices have their weights' encodings; a linear on a coded matrix reads records.
    4. fused: quantized, and no gated_activation is left.
    5. planned: functions hold plan operators only; allocs have slots, launches extents and grains of 32 bits; inputs have
       different names, and so have outputs.

    ```mlir
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...>    // error: 'otf.weight' op has no encoding (stage annotated; run otf-choose-bits)
    ```
  }];
  let options = [
    Option<"imported", "imported", "bool", "false", "check the contract after raising">,
    Option<"annotated", "annotated", "bool", "false", "check the contract after decisions">,
    Option<"quantized", "quantized", "bool", "false", "check the contract after rewriting">,
    Option<"fused", "fused", "bool", "false", "check the contract after fusing">,
    Option<"planned", "planned", "bool", "false", "check the contract of a plan">,
  ];
}

#endif // OTF_PASSES_PASSES_TD
