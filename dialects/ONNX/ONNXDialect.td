// SPDX-License-Identifier: Apache-2.0
//
// The `onnx` dialect: an ONNX file as it is, before anything is understood.
//
// Problem: passes that give meaning to a model want SSA, attributes and locations, not protobuf messages; and a
// model has gigabytes of weights that must not enter the IR.
// Approach: one operation for every NodeProto, one untyped value type (shapes and types are found while raising),
// and an attribute that names bytes in a file.

#ifndef OTF_DIALECTS_ONNX_ONNXDIALECT_TD
#define OTF_DIALECTS_ONNX_ONNXDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/DialectBase.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::otf::onnx";
  let summary = "an ONNX model, one to one with its file";
  let description = [{
    Attributes of the module that holds an imported model:

    | attribute | meaning |
    | --- | --- |
    | `onnx.ir_version` | integer, i64 |
    | `onnx.opsets` | dictionary: domain (`"ai.onnx"` for `""`) to version, i64 |
    | `onnx.producer` | string, name and version of the program that wrote the file |
    | `onnx.folder` | string, the model's folder |
    | `onnx.files` | strings: files that `#onnx.blob` counts, relative to the folder. File 0 is the model itself. A name that starts with `packed:` is memory of the importing process, not a file |

    Arguments and results of `@main` carry:

    | attribute | meaning |
    | --- | --- |
    | `onnx.name` | string, the name in the graph |
    | `onnx.type` | integer, i64: the ONNX element type number (absent on a result whose type the file leaves out) |
    | `onnx.dims` | array of i64 (a fixed size) and strings (a named size); `"?"` is a size without a name, each one another size. Absent: the rank is unknown |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def ONNX_Value : TypeDef<ONNX_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "any ONNX value; its element type and shape are not known yet";
}

def ONNX_AnyValue : DialectType<ONNX_Dialect, CPred<"::llvm::isa<::otf::onnx::ValueType>($_self)">, "ONNX value">,
    BuildableType<"$_builder.getType<::otf::onnx::ValueType>()">;

def ONNX_FileBlobAttr : AttrDef<ONNX_Dialect, "FileBlob"> {
  let mnemonic = "blob";
  let summary = "the bytes of a tensor in a file";
  let description = [{
    `file` counts in the module's `onnx.files`, `offset` and `length` are bytes, `type` is ONNX's element type number
    (`TensorProto.DataType`) and `dims` the shape (left out: a scalar). Bytes are little-endian and in row-major order.

    1. No number is negative.
    2. `length` is the size in bytes of such a tensor, where this compiler knows the element type.

    ```mlir
    #onnx.blob<file = 1, offset = 4096, length = 2304, type = 1, dims = [24, 24]>
    ```
  }];
  let parameters = (ins "int64_t":$file, "int64_t":$offset, "int64_t":$length, "int64_t":$elementType,
                        OptionalArrayRefParameter<"int64_t">:$dims);
  let assemblyFormat = [{
    `<` `file` `=` $file `,` `offset` `=` $offset `,` `length` `=` $length `,` `type` `=` $elementType
    (`,` `dims` `=` `[` $dims^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif
