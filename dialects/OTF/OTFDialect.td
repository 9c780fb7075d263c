// SPDX-License-Identifier: Apache-2.0
//
// The otf dialect: its name, attributes and types.

#ifndef OTF_DIALECTS_OTF_OTFDIALECT_TD
#define OTF_DIALECTS_OTF_OTFDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

def OTF_Dialect : Dialect {
  let name = "otf";
  let cppNamespace = "::otf";
  let summary = "Quantized inference on symbolic shapes";
  let description = [{
    Operators that have a kernel of their own, and the decisions taken about them. Everything that
    is a function from an output index to a scalar is a `tensor.generate` instead; see
    docs/Architecture.md for why.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::memref::MemRefDialect"]; // handles of otf.compute
  let extraClassDeclaration = "void registerTypes();";
}

class OTF_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<OTF_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class OTF_Type<string name, string typeMnemonic> : TypeDef<OTF_Dialect, name> {
  let mnemonic = typeMnemonic;
}

//===------------------------------------------------------------------------------------------===//
// Attributes
//===------------------------------------------------------------------------------------------===//

def OTF_DimsAttr : OTF_Attr<"Dims", "dims",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "The sizes of a tensor's dynamic dimensions, in order";
  let description = [{
    One string for each `?` of the tensor type, a polynomial over symbols in the canonical text of
    `otf::Size`. A constant is a static dimension and is refused here.

    ```mlir
    tensor<?x?x576xf32, #otf.dims<"batch_size", "past_sequence_length + sequence_length">>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"mlir::StringAttr">:$sizes);
  let assemblyFormat = "`<` $sizes `>`";
}

def OTF_EncodingKind : I32EnumAttr<"EncodingKind", "how a weight is coded", [
    I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"f16", 1>, I32EnumAttrCase<"int8", 2>,
    I32EnumAttrCase<"int4", 3>, I32EnumAttrCase<"codebook2", 4>,
    I32EnumAttrCase<"grid8", 5>, I32EnumAttrCase<"grid4", 6>, I32EnumAttrCase<"grid2", 7>,
    I32EnumAttrCase<"grid8z", 8>, I32EnumAttrCase<"grid4z", 9>, I32EnumAttrCase<"grid2z", 10>,
    I32EnumAttrCase<"planes3x1", 11>, I32EnumAttrCase<"planes3x2", 12>, I32EnumAttrCase<"planes3x3", 13>,
    I32EnumAttrCase<"planes3x4", 14>, I32EnumAttrCase<"planes4x1", 15>, I32EnumAttrCase<"planes4x2", 16>, I32EnumAttrCase<"planes4x3", 17>,
    I32EnumAttrCase<"ternary_sign", 18>]> {
  let cppNamespace = "::otf";
  let genSpecializedAttr = 0;
}

def OTF_EncodingAttr : OTF_Attr<"Encoding", "encoding"> {
  let summary = "How a weight is coded: kind and columns that share a scale";
  let description = [{
    `#otf.encoding<int4, group = 32>`. `group` counts columns, a multiple of 32, or 0 for a whole
    row; it is 0 for f32 and f16, which have no scales. lib/Encoding draws each kind to the bit. The grids (`grid4`, with zeros
    `grid4z`, …) keep what a file has quantized. `planes3x2` is a trellis code of windows of 3 bits at 2 bits a weight, best with
    `group = 0`: planes3x1 to planes3x4, planes4x1 to planes4x3.
  }];
  let parameters = (ins EnumParameter<OTF_EncodingKind>:$kind, DefaultValuedParameter<"int64_t", "0">:$group);
  let assemblyFormat = "`<` $kind (`,` `group` `=` $group^)? `>`";
  let genVerifyDecl = 1;
}

def OTF_OutliersAttr : OTF_Attr<"Outliers", "outliers"> {
  let summary = "Columns of a weight that are kept in f16";
  let description = [{
    `#otf.outliers<[3, 17]>`: column indices, ascending, without repeats. The other columns close up
    and are coded; `otf-choose-outliers` writes it.
  }];
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$columns);
  let assemblyFormat = "`<` `[` (`]`) : ($columns^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def OTF_RotationAttr : OTF_Attr<"Rotation", "rotation"> {
  let summary = "An orthogonal map of a row, which a linear's input and weight take together";
  let description = [{
    `#otf.rotation<block = 64, factor = 9, seed = 1>`: columns are cut into segments of block · factor, and each is multiplied by
    (F ⊗ H / sqrt(block)) · diag(±1). H is the Sylvester Hadamard matrix of order `block`, F an orthogonal matrix of order `factor`, and the
    signs are random; lib/Encoding/Rotation.h makes F and the signs out of `seed`. Seed 0 has no signs.

    1. `block` is a power of two, `factor` is from 1 to 63, and their product at most 11264.
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "1">:$block, DefaultValuedParameter<"int64_t", "1">:$factor,
                        DefaultValuedParameter<"uint64_t", "0">:$seed);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def OTF_BlobAttr : OTF_Attr<"Blob", "blob"> {
  let summary = "Bytes of a weight in a file";
  let description = [{
    `#otf.blob<file = 0, offset = 4096, length = 1327104, type = f16, transposed>`: `file` indexes the
    module's `onnx.files`; offset and length are bytes; `type` is the element type in the file.
    `transposed` says that the file holds K x N (ONNX MatMul, GPT-2's Conv1D) where the weight is N x K.
    Numbers are not negative, and elements are integers or floats.
  }];
  let parameters = (ins "int64_t":$file, "int64_t":$offset, "int64_t":$length, "mlir::Type":$type,
                        DefaultValuedParameter<"bool", "false">:$transposed);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def OTF_GivenAttr : OTF_Attr<"Given", "given"> {
  let summary = "That a weight's bytes in the file are codes, and what they mean";
  let description = [{
    weight[n, k] = scale · (code − zero point), one scale and one zero point for `rowBlock` rows and `block` columns:

    1. The code of element (n, k) is at place n · pitch + k (a transposed blob: k · pitch + n) of codes of `bits` bits (2, 4 or 8),
       packed from the lowest bits of a byte up, or from the highest down with `highFirst`.
    2. Its scale is at (n / rowBlock) · scaleRow + (k / block) · scaleBlock of `scales`, its zero point at the same with zeroRow and
       zeroBlock in `zeros`. Both are an `#otf.blob` or an array of f32. Zeros of integer type are packed as codes are. Without `zeros` it is `zero`.
    3. With `table` the weight is scale · table[code]; there are no zero points.
  }];
  let parameters = (ins "int64_t":$bits, DefaultValuedParameter<"bool", "false">:$isSigned, DefaultValuedParameter<"bool", "false">:$highFirst,
                        "int64_t":$pitch, DefaultValuedParameter<"int64_t", "1">:$rowBlock, "int64_t":$block, "mlir::Attribute":$scales, DefaultValuedParameter<"int64_t", "0">:$scaleRow,
                        DefaultValuedParameter<"int64_t", "0">:$scaleBlock, OptionalParameter<"mlir::Attribute">:$zeros,
                        DefaultValuedParameter<"int64_t", "0">:$zeroRow, DefaultValuedParameter<"int64_t", "0">:$zeroBlock,
                        DefaultValuedParameter<"int64_t", "0">:$zero, OptionalParameter<"mlir::DenseF32ArrayAttr">:$table);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def OTF_WindowAttr : OTF_Attr<"Window", "window"> {
  let summary = "Where the taps of a window lie that slides over a tensor with channels last";
  let description = [{
    `#otf.window<[3, 3] stride [2, 1] dilation [1, 1] before [1, 1]>`: of each spatial axis the number of taps, and that tap k of the window at o
    is at o · stride + k · dilation − before. What lies outside the tensor is zero. Taps count row-major, the last axis fastest.

    1. All lists have one length, from 1 to 3. Taps, strides and dilations are positive, and nothing is negative.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$kernel, ArrayRefParameter<"int64_t">:$stride, ArrayRefParameter<"int64_t">:$dilation,
                        ArrayRefParameter<"int64_t">:$before);
  let assemblyFormat = "`<` `[` $kernel `]` `stride` `[` $stride `]` `dilation` `[` $dilation `]` `before` `[` $before `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getTaps() const;
  }];
}

def OTF_NormKind : I32EnumAttr<"NormKind", "a normalisation of rows", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"rms", 1>, I32EnumAttrCase<"layer", 2>]> {
  let cppNamespace = "::otf";
}

def OTF_Activation : I32EnumAttr<"Activation", "the function of a gated unit", [
    I32EnumAttrCase<"silu", 0>, I32EnumAttrCase<"gelu", 1>, I32EnumAttrCase<"gelu_tanh", 2>,
    I32EnumAttrCase<"relu", 3>]> {
  let cppNamespace = "::otf";
}

//===------------------------------------------------------------------------------------------===//
// Types
//===------------------------------------------------------------------------------------------===//

def OTF_MatrixType : OTF_Type<"Matrix", "matrix"> {
  let summary = "A weight matrix, N outputs by K inputs, and how it is coded";
  let description = [{
    `!otf.matrix<1536x576, #otf.encoding<int4, group = 32>, outliers = 6>`. In memory it is the blob
    of tiles that docs/Architecture.md describes. `outliers` counts f16 columns. Rows and columns are at most 2^31 each,
    so that sizes of tiles and records in bytes fit in 64 bits.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "EncodingAttr":$encoding,
                        DefaultValuedParameter<"int64_t", "0">:$outliers);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def OTF_StateType : OTF_Type<"State", "state"> {
  let summary = "A key or value cache owned by a session";
  let description = [{
    `!otf.state<3x64xf32>`: [batch, heads, length, width] with heads 3 and width 64; batch and length are
    the session's. It grows along length by what a step appends.
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$width, "mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
}

#endif // OTF_DIALECTS_OTF_OTFDIALECT_TD
