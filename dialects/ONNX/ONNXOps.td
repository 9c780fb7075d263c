// SPDX-License-Identifier: Apache-2.0
//
// Operations of the `onnx` dialect: a node, an initializer, its use, and the absence of an optional input.
//
// Every value is `!onnx.value`, so no type is printed. A model is a `func.func @main` whose body ends in
// `func.return`; initializers stand beside it in the module.

#ifndef OTF_DIALECTS_ONNX_ONNXOPS_TD
#define OTF_DIALECTS_ONNX_ONNXOPS_TD

include "dialects/ONNX/ONNXDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class ONNX_Op<string mnemonic, list<Trait> traits = []> : Op<ONNX_Dialect, mnemonic, traits>;

def ONNX_NodeOp : ONNX_Op<"node", [Pure]> {
  let summary = "one NodeProto";
  let description = [{
    Holds a node of the graph as the file has it: operator, domain (left out: ai.onnx), the version of the domain's
    operator set that the model imports, the node's name and its attributes.

    1. The operator's name is not empty.
    2. The version is at least 1.
    3. A node has at least one result. An output named `""` in the file is a result without uses.
    4. Subgraphs (`then_branch`, `body`) are regions, named by `body_names` in their order, each of one block that ends in `onnx.yield`.
       They see the values around them.
    5. Another attribute is an `i64`, an `f32`, a string, a dense array of `i64` or `f32`, an array of strings, a tensor,
       or an array of tensors; a tensor is an elements attribute (up to 64 bytes) or an `#onnx.blob`.

    Optional inputs that are left out in the middle are `onnx.none`; those left out at the end are just missing.
    The location is the node's name, or the name of its first named output if it has none.

    ```mlir
    %0 = onnx.node "MatMul" version 13 (%x, %w) name "/layers.0/MatMul"
    %1:2 = onnx.node "Split" version 18 (%0) {axis = 1 : i64, num_outputs = 2 : i64}
    %2 = onnx.node "MatMulNBits" domain "com.microsoft" version 1 (%1#0, %q, %s, %none, %g) {K = 64 : i64}
    ```
  }];
  let arguments = (ins StrAttr:$op_type, DefaultValuedStrAttr<StrAttr, "">:$domain, I64Attr:$version,
                       DefaultValuedStrAttr<StrAttr, "">:$node_name,
                       DictionaryAttr:$attrs,
                       OptionalAttr<StrArrayAttr>:$body_names,
                       Variadic<ONNX_AnyValue>:$inputs);
  let results = (outs Variadic<ONNX_AnyValue>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    $op_type (`domain` $domain^)? `version` $version ` ` `(` $inputs `)` (`name` $node_name^)?
    `` custom<Attributes>($attrs) (`bodies` $body_names^ $bodies)? attr-dict-with-keyword `` custom<DeclaredResults>(type($outputs))
  }];
  let extraClassDeclaration = [{
    /// The attribute of the node with this name, or null.
    ::mlir::Attribute attribute(::llvm::StringRef name) { return getAttrs().get(name); }
    /// `i64` attribute, or the default where the node does not have it (or has it with another type).
    int64_t intOr(::llvm::StringRef name, int64_t otherwise);
    float floatOr(::llvm::StringRef name, float otherwise);
    ::llvm::StringRef stringOr(::llvm::StringRef name, ::llvm::StringRef otherwise);
    /// The input at this position, or null where it is left out (`onnx.none` or past the end).
    ::mlir::Value inputOrNull(unsigned position);
    /// The block of a subgraph, or null.
    ::mlir::Block *body(::llvm::StringRef name);
    /// Is it `name` of ai.onnx?
    bool is(::llvm::StringRef name) { return getDomain().empty() && getOpType() == name; }
  }];
  let hasVerifier = 1;
}

def ONNX_YieldOp : ONNX_Op<"yield", [Pure, HasParent<"NodeOp">, Terminator]> {
  let summary = "the outputs of a subgraph";
  let description = [{
    ```mlir
    onnx.yield %0, %1
    ```
  }];
  let arguments = (ins Variadic<ONNX_AnyValue>:$values);
  let assemblyFormat = "($values^)? attr-dict";
}

def ONNX_InitializerOp : ONNX_Op<"initializer", [Symbol]> {
  let summary = "a constant of the graph";
  let description = [{
    Names a TensorProto of the graph. Up to 64 bytes it is an elements attribute, above that an `#onnx.blob`.
    The symbol is the tensor's name, with a suffix where another symbol has that name already.

    1. The value is an `#onnx.blob` or an elements attribute.

    ```mlir
    onnx.initializer @axes = dense<[-1]> : tensor<1xi64>
    onnx.initializer @"model.layers.0.mlp.up_proj.weight" = #onnx.blob<file = 1, offset = 0, length = 65536, type = 1, dims = [128, 128]>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, AnyAttr:$value);
  let assemblyFormat = "$sym_name `=` $value attr-dict";
  let extraClassDeclaration = [{
    /// The blob, or null where the value is in the IR.
    FileBlobAttr blob() { return ::llvm::dyn_cast<FileBlobAttr>(getValue()); }
    /// ONNX's element type number; 0 where an elements attribute has a type that ONNX does not have.
    int64_t elementType();
    ::llvm::ArrayRef<int64_t> dims();
  }];
  let hasVerifier = 1;
}

def ONNX_GetOp : ONNX_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of an initializer";
  let description = [{
    1. The symbol names an `onnx.initializer`.

    ```mlir
    %w = onnx.get @"model.layers.0.mlp.up_proj.weight"
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$initializer);
  let results = (outs ONNX_AnyValue:$result);
  let assemblyFormat = "$initializer attr-dict";
}

def ONNX_NoneOp : ONNX_Op<"none", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "an optional input that is left out";
  let description = [{
    ```mlir
    %none = onnx.none
    ```
  }];
  let results = (outs ONNX_AnyValue:$result);
  let assemblyFormat = "attr-dict";
}

#endif
