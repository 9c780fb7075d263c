// SPDX-License-Identifier: Apache-2.0
//
// Passes that follow the decisions, in pipeline order. Part of passes/Passes.td, which has the class.

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
