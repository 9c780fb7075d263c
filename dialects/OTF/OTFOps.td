// SPDX-License-Identifier: Apache-2.0
//
// The operators of the otf dialect. Shapes in descriptions: M rows of activations (all leading dimensions of a
// tensor taken together), K inputs, N outputs, B batch, S new positions, T positions in the cache after the step, H heads, D head width.

#ifndef OTF_DIALECTS_OTF_OTFOPS_TD
#define OTF_DIALECTS_OTF_OTFOPS_TD

include "dialects/OTF/OTFDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class OTF_Op<string opMnemonic, list<Trait> traits = []> : Op<OTF_Dialect, opMnemonic, traits>;

def OTF_F32Tensor : TensorOf<[F32]>;

//===------------------------------------------------------------------------------------------===//
// Module level
//===------------------------------------------------------------------------------------------===//

def OTF_WeightOp : OTF_Op<"weight", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "names a weight: where its bytes are and what happens to them";
  let description = [{
    The weight's logical type is `type`: N x K for a matrix that a linear multiplies by, any shape else.
    Bytes stay in the file; folds and encoding are applied while the plan is written, one block of rows
    at a time.

    1. `scale`, if present, names a weight of K elements: column k is multiplied by its element k (a norm's
       gain, folded by `otf-fold-norms`). It needs a matrix.
    2. `encoding` and `outliers` are decisions; rewriting passes read them. They need a matrix.
    3. The blob's length is the number of elements times the bits of one in the file, in whole bytes.
    4. `vocabulary` marks an embedding table or head, which is counted apart in bits per weight.
    5. `given`, if present, says that the blob holds codes, and the length is theirs. It needs a matrix. `keeps_given` is the decision
       that the encoding holds these codes, and not new ones.
    6. `float_activations` is the decision that linears multiply f32 by this weight, though it is coded; others make int8 records.
    7. `feedback` is the decision that codes are chosen one column after another, each making up for what earlier ones lost on the
       calibration's inputs (`lib/Encoding/Feedback.h`); its value is the damping, a fraction of the mean diagonal of their
       second moments. It needs an encoding, and statistics when the plan is written. Without it, codes are nearest.
    8. `rotation` is the decision that rows are rotated before they are coded, and that linears rotate their input (`otf-rotate`). It needs a
       matrix whose columns it divides, without outliers, which it would mix into the rest, and without codes that are kept.
    9. `joint_fit` is the decision that both levels of `ternary_sign` are fitted together.

    ```mlir
    otf.weight @q : tensor<576x576xf32> = #otf.blob<file = 0, offset = 0, length = 1327104, type = f32, transposed>
        {encoding = #otf.encoding<int4, group = 32>}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, OTF_BlobAttr:$blob,
                       OptionalAttr<FlatSymbolRefAttr>:$scale, OptionalAttr<OTF_EncodingAttr>:$encoding,
                       OptionalAttr<OTF_OutliersAttr>:$outliers, UnitAttr:$vocabulary,
                       OptionalAttr<OTF_GivenAttr>:$given, UnitAttr:$keeps_given, UnitAttr:$float_activations,
                       OptionalAttr<F64Attr>:$feedback,
                       OptionalAttr<OTF_RotationAttr>:$rotation, UnitAttr:$joint_fit);
  let assemblyFormat = "$sym_name `:` $type `=` $blob attr-dict";
  let hasVerifier = 1;
}

def OTF_CacheOp : OTF_Op<"cache", [Symbol]> {
  let summary = "declares a cache that a session keeps between steps";
  let description = [{
    `input` and `output` are the model's names for it before and after a step.

    ```mlir
    otf.cache @key0 : !otf.state<3x64xf32> {input = "past_key_values.0.key", output = "present.0.key"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<OTF_StateType>:$type, StrAttr:$input, StrAttr:$output);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

//===------------------------------------------------------------------------------------------===//
// Values
//===------------------------------------------------------------------------------------------===//

def OTF_UseOp : OTF_Op<"use", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a weight as a value";
  let description = [{
    As a tensor of the weight's type, or as a matrix that a linear or an embedding reads.

    1. A tensor has the weight's shape and element type.
    2. A matrix has the weight's shape. Its encoding and outliers become those that the weight decides in `otf-encode`;
       `otf-verify-stage=quantized` checks that.

    ```mlir
    %w = otf.use @q : !otf.matrix<576x576, #otf.encoding<f32>>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs AnyTypeOf<[AnyRankedTensor, OTF_MatrixType]>:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
}

def OTF_StateOp : OTF_Op<"state", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a cache as it is before the step";
  let description = [{
    ```mlir
    %past = otf.state @key0 : !otf.state<3x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$cache);
  let results = (outs OTF_StateType:$result);
  let assemblyFormat = "$cache attr-dict `:` type($result)";
}

def OTF_SizeOp : OTF_Op<"size", [Pure]> {
  let summary = "the value of a symbolic size";
  let description = [{
    ```mlir
    %0 = otf.size "past_sequence_length + sequence_length"
    ```
  }];
  let arguments = (ins StrAttr:$size);
  let results = (outs Index:$result);
  let assemblyFormat = "$size attr-dict";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "const ::otf::Size &":$size)>];
}

