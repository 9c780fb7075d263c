// SPDX-License-Identifier: Apache-2.0
//
// Passes that make one kernel's work one operator, in pipeline order. Part of passes/Passes.td, which has the class.

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
