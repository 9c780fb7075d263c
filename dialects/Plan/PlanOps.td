// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect: kernels as pure functions, and the list of their calls on buffers.

#ifndef OTF_DIALECTS_PLAN_PLANOPS_TD
#define OTF_DIALECTS_PLAN_PLANOPS_TD

include "dialects/OTF/OTFDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::otf::plan";
  let summary = "What a plan file says: kernels, buffers, launches";
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = "void registerTypes();";
}

def Plan_BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Memory that holds a tensor, a matrix or a cache";
  let description = [{ `!plan.buffer<tensor<?x576xf32, #otf.dims<"s">>>` }];
  let parameters = (ins "mlir::Type":$content);
  let assemblyFormat = "`<` $content `>`";
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

//===------------------------------------------------------------------------------------------===//
// Kernels
//===------------------------------------------------------------------------------------------===//

def Plan_KernelOp : Plan_Op<"kernel", [IsolatedFromAbove, FunctionOpInterface, SingleBlock]> {
  let summary = "one fused operator as a pure function";
  let description = [{
    Arguments are tensors, matrices and states; results tensors and states. The body is one otf operator, or one `tensor.generate`, with the
    constants it reads, and `plan.return`. Code generators turn it into a function of include/otf/KernelABI.h.

    1. Arguments' dynamic sizes are named "d0", "d1", … in order of first appearance, so that equal kernels of different layers are equal text; the launch says
       what they are.

    ```mlir
    plan.kernel @norm_0(%x: tensor<?x576xf32, #otf.dims<"d0">>) -> tensor<?x576xf32, #otf.dims<"d0">> {
      %y = otf.norm rms %x {epsilon = 1.0e-5 : f32} : (tensor<?x576xf32, #otf.dims<"d0">>) -> tensor<?x576xf32, #otf.dims<"d0">>
      plan.return %y : tensor<?x576xf32, #otf.dims<"d0">>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "mlir::StringRef":$name, "mlir::FunctionType":$type)>];
  let extraClassDeclaration = [{
    llvm::ArrayRef<mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    llvm::ArrayRef<mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    mlir::Region *getCallableRegion() { return &getBody(); }
    bool isDeclaration() { return false; }
    /// The operator the kernel is about: the one whose results are returned, or an otf.observe, which has none.
    mlir::Operation *getRoot();
    /// The symbols in its types, sizes and extents.
    std::set<std::string> getSymbols();
  }];
}

def Plan_ReturnOp : Plan_Op<"return", [Pure, HasParent<"KernelOp">, ReturnLike, Terminator]> {
  let summary = "a kernel's results";
  let description = [{
    ```mlir
    plan.return %y : tensor<?x576xf32, #otf.dims<"d0">>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Plan_CallOp : Plan_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel applied to values, before buffers are assigned";
  let description = [{
    `sizes` says what the kernel's d0, d1, … are here.

    ```mlir
    %y = plan.call @norm_0(%x) sizes ["batch_size"] : (tensor<?x576xf32, #otf.dims<"batch_size">>) -> tensor<?x576xf32, #otf.dims<"batch_size">>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyType>:$inputs, StrArrayAttr:$sizes);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` `sizes` $sizes attr-dict `:` functional-type($inputs, results)";
}

//===------------------------------------------------------------------------------------------===//
// Buffers
//===------------------------------------------------------------------------------------------===//

class Plan_BufferOp<string mnemonic, string what, string example> : Plan_Op<mnemonic, [Pure]> {
  let summary = what;
  let description = "```mlir\n" # example # "\n```";
  let results = (outs Plan_BufferType:$result);
}

// `element` is the caller's type where memory has a signless one or bits: {element = ui8}, {element = f8E5M2}.
def Plan_InputOp : Plan_BufferOp<"input", "memory that the caller fills",
    "%0 = plan.input \"input_ids\" : !plan.buffer<tensor<?xi64, #otf.dims<\"s\">>>"> {
  let arguments = (ins StrAttr:$name, OptionalAttr<TypeAttr>:$element);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Plan_OutputOp : Plan_BufferOp<"output", "memory that the caller reads after the step",
    "%0 = plan.output \"logits\" : !plan.buffer<tensor<?x10xf32, #otf.dims<\"s\">>>"> {
  let arguments = (ins StrAttr:$name, OptionalAttr<TypeAttr>:$element);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Plan_WeightOp : Plan_BufferOp<"weight", "a weight in the plan",
    "%0 = plan.weight @q : !plan.buffer<!otf.matrix<8x32, #otf.encoding<f32>>>"> {
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
}

def Plan_StateOp : Plan_BufferOp<"state", "a session's cache",
    "%0 = plan.state @key0 : !plan.buffer<!otf.state<3x64xf32>>"> {
  let arguments = (ins FlatSymbolRefAttr:$cache);
  let assemblyFormat = "$cache attr-dict `:` type($result)";
}

def Plan_AllocOp : Plan_Op<"alloc"> {
  let summary = "scratch memory for an intermediate tensor";
  let description = [{
    `slot`, which `otf-schedule` assigns, is the piece of the arena it lies in; buffers share one when their lives do not overlap.

    ```mlir
    %0 = plan.alloc {slot = 2 : i64} : !plan.buffer<tensor<?x576xf32, #otf.dims<"s">>>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$slot);
  let results = (outs Plan_BufferType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Plan_ViewOp : Plan_Op<"view", [Pure]> {
  let summary = "the same memory under another shape";
  let description = [{
    ```mlir
    %1 = plan.view %0 : !plan.buffer<tensor<4x8xf32>> -> !plan.buffer<tensor<32xf32>>
    ```
  }];
  let arguments = (ins Plan_BufferType:$source);
  let results = (outs Plan_BufferType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
}

def Plan_LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel call on buffers: one step of the plan";
  let description = [{
    1. A buffer's content is what the kernel takes or gives: an equal matrix or state, or a tensor of equal element type, rank and static
       dimensions. Where the kernel has a dynamic dimension the tensor may have any.

    The kernel's arguments, then its results. `sizes` are d0, d1, … as in `plan.call`; `extent` (work items) and `grain` are written by `otf-schedule`.

    ```mlir
    plan.launch @norm_0(%0) outs(%1) sizes ["batch_size"] {extent = "batch_size", grain = 1 : i64}
        : (!plan.buffer<tensor<?x576xf32, #otf.dims<"batch_size">>>) outs(!plan.buffer<tensor<?x576xf32, #otf.dims<"batch_size">>>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Plan_BufferType>:$inputs, Variadic<Plan_BufferType>:$outputs, StrArrayAttr:$sizes,
                       OptionalAttr<StrAttr>:$extent, OptionalAttr<I64Attr>:$grain);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `outs` `(` $outputs `)` `sizes` $sizes attr-dict `:` (`(` type($inputs)^ `)`)? (`outs` `(` type($outputs)^ `)`)?
  }];
}

def Plan_BindOp : Plan_Op<"bind"> {
  let summary = "makes the elements of a buffer the values of symbols: one step of the plan";
  let description = [{
    Steps after this one may have sizes of these symbols; memory whose size depends on them is taken then. A negative value
    ends the run with `message`, or one that names the symbol.

    ```mlir
    plan.bind %0 ["rows", "columns"] : !plan.buffer<tensor<2xi64>>
    ```
  }];
  let arguments = (ins Plan_BufferType:$values, StrArrayAttr:$symbols, OptionalAttr<StrAttr>:$message);
  let assemblyFormat = "$values $symbols ($message^)? attr-dict `:` type($values)";
}

def Plan_LabelOp : Plan_Op<"label"> {
  let summary = "a place that jumps and branches name";
  let description = [{
    ```mlir
    plan.label "loop0"
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict";
}

def Plan_JumpOp : Plan_Op<"jump"> {
  let summary = "the run goes on at a label";
  let description = [{
    ```mlir
    plan.jump "loop0"
    ```
  }];
  let arguments = (ins StrAttr:$target);
  let assemblyFormat = "$target attr-dict";
}

def Plan_BranchOp : Plan_Op<"branch"> {
  let summary = "the run goes on at a label if a boolean is false, and with the next step else";
  let description = [{
    ```mlir
    plan.branch %0 else "end0" : !plan.buffer<tensor<i1>>
    ```
  }];
  let arguments = (ins Plan_BufferType:$condition, StrAttr:$target);
  let assemblyFormat = "$condition `else` $target attr-dict `:` type($condition)";
}

#endif // OTF_DIALECTS_PLAN_PLANOPS_TD
