// SPDX-License-Identifier: Apache-2.0
//
// Passes from operators to a plan, in pipeline order. Part of passes/Passes.td, which has the class.

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