def OTF_BindOp : OTF_Op<"bind"> {
  let summary = "makes elements of a tensor the values of symbols, while the plan runs";
  let description = [{
    Where sizes depend on data (the shape that an input gives, how many elements are not zero), a program computes them as a
    tensor, and from here on the symbols in types are these numbers. A run in which one is negative ends there, with `message`
    if there is one; so the program gives −1 where the data makes no sense (sizes that differ, an index outside its axis).

    1. `values` has rank 1 and one element for each symbol.
    2. Symbols are different names, and neither "past" nor "capacity".
    3. No other operation binds them, and they are used after this one only.

    ```mlir
    otf.bind %shape ["rows", "columns"] : tensor<2xi64>
    otf.bind %inside ["gather"] "an index is outside its axis" : tensor<1xi64>
    ```
  }];
  let arguments = (ins TensorOf<[I64]>:$values, StrArrayAttr:$symbols, OptionalAttr<StrAttr>:$message);
  let assemblyFormat = "$values $symbols ($message^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def OTF_IfOp : OTF_Op<"if", [NoRegionArguments, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "the results of one of two branches";
  let description = [{
    Only the branch that `condition` picks is run. Branches see the values around them.

    1. Both yield values of the results' types.

    ```mlir
    %y = otf.if %c : (tensor<i1>) -> tensor<4xf32> {
      otf.yield %a : tensor<4xf32>
    } else {
      otf.yield %b : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins 0DTensorOf<[I1]>:$condition);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$thenBranch, SizedRegion<1>:$elseBranch);
  let assemblyFormat = "$condition attr-dict `:` functional-type(operands, results) $thenBranch `else` $elseBranch";
  let hasVerifier = 1;
}

def OTF_LoopOp : OTF_Op<"loop", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "repeats its body while a condition holds";
  let description = [{
    The body's arguments are `inits` at first, then what it yields after the next condition. Results are the last of these. A
    condition that is false at first runs no body.

    1. The body yields a condition, and values of the types of `inits`, which are those of the results too.

    ```mlir
    %n = otf.loop %more, %zero : (tensor<i1>, tensor<i64>) -> tensor<i64> {
    ^bb0(%i: tensor<i64>):
      ...
      otf.yield %again, %next : tensor<i1>, tensor<i64>
    }
    ```
  }];
  let arguments = (ins 0DTensorOf<[I1]>:$condition, Variadic<AnyRankedTensor>:$inits);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$condition (`,` $inits^)? attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}

def OTF_ReshapeOp : OTF_Op<"reshape", [Pure]> {
  let summary = "the same elements in the same row-major order under another shape";
  let description = [{
    Never a copy.

    1. Both shapes have equally many elements, as polynomials. Only where `checked` says that the program of an `otf.bind` before it
       compared them does the verifier not ask.

    ```mlir
    %1 = otf.reshape %0 : tensor<?x?x576xf32, #otf.dims<"b", "s">> -> tensor<?x?x9x64xf32, #otf.dims<"b", "s">>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$source, UnitAttr:$checked);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===------------------------------------------------------------------------------------------===//
// Operators
//===------------------------------------------------------------------------------------------===//

def OTF_LinearOp : OTF_Op<"linear", [Pure, SingleBlock]> {
  let summary = "y = x Wᵀ + bias, then an epilogue for each element";
  let description = [{
    x is [..., K] of f32 or [..., R] of i8 where R is the record size of `otf.prologue`; W is N x K; the result is [..., N].

    1. x and the result agree in all dimensions but the last.
    2. The last dimension of x is K (or the record of W's encoding), that of the result N.
    3. bias, if present, has N elements.
    4. An epilogue gets the f32 sum and the result's indices, and yields an element of the result.
       It may read any tensor at any index.
    5. With `window` it is a convolution: x is [N, spatial sizes..., C], the result [N, output sizes..., M], W is M x (taps · C), and a row of the
       product is the window's taps one after another, C elements each. Of records, C is a multiple of 32 and there are no outliers; a
       record of zeros stands for what lies outside. Rules 1 and 2 then are about C and the number of dimensions.

    ```mlir
    %y = otf.linear %x, %w bias %b : (tensor<?x576xf32, #otf.dims<"s">>, !otf.matrix<48x576, #otf.encoding<f32>>, tensor<48xf32>)
        -> tensor<?x48xf32, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, OTF_MatrixType:$weight, Optional<OTF_F32Tensor>:$bias, OptionalAttr<OTF_WindowAttr>:$window);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region AnyRegion:$epilogue);
  let extraClassDeclaration = [{
    /// Whether a CPU divides the work by rows of the result and not by tiles of the weight: where positions of an image
    /// make many rows, and few output channels would leave threads idle.
    bool isDividedByRows();
  }];
  let builders = [OpBuilder<(ins "mlir::Type":$result, "mlir::Value":$input, "mlir::Value":$weight, "mlir::Value":$bias),
                            "build($_builder, $_state, result, input, weight, bias, WindowAttr());">];
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` functional-type(operands, results) (`epilogue` $epilogue^)?
  }];
  let hasVerifier = 1;
}

def OTF_EmbeddingOp : OTF_Op<"embedding", [Pure]> {
  let summary = "rows of a table";
  let description = [{
    result[..., :] = W[ids[...], :]. Negative ids count from the end. 1. The result is ids' shape with K appended.

    ```mlir
    %x = otf.embedding %ids, %table : (tensor<?x?xi64, #otf.dims<"b", "s">>, !otf.matrix<49152x576, #otf.encoding<f32>>)
        -> tensor<?x?x576xf32, #otf.dims<"b", "s">>
    ```
  }];
  let arguments = (ins TensorOf<[I64, I32]>:$ids, OTF_MatrixType:$table);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_NormOp : OTF_Op<"norm", [Pure, AttrSizedOperandSegments]> {
  let summary = "root-mean-square or layer normalisation of each row";
  let description = [{
    rms: x / sqrt(mean(x²) + epsilon); layer: (x − mean) / sqrt(var + epsilon) with the population variance. Then times `scale` and plus
    `bias`, each of K elements, if present.

    ```mlir
    %y = otf.norm rms %x scale %g {epsilon = 1.0e-5 : f32} : (tensor<?x576xf32, #otf.dims<"s">>, tensor<576xf32>) -> tensor<?x576xf32, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins OTF_NormKind:$kind, OTF_F32Tensor:$input, Optional<OTF_F32Tensor>:$scale, Optional<OTF_F32Tensor>:$bias,
                       F32Attr:$epsilon);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$kind $input (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_OnGridOp : OTF_Op<"on_grid", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "x rounded to a grid of 256 values, as a model that is quantized says";
  let description = [{
    With `grid` = [scale, zero]: (clamp(rint(x / scale) + zero, -128, 127) - zero) · scale. A zero point of uint8 is 128 less here. It
    is idempotent. `otf-encode` leaves none: a linear of codes that the file gave reads x as a record on this grid, whoever else
    reads it gets the body.

    1. `grid` has two elements.

    ```mlir
    %y = otf.on_grid %x, %grid : (tensor<?x576xf32, #otf.dims<"s">>, tensor<2xf32>) -> tensor<?x576xf32, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins OTF_F32Tensor:$input, OTF_F32Tensor:$grid);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$input `,` $grid attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_RotateOp : OTF_Op<"rotate", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rows multiplied by an orthogonal matrix";
  let description = [{
    What a linear with a rotated weight reads: (R x) · (R w) = x · w. `otf-rotate` makes it, a prologue takes it in (`otf-fuse-prologue`).

    1. A row is static, and segments of the rotation divide it.

    ```mlir
    %y = otf.rotate %x by <block = 64, factor = 9> : tensor<?x576xf32, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins OTF_F32Tensor:$input, OTF_RotationAttr:$rotation);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$input `by` $rotation attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def OTF_PrologueOp : OTF_Op<"prologue", [Pure, AttrSizedOperandSegments]> {
  let summary = "what a contraction reads: rows normalised, reordered and quantized once for all its consumers";
  let description = [{
    Turns x [..., K] into records [..., R] of bytes (docs/Architecture.md). `columns` gives the weight whose column index orders x; it is needed where
    that weight has outliers. Norm operands are those of `otf.norm`. With `grid`, which is that of `otf.on_grid`, the codes are clamp(rint(x / scale) + zero, -128,
    127) and every scale in the record is 1; so the sum of a linear counts in units of the grid's scale and is too large by zero · Σ W.

    1. R is the record size for K columns less the outliers of `columns`, and those outliers, rounded up to 64 bytes.
    2. K is static, and that of `columns`, if present.
    3. Kind `none` has neither scale nor bias.
    4. `grid`, if present, has two elements, and there are no outliers.
    5. `rotation`, if present, is what happens to a row after the norm (`otf.rotate`). Its segments divide K, and there are neither outliers nor a grid.

    ```mlir
    %r = otf.prologue rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x576xf32, #otf.dims<"s">>) -> tensor<?x768xi8, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins OTF_NormKind:$kind, OTF_F32Tensor:$input, Optional<OTF_F32Tensor>:$scale, Optional<OTF_F32Tensor>:$bias,
                       Optional<OTF_MatrixType>:$columns, Optional<OTF_F32Tensor>:$grid, DefaultValuedAttr<F32Attr, "0.0f">:$epsilon,
                       OptionalAttr<OTF_RotationAttr>:$rotation);
  let results = (outs TensorOf<[I8]>:$result);
  let assemblyFormat = [{
    $kind $input (`scale` $scale^)? (`bias` $bias^)? (`columns` $columns^)? (`grid` $grid^)? (`by` $rotation^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def OTF_ObserveOp : OTF_Op<"observe"> {
  let summary = "adds the rows of a tensor to statistics that the caller keeps";
  let description = [{
    x is [..., K]: M rows of K channels. The statistics are memory of the caller (arguments of the function), zeros before the first run:
    `rows` += M; row 0 to 4 of `moments` are, for each channel, Σx, Σ|x|, Σx², the least value or 0, the largest or 0; `histogram` counts values by the top
    12 bits of their f32 (sign, exponent, 3 bits of mantissa), zeros of either sign at 0; `products` are the sums Σ x_i x_j for
    j ≤ i, row i from i(i+1)/2 on. They are added up in f32 within a run and over runs, all else in f64 and integers. With no elements `products` is left out. No element of x is kept.

    1. K is static, x has a dimension, `rows` has one element, `moments` is 5 x K, and `histogram` has 4096.
    2. `products` has K(K+1)/2 elements or none.
    3. The statistics are different arguments of the function, or of the kernel that it is in.

    ```mlir
    otf.observe %x into %rows, %moments, %histogram, %products : tensor<?x64xf32, #otf.dims<"s">>, tensor<1xi64>, tensor<5x64xf64>,
        tensor<4096xi64>, tensor<2080xf32>
    ```
  }];
  let arguments = (ins OTF_F32Tensor:$input, TensorOf<[I64]>:$rows, TensorOf<[F64]>:$moments, TensorOf<[I64]>:$histogram,
                       OTF_F32Tensor:$products);
  let assemblyFormat = [{
    $input `into` $rows `,` $moments `,` $histogram `,` $products attr-dict `:` type($input) `,` type($rows) `,` type($moments) `,`
    type($histogram) `,` type($products)
  }];
  let hasVerifier = 1;
}

def OTF_RopeOp : OTF_Op<"rope", [Pure]> {
  let summary = "rotary position embedding, halves rotated";
  let description = [{
    x is [B, H, S, D]; cos and sin are [B, S, R] with R ≤ D even. With h = R/2 the first R elements become
    x[i]·cos[i] − x[i+h]·sin[i] for i < h, x[i]·cos[i] + x[i−h]·sin[i] else; the rest pass.
    With `positions_first` x is [B, S, H, D].

    1. The result is like x; cos and sin are alike.
    2. cos and sin are [B or 1, S, R].
    3. D and R are static, and R is even and at most D.

    ```mlir
    %y = otf.rope %x, %cos, %sin : (tensor<?x9x?x64xf32, #otf.dims<"b", "s">>, tensor<?x?x64xf32, #otf.dims<"b", "s">>,
        tensor<?x?x64xf32, #otf.dims<"b", "s">>) -> tensor<?x9x?x64xf32, #otf.dims<"b", "s">>
    ```
  }];
  let arguments = (ins OTF_F32Tensor:$input, OTF_F32Tensor:$cos, OTF_F32Tensor:$sin, UnitAttr:$positions_first);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_AppendOp : OTF_Op<"append"> {
  let summary = "adds new positions to a cache";
  let description = [{
    new is [B, H, S, D], or [B, S, H, D] with `positions_first`. The result is the cache after the step, which is S positions longer.
    New positions come last; with `at`, those of batch entry b begin at at[b], and what would lie outside of the longer cache is dropped. Rows
    that are padded behind (GroupQueryAttention) so write over their padding. Positions of the longer cache that a step does not write hold
    what an earlier step wrote, or zeros.

    1. `at` has one element for each batch entry.

    ```mlir
    %k = otf.append %past, %new : (!otf.state<3x64xf32>, tensor<?x3x?x64xf32, #otf.dims<"b", "s">>) -> !otf.state<3x64xf32>
    ```
  }];
  let arguments = (ins OTF_StateType:$past, OTF_F32Tensor:$update, Optional<TensorOf<[I64]>>:$at, UnitAttr:$positions_first);
  let results = (outs OTF_StateType:$result);
  let assemblyFormat = "$past `,` $update (`at` $at^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_ReadOp : OTF_Op<"read", [Pure]> {
  let summary = "a cache's content as a tensor";
  let description = [{
    What a model reads of a cache outside attention. `otf-raise` leaves none: it exists so that such a reader can be named.

    1. The result is [batch, heads, length, width] with the cache's heads and width.

    ```mlir
    %t = otf.read %k : (!otf.state<3x64xf32>) -> tensor<?x3x?x64xf32, #otf.dims<"b", "past + s">>
    ```
  }];
  let arguments = (ins OTF_StateType:$state);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$state attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_AttentionOp : OTF_Op<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scale · q kᵀ + mask) v, heads grouped";
  let description = [{
    q is [B, H, S, D]; key and value are caches or tensors of [B, Hkv, T, D] and [B, Hkv, T, Dv]; the result is [B, H, S, Dv].
    Query head h reads head h / (H / Hkv). mask: i1 keeps where true, f32 is added. A query whose every key is masked gives 0.
    `softcap` c > 0 replaces a score s by c·tanh(s/c) before the mask. `sink` is one more score for each head, of a key whose value is 0. With `positions_first` q and the result are [B, S, H, D].

    1. Tensors have rank 4. Key and value that are tensors have the batch of q and one length T.
    2. Key and value have equally many heads Hkv, and H is a multiple of it.
    3. The key's width is the query's.
    4. mask is [B or 1, H or 1, S or 1, T]; where keys are in a cache, T is known to the session only.
    5. The result is q with the value's width.
    6. sink has H elements.

    ```mlir
    %y = otf.attention %q, %k, %v mask %m {scale = 0.125 : f32} : (tensor<?x9x?x64xf32, #otf.dims<"b", "s">>, !otf.state<3x64xf32>,
        !otf.state<3x64xf32>, tensor<?x1x?x?xi1, #otf.dims<"b", "s", "p + s">>) -> tensor<?x9x?x64xf32, #otf.dims<"b", "s">>
    ```
  }];
  let arguments = (ins OTF_F32Tensor:$query, AnyTypeOf<[OTF_StateType, OTF_F32Tensor]>:$key, AnyTypeOf<[OTF_StateType, OTF_F32Tensor]>:$value,
                       Optional<TensorOf<[I1, F32]>>:$mask, Optional<OTF_F32Tensor>:$sink, F32Attr:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap, UnitAttr:$positions_first);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$query `,` $key `,` $value (`mask` $mask^)? (`sink` $sink^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def OTF_GatedActivationOp : OTF_Op<"gated_activation", [Pure, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "f(gate) · up for each element";
  let description = [{
    ```mlir
    %y = otf.gated_activation silu %gate, %up : tensor<?x1536xf32, #otf.dims<"s">>
    ```
  }];
  let arguments = (ins OTF_Activation:$function, OTF_F32Tensor:$gate, OTF_F32Tensor:$up);
  let results = (outs OTF_F32Tensor:$result);
  let assemblyFormat = "$function $gate `,` $up attr-dict `:` type($result)";
}

def OTF_ComputeOp : OTF_Op<"compute", [Pure, SingleBlockImplicitTerminator<"EndOp">]> {
  let summary = "tensors that independent work items write by loads and stores";
  let description = [{
    For what is no function from an output index to a scalar: running sums, sorting, scattering, recurrences, compaction. The body runs
    once for each work item 0 … `extent` − 1, in any order and in parallel. It gets the item's number and, for each result, a
    handle to store into and to load from. It reads tensors from outside by `tensor.extract`, as a `tensor.generate` does.

    What the verifier cannot see is the writer's promise: an item reads and writes only elements that no other item writes; every
    element of a result that is used gets stored; an element is loaded only after it was stored. The reference interpreter checks
    each of these. A result that nobody uses is scratch memory.

    1. `extent` is a size.
    2. The body's arguments are an index and, for each result, a memref of its shape and element type.
    3. Handles are operands of `memref.load` and `memref.store` only, which use nothing else.
    4. Besides these the body has operations of arith, math, index and scf, `tensor.extract`, `tensor.dim` and `otf.size` only.

    A running sum along each row, which a generate would compute from its start for each element:

    ```mlir
    %sums = otf.compute "b" : tensor<?x8xf32, #otf.dims<"b">> {
    ^bb0(%row: index, %out: memref<?x8xf32>):
      %total = scf.for %i = %zero to %eight step %one iter_args(%sum = %nothing) -> (f32) {
        %x = tensor.extract %data[%row, %i] : tensor<?x8xf32, #otf.dims<"b">>
        %next = arith.addf %sum, %x : f32
        memref.store %next, %out[%row, %i] : memref<?x8xf32>
        scf.yield %next : f32
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$extent);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$extent attr-dict `:` type($results) $body";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "mlir::TypeRange":$results, "const ::otf::Size &":$extent,
      "llvm::function_ref<void(mlir::OpBuilder &, mlir::Value item, mlir::ValueRange handles)>":$body)>];
}

def OTF_EndOp : OTF_Op<"end", [Pure, ReturnLike, Terminator, ParentOneOf<["ComputeOp"]>]> {
  let summary = "the end of a work item";
  let description = [{
    Left out in text.

    ```mlir
    otf.end
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def OTF_YieldOp : OTF_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["LinearOp", "IfOp", "LoopOp"]>]> {
  let summary = "the value of an epilogue, or the values of a branch or a loop's body";
  let description = [{
    ```mlir
    otf.yield %sum : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let extraClassDeclaration = [{
    /// The one value of an epilogue.
    ::mlir::Value getValue() { return getValues().front(); }
  }];
}

#endif // OTF_DIALECTS_OTF_OTFOPS_TD
