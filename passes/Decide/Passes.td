// SPDX-License-Identifier: Apache-2.0
//
// Passes that write decisions into the IR, in pipeline order. Part of passes/Passes.td, which has the class.

def KeepNonfinite : OtfPass<"otf-keep-nonfinite"> {
  let summary = "keeps weights that hold NaN or an infinity in f32";
  let description = [{
    Reads every weight that a linear or an embedding reads as a matrix and gives those with an element that is not finite the encoding f32 and `otf.nonfinite`, with a
    warning that names the first one. Such a weight is not rotated, and the plan holds its floats as they are. A weight that has an encoding, or is the file's own codes, is left alone. Run
    before `otf-choose-bits`, and only where someone asks for it (`otf-compile --allow-nonfinite`): else these weights are errors.

    ```mlir
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...>     // one element is NaN
    // otf-keep-nonfinite
    otf.weight @q : tensor<8x32xf32> = #otf.blob<...> {encoding = #otf.encoding<f32>, otf.nonfinite}
    ```
  }];
  let options = [Option<"model", "model", "std::string", "\"\"", "the model's file, whose folder holds the weights">];
  let statistics = [Statistic<"numWeights", "weights", "Weights kept">];
  let dependentDialects = ["::otf::OTFDialect"];
}

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
           "encoding of weights that linears read: f32, f16, int8, int4, codebook2, ternary_sign, planes3x1 to planes3x4, or planes4x1 to planes4x3; grid8 and grid4 are int8 and int4 with scales of f32">,
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
    - `kind=f32`: the weights get `float_activations`, and linears multiply f32 by their codes. For int8, int4, grid8 and grid4 without outliers.
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
