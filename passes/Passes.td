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

//===------------------------------------------------------------------------------------------===//
// Decide
//===------------------------------------------------------------------------------------------===//

def KeepBlocks : OtfPass<"otf-keep-blocks"> {
  let summary = "keeps the weights of the first and last blocks in f16";
  let description = [{
    Blocks are found by what repeats: the shapes of the weights that linears read, in program order, have a longest part that is one sequence again and
    again. Each repetition is a block. Weights of the first `first` and the last `last` ones get the encoding f16, unless they have one. Run before
    `otf-choose-bits`, which leaves them alone. A model in which nothing repeats is an error.

    ```mlir
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...>     // of block 0
    // otf-keep-blocks=first=1
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...> {encoding = #otf.encoding<f16>}
    ```
  }];
  let options = [
    Option<"first", "first", "int64_t", "0", "how many blocks from the input on to keep">,
    Option<"last", "last", "int64_t", "0", "how many blocks before the output to keep">,
  ];
  let statistics = [
    Statistic<"numBlocks", "blocks", "Blocks kept">,
    Statistic<"numWeights", "weights", "Weights kept">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseBits : OtfPass<"otf-choose-bits"> {
  let summary = "gives every weight matrix an encoding";
  let description = [{
    Writes `encoding` on each weight that a linear or an embedding reads as a matrix, and marks vocabulary
    tables: what an embedding reads, and what produces a result of the function with nothing but casts between floats,
    reshapes, and moves of elements (transpositions, slices) between. A weight that has an encoding keeps it, so a choice made by hand or by an earlier pass stands.
    A convolution's weight of at most 64 columns stays f32 (ChooseBits.cpp says what was measured). A table that gets the encoding of linears is marked `otf.as_linear`.

    ```mlir
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...>
    // otf-choose-bits=linear=int4
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...> {encoding = #otf.encoding<int4, group = 32>}
    ```
  }];
  let options = [
    Option<"linear", "linear", "std::string", "\"f32\"",
           "encoding of weights that linears read: f32, f16, int8, int4, codebook2, ternary_sign, planes3x1 to planes3x4, or planes4x1 to planes4x3">,
    Option<"vocabulary", "vocabulary", "std::string", "\"f32\"",
           "encoding of embedding tables and heads">,
    Option<"group", "group", "int64_t", "32",
           "columns that share a scale: a multiple of 32, or 0 for a whole row; plain encodings have none">,
    Option<"vocabularyGroup", "vocabulary-group", "int64_t", "-1",
           "the same for vocabulary tables; -1 for that of linears">,
    Option<"codedHead", "coded-head", "bool", "false", "a head that is no embedding table too gets the encoding of linears">,
    Option<"jointFit", "joint-fit", "bool", "false", "fit both levels of ternary_sign together">,
    Option<"splitHead", "split-head", "bool", "false",
           "a head that is an embedding table too becomes a weight of its own, NAME.head, with the encoding of linears: the table is held in two encodings">,
  ];
  let statistics = [
    Statistic<"numLinear", "linear-weights", "Linear weights given an encoding">,
    Statistic<"numVocabulary", "vocabulary-weights", "Vocabulary tables given an encoding">,
    Statistic<"numKept", "kept", "Weights whose encoding was decided before">,
    Statistic<"numSplit", "split", "Heads that became weights of their own">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseOutliers : OtfPass<"otf-choose-outliers"> {
  let summary = "chooses the columns of each coded linear weight that stay in f16";
  let description = [{
    Scores a column by its L2 norm over all rows, read from the model's files a block of rows at a time, times the mean |x_k| of
    the channel that it meets, where `statistics` has that weight, and keeps
    the best floor(fraction · K + 0.5) columns; ties go to the lower index. Leaves alone plain encodings,
    vocabulary tables that are not coded as linears are, and weights that have outliers or a rotation. Without calibration the score knows nothing of activations; `otf.scored_by` says which
    it was.

    ```mlir
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<codebook2, group = 32>}
    // otf-choose-outliers=fraction=0.03
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<codebook2, group = 32>, outliers = #otf.outliers<[3, 17]>}
    ```
  }];
  let options = [
    Option<"fraction", "fraction", "double", "0.035", "part of the columns to keep, from 0 to 1">,
    Option<"model", "model", "std::string", "\"\"", "the model's file, whose folder holds the weights">,
    Option<"calibration", "statistics", "std::string", "\"\"", "a file of statistics that otf-compile --calibrate made">,
  ];
  let statistics = [
    Statistic<"numWeights", "weights", "Weights given outliers">,
    Statistic<"numColumns", "columns", "Columns kept in f16">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseGrids : OtfPass<"otf-choose-grids"> {
  let summary = "chooses one scale and zero point for the activations that an int8 weight meets";
  let description = [{
    For each linear weight with codes of int8 and one scale a row, without outliers, that is not the file's own: a grid for the
    channels it contracts with, from the histogram in `statistics`, as `otf.grid` = [scale, zero] on each linear. Of all ranges that hold 0 the one with the least
    expected squared error of rounding and clipping is taken. The weight's encoding becomes grid8, `otf.row_scales` are max |w| / 127 of each row, and `otf.row_sums` those
    of its codes; so the linear adds integers, as with a file that is quantized on both sides. Where the weight is rotated, all this is of what is
    rotated, and the range is ±5.5 √mean x², which a rotation leaves as it is. A weight that the statistics lack keeps int8, and its
    activations are quantized as they come.

    ```mlir
    otf.weight @q : tensor<2x32xf32> = ... {encoding = #otf.encoding<int8, group = 0>}
    %y = otf.linear %x, %w : ...
    // becomes
    otf.weight @q : tensor<2x32xf32> = ... {encoding = #otf.encoding<grid8, group = 0>, otf.row_scales = dense<...>, otf.row_sums = dense<...>}
    %y = otf.linear %x, %w {otf.grid = array<f32: 0.02, -3.0>} : ...
    ```
  }];
  let options = [
    Option<"model", "model", "std::string", "\"\"", "the model's file, whose folder holds the weights">,
    Option<"calibration", "statistics", "std::string", "\"\"", "a file of statistics that otf-compile --calibrate made">,
  ];
  let statistics = [
    Statistic<"numWeights", "weights", "Weights whose activations have a grid">,
    Statistic<"numKept", "kept", "Weights whose activations are quantized as they come">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseRotations : OtfPass<"otf-choose-rotations"> {
  let summary = "chooses the rotation of each linear weight";
  let description = [{
    Writes `rotation` on each weight that has an encoding other than f16, no outliers, and linears as its only readers. A weight that has a
    rotation keeps it; f16 is for what is to stay as it is. A convolution by int8 stays as it is.

    - `kind=hadamard`: blocks of the largest power of two that divides the columns and is at most `block`.
    - `kind=kronecker`: the same times the largest divisor of what is left of the columns that is at most 63, so long as a segment has at most
      11264 columns: 576 = 64 · 9, 1536 = 512 · 3, 11008 = 256 · 43.

    A width that has neither (an odd one with hadamard) is reported as a warning and left as it is.

    ```mlir
    otf.weight @q : tensor<8x576xf32> = ... {encoding = #otf.encoding<int4, group = 32>}
    // otf-choose-rotations=kind=kronecker
    otf.weight @q : tensor<8x576xf32> = ... {encoding = #otf.encoding<int4, group = 32>, rotation = #otf.rotation<block = 64, factor = 9>}
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"hadamard\"", "hadamard or kronecker">,
    Option<"block", "block", "int64_t", "1024", "largest order of a Hadamard matrix, a power of two">,
    Option<"seed", "seed", "uint64_t", "0", "of random signs and of factors; 0 for no signs">,
  ];
  let statistics = [
    Statistic<"numWeights", "weights", "Weights given a rotation">,
    Statistic<"numWithout", "without", "Weights whose width has none">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseRounding : OtfPass<"otf-choose-rounding"> {
  let summary = "chooses which weights are coded with error feedback";
  let description = [{
    Marks every weight with codes that are to be chosen. Leaves alone plain encodings, weights that keep the file's codes,
    and vocabulary tables, whose rows an embedding reads as they are, unless they are coded as linears are.

    ```mlir
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>}
    // otf-choose-rounding=damping=0.01
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>, feedback = 1.0e-2 : f64}
    ```
  }];
  let options = [
    Option<"damping", "damping", "double", "0.01", "added to the diagonal of second moments, a fraction of its mean">,
  ];
  let statistics = [Statistic<"numWeights", "weights", "Weights coded with feedback">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseActivations : OtfPass<"otf-choose-activations"> {
  let summary = "chooses what coded linear weights multiply: floats, or int8 with one scale a row";
  let description = [{
    - `kind=f32`: the weights get `float_activations`, and linears multiply f32 by their codes. For int8 and int4 without outliers.
    - `kind=row`: `otf.row_activations`; the linears' inputs are int8 with one scale for each row (a token), a = max |x| / 127. For integer and table weights without outliers.

    Weights that are left alone read records with a scale for each 32 inputs.

    ```mlir
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>}
    // otf-choose-activations=kind=f32
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>, float_activations}
    ```
  }];
  let options = [Option<"kind", "kind", "std::string", "\"f32\"", "f32 or row">];
  let statistics = [Statistic<"numWeights", "weights", "Weights whose activations were chosen">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseCaches : OtfPass<"otf-choose-caches"> {
  let summary = "chooses what sessions hold keys and values in: f16, or int8 with a scale for each row";
  let description = [{
    Writes the element type as `otf.held` on every `otf.cache` of f32; `otf-encode-caches` follows it. A row is a head at a position (lib/Encoding/CacheRow.h).
    Only append and attention know such rows: any other reader of a cache is an error, and so is a model that has none.

    ```mlir
    otf.cache @key : !otf.state<3x64xf32> {input = "past.key", output = "present.key"}
    // otf-choose-caches=type=int8
    otf.cache @key : !otf.state<3x64xf32> {input = "past.key", otf.held = i8, output = "present.key"}
    ```
  }];
  let options = [Option<"type", "type", "std::string", "\"f16\"", "f16 or int8">];
  let statistics = [Statistic<"numCaches", "caches", "Caches whose element type was chosen">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseSmoothing : OtfPass<"otf-choose-smoothing"> {
  let summary = "chooses a unit, and a reference, for each channel that a coded linear weight meets";
  let description = [{
    Relative transfer: with r = (x − c) / s, W x = (W diag(s)) r + W c, and codes are those of W diag(s). s is the channel's deviation in `statistics` to the power of `power`
    (1 for a channel that never varies), c its mean with `center` and else 0. Writes s as `otf.unit`, c as `otf.center` and W c as `otf.center_products`. With a group
    scale that channels share, p = 1/2 loses least. Leaves alone plain encodings, vocabulary tables that are not coded as linears are, and weights that the file's codes are kept of or that calibration has not seen.

    ```mlir
    otf.weight @q : tensor<2x3xf32> = ... {encoding = #otf.encoding<int4, group = 32>}
    // otf-choose-smoothing="statistics=..."
    otf.weight @q : tensor<2x3xf32> = ... {encoding = #otf.encoding<int4, group = 32>, otf.unit = dense<[2.0, 1.0, 0.5]> : tensor<3xf32>}
    ```
  }];
  let options = [
    Option<"power", "power", "double", "0.5", "of the deviation; 0 leaves the unit 1">,
    Option<"center", "center", "bool", "false", "the channel's mean comes off its inputs">,
    Option<"model", "model", "std::string", "\"\"", "the model's file, whose folder holds the weights">,
    Option<"calibration", "statistics", "std::string", "\"\"", "a file of statistics that otf-compile --calibrate made">,
  ];
  let statistics = [
    Statistic<"numWeights", "weights", "Weights given a unit">,
    Statistic<"numUnseen", "unseen", "Weights that calibration has not seen">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseLowRank : OtfPass<"otf-choose-low-rank"> {
  let summary = "chooses the rank of what is added to a coded linear weight";
  let description = [{
    W x ~ Ŵ x + P (Q x) with P of N x r and Q of r x K in f16. Writes `otf.rank`, at most the lesser of N and K, on each coded linear weight that linears without windows read; the
    factors are made while the plan is written. With `gated`, only where it pays: r costs c = 16 r (N + K) / (N K) bits a weight, which would take the error down to 2^(−2c) of its energy, so the rank
    must take more off than that. Whoever opened the model measures it.

    ```mlir
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>}
    // otf-choose-low-rank=rank=4
    otf.weight @q : tensor<8x64xf32> = ... {encoding = #otf.encoding<int4, group = 32>, otf.rank = 4 : i64}
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "16", "at most">,
    Option<"gated", "gated", "bool", "false", "only where the rank takes more off the error than its bits would">,
  ];
  let statistics = [
    Statistic<"numWeights", "weights", "Weights given a rank">,
    Statistic<"numRefused", "refused", "Weights whose rank would not pay">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def ChooseBases : OtfPass<"otf-choose-bases"> {
  let summary = "lets linear weights of one kind share a base, of which each differs by a low rank";
  let description = [{
    Kinds are the places in a block, which is what repeats (`otf-keep-blocks`): W_l ~ base + A_l B_lᵀ, with one base for all blocks. Writes `otf.base`, `otf.rank` and `otf.sweeps` on weights
    that are to be f16; a model in which nothing repeats is an error. Weights that embeddings read or linears with windows are no members, nor is one that has neither peer.

    ```mlir
    otf.weight @q0 : tensor<8x64xf32> = ... {encoding = #otf.encoding<f16>}
    // otf-choose-bases=rank=4
    otf.weight @q0 : tensor<8x64xf32> = ... {encoding = #otf.encoding<f16>, otf.base = "q0.base", otf.rank = 4 : i64, otf.sweeps = 0 : i64}
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "32", "of each difference, at most">,
    Option<"sweeps", "sweeps", "int64_t", "0", "how often base and differences are fitted again">,
  ];
  let statistics = [
    Statistic<"numBases", "bases", "Bases">,
    Statistic<"numWeights", "weights", "Weights that share one">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def SpendBudget : OtfPass<"otf-spend-budget"> {
  let summary = "chooses among encodings what loses least for a budget";
  let description = [{
    Gives each coded weight of a linear (not tables, nor codes that the file has) one of `choices`, such that all of them keep the budget and the losses
    add up to the least possible: what errors of this weight cost the model, as measured, times the error that the encoding makes of a Gaussian. The knapsack is solved
    exactly, so the sum is never above that of one encoding for all. `otf.foretold` is the loss of each weight, and in words that of the module.
    Where the budget is of bytes or of loss, a vocabulary table whose losses were measured has one of `tables`, for the same budget: bits a weight count linears alone.

    ```mlir
    otf.weight @q : tensor<64x64xf32> = ... {encoding = #otf.encoding<planes3x2, group = 0>}
    otf.weight @v : tensor<64x64xf32> = ... {encoding = #otf.encoding<planes3x2, group = 0>}
    // otf-spend-budget="budget=2.8bpw choices=planes3x2+planes3x3", where errors of @v cost ten times as much
    otf.weight @q : tensor<64x64xf32> = ... {encoding = #otf.encoding<planes3x2, group = 0>, otf.foretold = 2.0e-3 : f64}
    otf.weight @v : tensor<64x64xf32> = ... {encoding = #otf.encoding<planes3x3, group = 0>, otf.foretold = 5.0e-3 : f64}
    ```
  }];
  let options = [
    Option<"budget", "budget", "std::string", "\"\"", "2.5bpw (linears, everything counted), 1.2GB (all weights) or kl=0.05">,
    Option<"choices", "choices", "std::string", "\"\"", "encodings, with + between">,
    Option<"group", "group", "int64_t", "0", "columns that share a scale, as for otf-choose-bits">,
    Option<"tables", "tables", "std::string", "\"\"", "encodings of vocabulary tables, each with its group, as int8:32+int4:32; empty: they keep theirs">,
    Option<"sensitivities", "sensitivities", "std::string", "\"\"", "a file that otf-compile --calibrate made (lib/Analysis/Sensitivities.h)">,
  ];
  let statistics = [Statistic<"numWeights", "weights", "Weights given an encoding">];
  let dependentDialects = ["::otf::OTFDialect"];
}

//===------------------------------------------------------------------------------------------===//
// Rewrite
//===------------------------------------------------------------------------------------------===//

def Smooth : OtfPass<"otf-smooth"> {
  let summary = "linears read relative inputs where their weights have units";
  let description = [{
    (x − c) / s as one tensor.generate for all linears that share an input, units and center, or as the gain and bias of a norm where one makes x: gain / s and (bias − c) / s; W c is added to the result. Columns of the weight are multiplied by s while the plan is written.
    Each unit is first tried on numbers: if products differ by more than 2e-6 of their norms, the weight is named and the pass fails. Run once, before `otf-rotate`.

    ```mlir
    %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes, where @w has otf.unit
    %u = otf.use @w.unit : tensor<64xf32>
    %r = tensor.generate { ^bb0(%i: index, %k: index): ... x[i, k] / u[k] ... } : tensor<4x64xf32>
    %y = otf.linear %r, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numUnits", "units", "Inputs made relative">,
    Statistic<"numFolded", "folded", "Of these, by the gain and bias of a norm">,
    Statistic<"numShared", "shared", "Linears that share one made for another">,
  ];
  let dependentDialects = ["::otf::OTFDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def Rotate : OtfPass<"otf-rotate"> {
  let summary = "rotates the inputs of linears whose weights are rotated";
  let description = [{
    One `otf.rotate` for all linears that share an input and a rotation. Rows of the weight are rotated while the plan is written, in
    f64, and rounded to f32 before they are coded: at most 6e-8 of each. Each rotation is first tried on numbers, as the plan will compute it (f32, canonical): if the product of rotated rows differs by
    more than 2e-6 of their norms, the weight is named and the pass fails. Run once: a linear that reads an `otf.rotate` of that rotation already is left alone.

    ```mlir
    %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes, where @w has rotation = #otf.rotation<block = 64>
    %r = otf.rotate %x by <block = 64> : tensor<4x64xf32>
    %y = otf.linear %r, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numRotations", "rotations", "Rotations of activations made">,
    Statistic<"numShared", "shared", "Linears that share a rotation made for another">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

def AddLowRank : OtfPass<"otf-add-low-rank"> {
  let summary = "adds what a low rank gives back to linears";
  let description = [{
    Where a linear's weight has `otf.rank`: two weights that are derived from it, two linears, and a sum, which `otf-fuse-epilogue` takes in. They read what the linear reads, before it is quantized. Where
    the weight has `otf.base` too, the linear itself multiplies by the base. Run once, after `otf-rotate` and before `otf-encode`.

    ```mlir
    %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes, where @w has otf.rank = 2
    %q = otf.use @w.right : !otf.matrix<2x64, #otf.encoding<f16>>
    %a = otf.linear %x, %q : (tensor<4x64xf32>, !otf.matrix<2x64, #otf.encoding<f16>>) -> tensor<4x2xf32>
    %p = otf.use @w.left : !otf.matrix<8x2, #otf.encoding<f16>>
    %b = otf.linear %a, %p : (tensor<4x2xf32>, !otf.matrix<8x2, #otf.encoding<f16>>) -> tensor<4x8xf32>
    %c = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    %y = tensor.generate { ... c[i, n] + b[i, n] ... } : tensor<4x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numLinears", "linears", "Linears that a low rank is added to">,
    Statistic<"numBases", "bases", "Bases">,
  ];
  let dependentDialects = ["::otf::OTFDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def QuantizeRows : OtfPass<"otf-quantize-rows"> {
  let summary = "int8 activations with one scale a row";
  let description = [{
    Where a linear's weight has `otf.row_activations`: a = max |x| / 127 of each row (1 for a row of zeros), codes rint(x / a), a prologue that takes these as they are (a grid of scale 1), and the linear's sums times a. Codes
    and scales are made once for all linears that share an input. Run once, after `otf-add-low-rank`, which reads what is not rounded, and before `otf-encode`.

    ```mlir
    %y = otf.linear %x, %w : (tensor<4x64xf32>, !otf.matrix<8x64, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes
    %a = tensor.generate { ... max over k of |x[i, k]| / 127 ... } : tensor<4xf32>
    %q = tensor.generate { ... rint(x[i, k] / a[i]) ... } : tensor<4x64xf32>
    %r = otf.prologue none %q grid %one : (tensor<4x64xf32>, tensor<2xf32>) -> tensor<4x128xi8>
    %s = otf.linear %r, %w : (tensor<4x128xi8>, !otf.matrix<8x64, #otf.encoding<int8, group = 32>>) -> tensor<4x8xf32>
    %y = tensor.generate { ... s[i, n] · a[i] ... } : tensor<4x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numRows", "inputs", "Inputs quantized by rows">,
    Statistic<"numShared", "shared", "Linears that share one made for another">,
  ];
  let dependentDialects = ["::otf::OTFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def EncodeCaches : OtfPass<"otf-encode-caches"> {
  let summary = "caches take the element type that was decided for them";
  let description = [{
    Only types change: append rounds what it adds, and attention reads it. The model's callers give and get f32 as before.

    ```mlir
    otf.cache @key : !otf.state<3x64xf32> {input = "past.key", otf.held = i8, output = "present.key"}
    %0 = otf.state @key : !otf.state<3x64xf32>
    // becomes
    otf.cache @key : !otf.state<3x64xi8> {input = "past.key", output = "present.key"}
    %0 = otf.state @key : !otf.state<3x64xi8>
    ```
  }];
  let statistics = [Statistic<"numCaches", "caches", "Caches whose element type changed">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def FoldNorms : OtfPass<"otf-fold-norms"> {
  let summary = "moves a norm's gain into the weights that read it";
  let description = [{
    W (g · x) = (W · diag(g)) x. The fold is recorded as `scale` and applied while the plan is written. It happens when the
    norm has no bias, every user of the norm is a linear, and every weight among them is read by such linears only, is decided
    to be f32, and has no scale yet. Undecided weights may still become coded. Coded weights keep the gain apart: it damps the channels that would set the scales of int8
    activations (measured; see the file).

    ```mlir
    %g = otf.use @g : tensor<32xf32>
    %n = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>, tensor<32xf32>) -> tensor<4x32xf32>
    // and `scale = @g` on the weights that read %n
    %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    ```
  }];
  let statistics = [Statistic<"numFolded", "folded", "Norm gains folded">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def Encode : OtfPass<"otf-encode"> {
  let summary = "makes matrices and what contracts with them follow the decisions on weights";
  let description = [{
    A matrix takes its weight's encoding and outlier count. A linear whose matrix is coded reads records that
    `otf.prologue` makes of its input; all linears that read one input share a prologue, unless they have outlier
    columns, whose order is the weight's own. The bytes are encoded while the plan is written, so IR never holds them.

    Where a linear reads `otf.on_grid` and its weight keeps the file's codes, the prologue takes over that grid, zero · Σ W
    (`otf.row_sums` of the weight) comes off the sums, and scales (`otf.row_scales`) are applied to what is left. A linear with `otf.grid` reads that grid first. Any other reader of `otf.on_grid` gets its scalar program.

    A linear with a window reads records of positions, each once for all windows that it is in. Where a group of 32 columns would span taps, or
    the weight has outlier columns or reads a grid or floats, all windows are written first, as a tensor.generate, and a record is one of a window.

    ```mlir
    %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<f32>>
    %y = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
    // becomes
    %w = otf.use @q : !otf.matrix<8x32, #otf.encoding<int4, group = 32>>
    %r = otf.prologue none %x : (tensor<4x32xf32>) -> tensor<4x64xi8>
    %y = otf.linear %r, %w : (tensor<4x64xi8>, !otf.matrix<8x32, #otf.encoding<int4, group = 32>>) -> tensor<4x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numMatrices", "matrices", "Matrices whose type changed">,
    Statistic<"numPrologues", "prologues", "Prologues made">,
    Statistic<"numShared", "shared", "Linears that share a prologue made for another">,
  ];
  let dependentDialects = ["::otf::OTFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===------------------------------------------------------------------------------------------===//
// Fuse
//===------------------------------------------------------------------------------------------===//

def MergeEqual : OtfPass<"otf-merge-equal"> {
  let summary = "keeps one of equal operations, and none that is unused";
  let description = [{
    Merges operations without side effects that have equal names, attributes, operands, types and regions, where the
    first dominates the second. What MLIR's `cse` does, in time that grows with the program also where thousands of
    bodies have one type. Bodies of several blocks are left alone.

    ```mlir
    %0 = tensor.generate %n { ^bb0(%i: index): ... x[i] + 1 ... }
    %1 = tensor.generate %n { ^bb0(%i: index): ... x[i] + 1 ... }
    // otf-merge-equal: uses of %1 are uses of %0
    ```
  }];
  let statistics = [Statistic<"numMerged", "merged", "Operations replaced by an equal one">];
}

def FuseAttention : OtfPass<"otf-fuse-attention"> {
  let summary = "lets rope, append and attention read and write positions first";
  let description = [{
    Projections give [B, S, H, D]; models transpose to [B, H, S, D] and back. The operators can index either way, so a
    transposition that one reads moves behind it, and two in a row vanish:

    ```mlir
    %t = transpose %x                    // a tensor.generate that reads %x[b, s, h, d]
    %y = otf.rope %t, %cos, %sin
    // becomes
    %r = otf.rope %x, %cos, %sin {positions_first}
    %y = transpose %r
    ```

    An append gives no tensor, so its transposition ends there. Keys and values that are tensors, not caches, stay as they are.
  }];
  let statistics = [Statistic<"numAbsorbed", "absorbed", "Operators that now have positions first">];
  let dependentDialects = ["::otf::OTFDialect", "::mlir::tensor::TensorDialect"];
}

def SinkTransposes : OtfPass<"otf-sink-transposes"> {
  let summary = "computes bodies over transposed contractions in the contraction's own order";
  let description = [{
    A body that reads a transposed linear becomes the same body over the linear, and then the transpose:

    ```mlir
    %y = otf.linear %a, %w ...                                               // [N x HW, C], a convolution
    %t = tensor.generate { tensor.extract %y[%n, %h, %w, %c] }               // the model's [N, C, H, W]
    %r = tensor.generate { max(tensor.extract %t[%n, %c, %h, %w], 0) }
    // becomes
    %m = tensor.generate { max(tensor.extract %y[%n, %h, %w, %c], 0) }       // the linear's epilogue
    %r = tensor.generate { tensor.extract %m[%n, %h, %w, %c] }
    ```

    So the transpose moves down until a reader takes it into its own index arithmetic or another transpose undoes it:
    each region between operators that fix an order has the order of the contraction before it. A body marked `otf.keeps_order` (a
    depthwise convolution) has its order already and stays.
  }];
}

def FusePrologue : OtfPass<"otf-fuse-prologue"> {
  let summary = "normalises in the prologue";
  let description = [{
    A norm that only prologues read is computed by them:

    ```mlir
    %n = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %r = otf.prologue none %n : (tensor<4x32xf32>) -> tensor<4x64xi8>
    // becomes
    %r = otf.prologue rms %x {epsilon = 1.0e-5 : f32} : (tensor<4x32xf32>) -> tensor<4x64xi8>
    ```

    A norm with another reader (a residual after it, a plain linear) stays, since it must be in memory anyway. So does an
    `otf.rotate`, which prologues take in the same way, after the norm.
  }];
  let statistics = [Statistic<"numFused", "fused", "Norms fused into prologues">,
                    Statistic<"numRotations", "rotations", "Rotations fused into prologues">];
  let dependentDialects = ["::otf::OTFDialect"];
}

def FuseElementwise : OtfPass<"otf-fuse-elementwise"> {
  let summary = "substitutes tensor.generate bodies into the bodies that read them";
  let description = [{
    ```mlir
    %a = tensor.generate { ^bb0(%i: index): %0 = tensor.extract %x[%i] ...; %1 = arith.negf %0 : f32; tensor.yield %1 : f32 }
    %b = tensor.generate { ^bb0(%i: index): %0 = tensor.extract %a[%i] ...; %1 = math.exp %0 : f32; tensor.yield %1 : f32 }
    // becomes
    %b = tensor.generate { ^bb0(%i: index): %0 = tensor.extract %x[%i] ...; %1 = arith.negf %0; %2 = math.exp %1; tensor.yield %2 : f32 }
    ```

    1. A body that only moves data (index arithmetic, casts of indices, reads) of at most `max-ops` operations is substituted everywhere.
    2. Any other body is substituted where its single read is; if that read is not at a permutation of the reader's own
       index, or lies in a loop, the body must be short and cheap: at most `max-ops` operations, no loop, no transcendental function.
       So nothing costly is computed twice. A body that reads a linear at its own index is not repeated either: it will be
       the linear's epilogue.
    3. A body that only permutes the dimensions of a tensor, for bodies that read it, takes nothing in: each of these takes it in (1), and what
       it permutes is computed in its own order.

    `otf.gated_activation` becomes a tensor.generate first, and reads through reshapes that only add or drop ones
    go to the reshape's source.
  }];
  let options = [Option<"maxOps", "max-ops", "unsigned", "16", "operations in a body that may be computed more than once">];
  let statistics = [
    Statistic<"numExpanded", "expanded", "Gated activations turned into bodies">,
    Statistic<"numSubstituted", "substituted", "Reads replaced by the body that produced them">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect",
                           "::otf::OTFDialect"];
}

def FuseEpilogue : OtfPass<"otf-fuse-epilogue"> {
  let summary = "computes what follows a linear on its sums";
  let description = [{
    A tensor.generate that reads a linear's result at its own index becomes the linear's epilogue, when nothing else reads that
    result and the body has no loop. It may read other tensors (residual, gate) anywhere. An epilogue that is there already is
    continued. The sum with a vector of N elements becomes `bias`. Of two linears that a body reads, the later one takes it.

    ```mlir
    %y = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32>
    %z = tensor.generate { ^bb0(%i: index, %j: index):
      %0 = tensor.extract %y[%i, %j] : tensor<4x8xf32>
      %1 = tensor.extract %residual[%i, %j] : tensor<4x8xf32>
      %2 = arith.addf %0, %1 : f32
      tensor.yield %2 : f32
    } : tensor<4x8xf32>
    // becomes
    %z = otf.linear %x, %w : (tensor<4x32xf32>, !otf.matrix<8x32, #otf.encoding<f32>>) -> tensor<4x8xf32> epilogue {
    ^bb0(%sum: f32, %i: index, %j: index):
      %1 = tensor.extract %residual[%i, %j] : tensor<4x8xf32>
      %2 = arith.addf %sum, %1 : f32
      otf.yield %2 : f32
    }
    ```

    A reshape of a linear's result that keeps the last dimension moves to the input first, so it is not in the way.
  }];
  let statistics = [
    Statistic<"numBiases", "biases", "Sums that became a bias">,
    Statistic<"numEpilogues", "epilogues", "Bodies that became an epilogue or continued one">,
  ];
  let dependentDialects = ["::otf::OTFDialect"];
}

//===------------------------------------------------------------------------------------------===//
// Lower
//===------------------------------------------------------------------------------------------===//

def Outline : OtfPass<"otf-outline"> {
  let summary = "makes each fused operator a kernel and a call";
  let description = [{
    Tensors, matrices and caches become arguments in order of first use; constants and scalar arithmetic on sizes are copied into
    the kernel. Distinct dynamic sizes are d0, d1, … in order of first appearance in argument types, result types and the
    body, so equal kernels of different layers are equal text and become one. A kernel with caches is called with three more
    sizes: past, capacity and the batch.

    ```mlir
    %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x32xf32, #otf.dims<"s">>
    // becomes
    plan.kernel @norm_0(%x: tensor<?x32xf32, #otf.dims<"d0">>) -> tensor<?x32xf32, #otf.dims<"d0">> { ... }
    %y = plan.call @norm_0(%x) sizes ["s"] : (tensor<?x32xf32, #otf.dims<"s">>) -> tensor<?x32xf32, #otf.dims<"s">>
    ```

    A result that no kernel writes (an input or a constant passed on, a value returned twice) is copied by one.
  }];
  let statistics = [
    Statistic<"numCalls", "calls", "Operators outlined">,
    Statistic<"numKernels", "kernels", "Distinct kernels made">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect", "::otf::OTFDialect",
                           "::otf::plan::PlanDialect"];
}

def Bufferize : OtfPass<"otf-bufferize"> {
  let summary = "gives every value memory and every call its buffers";
  let description = [{
    Arguments and results of the function become `plan.input` and `plan.output` of their `otf.name`, intermediate tensors
    `plan.alloc`, reshapes `plan.view`. The kernel that computes a result writes it into the output itself. An append
    writes the cache that it reads, so its launch has no output. Needs otf-outline.

    ```mlir
    func.func @main(%x: tensor<4xf32> {otf.name = "x"}) -> (tensor<4xf32> {otf.name = "y"}) {
      %y = plan.call @norm_0(%x) sizes [] : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    // becomes
    func.func @main() {
      %x = plan.input "x" : !plan.buffer<tensor<4xf32>>
      %y = plan.output "y" : !plan.buffer<tensor<4xf32>>
      plan.launch @norm_0(%x) outs(%y) sizes [] : (!plan.buffer<tensor<4xf32>>) outs(!plan.buffer<tensor<4xf32>>)
      return
    }
    ```
  }];
  let statistics = [Statistic<"numAllocs", "allocs", "Intermediate buffers">];
  let dependentDialects = ["::otf::plan::PlanDialect"];
}

def MergeLaunches : OtfPass<"otf-merge-launches"> {
  let summary = "says which launches may be one where they have one row";
  let description = [{
    Consecutive launches of equal rows become a unit: a prologue and all linears that read its record; or rotary embeddings and appends to
    caches. What is merged has a number, `plan.merged`, and lanes, `plan.lane`. Lanes are independent. Within one, a linear's
    epilogue reads the results of another with an equal weight type at its own place, or an append takes what a rotary
    embedding gives. Linears whose codecs want a record in another order are merged by themselves. `plan.rows` is 1 where all
    this holds. Nothing else changes: launches stay, for devices and numbers of rows to which it is of no use. otf-schedule
    keeps alive what a unit reads and writes. Needs otf-bufferize.

    ```mlir
    plan.launch @prologue_0(%x) outs(%r) sizes ["s"] : ...
    plan.launch @linear_0(%r, %q) outs(%a) sizes ["s"] : ...
    plan.launch @linear_1(%r, %k) outs(%b) sizes ["s"] : ...
    // becomes
    plan.launch @prologue_0(%x) outs(%r) sizes ["s"] {plan.rows = "s", plan.unit = 0 : i64} : ...
    plan.launch @linear_0(%r, %q) outs(%a) sizes ["s"] {plan.lane = 0 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64} : ...
    plan.launch @linear_1(%r, %k) outs(%b) sizes ["s"] {plan.lane = 1 : i64, plan.merged = 0 : i64, plan.rows = "s", plan.unit = 0 : i64} : ...
    ```
  }];
  let statistics = [Statistic<"numMerged", "merged", "Launches that several may become">];
  let dependentDialects = ["::otf::plan::PlanDialect"];
}

def Schedule : OtfPass<"otf-schedule"> {
  let summary = "assigns arena slots, work items and grains";
  let description = [{
    Launches run in program order. A buffer lives from the launch that writes it to the last that reads it or a view of it; two share a
    slot when their lives do not meet. A free slot of equal size is taken first, then one that is at least as large, then any, then
    a new one. A slot is as large as its largest buffer, which the runtime evaluates.

    The extent of a launch is the number of its work items, of which threads take disjoint ranges: rows of the result for a
    generate, norm, prologue and embedding; 8-row tiles of the weight for a linear; the product of the first three
    dimensions for rope, append and attention. Needs otf-bufferize.

    ```mlir
    plan.launch @norm_0(%x) outs(%y) sizes ["s"] {extent = "s", grain = 1 : i64} : ...
    ```
  }];
  let options = [
    Option<"wideLinear", "wide-linear", "int64_t", "256",
           "8-row tiles from which on a linear hands out two at a time; fewer leave threads without work">,
  ];
  let statistics = [
    Statistic<"numBuffers", "buffers", "Buffers that were given a slot">,
    Statistic<"numSlots", "slots", "Slots">,
  ];
  let dependentDialects = ["::otf::plan::PlanDialect"];
}

def LowerToPlan : OtfPass<"otf-lower-to-plan"> {
  let summary = "checks that a module is a plan and drops what it does not use";
  let description = [{
    Functions may hold plan operators only, every alloc has a slot, every launch an extent, a grain and the sizes that its kernel
    names. Kernels without a launch and views without a reader go. What remains is what the plan writer and both code
    generators read.

    ```mlir
    plan.kernel @unused_0(...) { ... }      // erased
    ```
  }];
  let statistics = [Statistic<"numDropped", "dropped-kernels", "Kernels without a launch">];
  let dependentDialects = ["::otf::plan::PlanDialect"];
}

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
