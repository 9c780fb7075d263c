// SPDX-License-Identifier: Apache-2.0
//
// The frame of an entry: constants, sizes and pointers; the emitter of the root operator fills it.

#include "lib/Codegen/CUDA/EmitKernel.h"
#include "lib/Codegen/CUDA/DeviceLibrary.h"
#include "lib/Codegen/CUDA/KernelFrame.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace otf::cuda {

otf::Size KernelFrame::gridFor(ArrayRef<otf::Size> shape) {
  constexpr int64_t kThreads = 256;
  int64_t fixed = 1;
  otf::Size blocks = 1;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (std::optional<int64_t> constant = size.constant())
      fixed *= *constant;
    else if (d + 1 == shape.size())
      fixed *= 8 * kThreads;
    else
      blocks = blocks * size;
  }
  return blocks * otf::Size(std::max<int64_t>((fixed + kThreads - 1) / kThreads, 1));
}

/// `dims` holds d0, d1, … and then, for kernels on caches, past, capacity and batch
/// (passes/Lower/Outline.cpp).
static void bindSizes(KernelFrame &k, plan::KernelOp kernel) {
  std::set<std::string> used = kernel.getSymbols();
  bool caches = llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<StateType>);
  int64_t count = 0;
  for (const std::string &name : used) {
    int64_t number;
    if (StringRef(name).starts_with("d") && !StringRef(name).drop_front().getAsInteger(10, number))
      count = std::max(count, number + 1);
  }
  std::vector<std::string> order;
  for (int64_t i = 0; i < count; ++i)
    order.push_back("d" + std::to_string(i));
  if (caches)
    order.insert(order.end(), {"past", "capacity", "batch"});
  const size_t first = k.part ? k.part->firstDim : 0;
  for (auto [i, name] : llvm::enumerate(order)) {
    k.symbols.insert(name);
    k.line("const long long " + name + " = a.dims[" + Twine(first + i) + "];");
  }
}

/// How elements lie in memory: i1 is a byte, index is i64. Records are bytes without a sign.
static std::string storageName(Type element) {
  return element.isInteger(1) ? "bool" : ScalarPrinter::typeName(element);
}

static bool bindMemory(KernelFrame &k, Operation *op, Value value, unsigned number, bool written) {
  Memory memory;
  memory.pointer = (written ? "y" : "b") + std::to_string(number);
  std::string type = "void";
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType())) {
    memory.element = tensor.getElementType();
    memory.shape = sizesOf(tensor);
    type = storageName(memory.element);
  } else if (auto state = dyn_cast<StateType>(value.getType())) {
    memory.element = state.getElementType();
    type = storageName(memory.element);
    written = true; // an append writes the cache it is given
  }
  if (type.empty()) {
    op->emitError() << "a CUDA kernel cannot read " << value.getType();
    return false;
  }
  type = written ? type : "const " + type;
  // Not __restrict__: what is read through that may come from before the kernel waited for its inputs (Prelude.cuh).
  k.line(type + " *const " + memory.pointer + " = static_cast<" + type + " *>(a.buffers[" +
         Twine((k.part ? k.part->firstBuffer : 0) + number) + "]);");
  k.memory[value] = memory;
  return true;
}

/// A constant tensor: an array before the entry, or, if all elements are one, that.
static bool bindConstant(KernelFrame &k, plan::KernelOp kernel, arith::ConstantOp op,
                         DenseElementsAttr value, std::string &globals) {
  auto type = cast<RankedTensorType>(value.getType());
  Memory memory;
  memory.element = type.getElementType();
  memory.shape = sizesOf(type);
  auto text = [&](Attribute element) { return ScalarPrinter::literal(element); };
  if (value.isSplat()) {
    memory.splat = text(value.getSplatValue<Attribute>());
    if (!memory.splat.empty())
      memory.splat = "(" + ScalarPrinter::typeName(memory.element) + ")" +
                     (memory.element.isF16() || memory.element.isBF16() ? "(" + memory.splat + ")"
                                                                        : memory.splat);
  }
  if (!value.isSplat() || memory.splat.empty()) {
    std::string element = storageName(memory.element);
    if (element.empty()) {
      op.emitError() << "a CUDA kernel cannot hold a constant of " << type;
      return false;
    }
    memory.splat.clear();
    std::string name = ((k.part ? k.part->prefix : kernel.getSymName().str()) + "_" + k.fresh("constant"));
    memory.pointer = name;
    // Floats as bits: infinities and NaN have no literal that may stand in an initializer.
    std::string stored = element;
    if (isa<FloatType>(memory.element)) {
      unsigned width = memory.element.getIntOrFloatBitWidth();
      stored =
          ScalarPrinter::typeName(IntegerType::get(op.getContext(), width, IntegerType::Unsigned));
      memory.pointer = "reinterpret_cast<const " + element + " *>(" + name + ")";
    }
    globals += "static __device__ const " + stored + " " + name + "[] = {";
    for (Attribute e : value.getValues<Attribute>()) {
      if (auto number = dyn_cast<FloatAttr>(e))
        globals += llvm::toString(number.getValue().bitcastToAPInt(), 10, /*Signed=*/false) + "ull";
      else
        globals += text(e);
      globals += ", ";
    }
    if (value.empty())
      globals += "0"; // C++ has no array of nothing
    globals += "};\n";
  }
  k.memory[op.getResult()] = memory;
  return true;
}

static bool emitRoot(KernelFrame &k, Operation *root) {
  return llvm::TypeSwitch<Operation *, bool>(root)
      .Case([&](tensor::GenerateOp op) { return emitGenerate(k, op); })
      .Case([&](ComputeOp op) { return emitCompute(k, op); })
      .Case([&](LinearOp op) { return emitLinear(k, op); })
      .Case([&](EmbeddingOp op) { return emitEmbedding(k, op); })
      .Case([&](PrologueOp op) { return emitPrologue(k, op); })
      .Case([&](NormOp op) { return emitNorm(k, op); })
      .Case([&](RotateOp op) { return emitRotate(k, op); })
      .Case([&](RopeOp op) { return emitRope(k, op); })
      .Case([&](AppendOp op) { return emitAppend(k, op); })
      .Case([&](AttentionOp op) { return emitAttention(k, op); })
      .Default([](Operation *op) {
        op->emitError() << "'" << op->getName() << "' has no CUDA kernel";
        return false;
      });
}

bool emitBody(KernelFrame &k, plan::KernelOp kernel, unsigned &number) {
  Operation *root = kernel.getRoot();
  Block &body = kernel.getBody().front();
  auto results = cast<plan::ReturnOp>(body.getTerminator()).getOperands();
  if (!root || results != root->getResults()) {
    kernel.emitError() << "must return the results of the one operator it holds";
    return false;
  }
  bindSizes(k, kernel);
  number = 0;
  for (Value argument : body.getArguments())
    if (!bindMemory(k, kernel, argument, number++, false))
      return false;
  k.work = "static_cast<float *>(nullptr)";
  if (auto attention = dyn_cast<AttentionOp>(root); attention && !k.part && usesWork(attention)) {
    k.work = "work";
    k.line("float *const work = static_cast<float *>(a.buffers[" + Twine(number++) + "]);");
  }
  for (Value result : results)
    if (isa<RankedTensorType>(result.getType()) && !bindMemory(k, kernel, result, number++, true))
      return false;
  if (number > kMostBuffers) {
    kernel.emitError() << "a CUDA kernel takes at most " << kMostBuffers << " buffers, and this one has " << number;
    return false;
  }
  k.result = k.memory.lookup(results.front());
  for (Operation &op : body.without_terminator()) {
    if (&op == root)
      continue;
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (dense && isa<RankedTensorType>(dense.getType())) {
      if (!bindConstant(k, kernel, constant, dense, k.globals))
        return false;
    } else if (auto reshape = dyn_cast<ReshapeOp>(op);
               reshape && k.memory.count(reshape.getSource())) {
      Memory memory = k.memory[reshape.getSource()];
      memory.shape = sizesOf(cast<RankedTensorType>(reshape.getResult().getType()));
      k.memory[reshape.getResult()] = memory;
    } else if (!k.operation(op, {})) {
      return false;
    }
  }
  for (Value operand : root->getOperands())
    if (isa<RankedTensorType, MatrixType, StateType>(operand.getType()) &&
        (!k.memory.count(operand) ||
         (k.memory[operand].pointer.empty() && !isa<tensor::GenerateOp>(root)))) {
      root->emitError() << "reads a value that is not an argument of its kernel";
      return false;
    }
  return emitRoot(k, root);
}

std::optional<CudaKernel> emitCuda(plan::KernelOp kernel) {
  KernelFrame k;
  unsigned number = 0;
  if (!emitBody(k, kernel, number))
    return std::nullopt;
  CudaKernel result;
  result.name = kernel.getSymName().str();
  result.grid = k.grid;
  result.work = k.workBytes;
  auto entry = [&](const std::string &name, const std::string &text) {
    return "extern \"C\" __global__ void __launch_bounds__(otf::kThreads, otf::kBlocks)\n" + name + "(otf::Args<" +
           std::to_string(std::max(number, 1u)) + "> a) {\n  otf::releaseDependents();\n" + text + "}\n\n";
  };
  result.source = k.globals + entry(result.name, k.text);
  if (!k.second.empty()) {
    result.second = result.name + "_second";
    result.secondGrid = k.secondGrid;
    result.secondExtent = k.secondExtent;
    result.source += entry(result.second, k.second);
  }
  return result;
}

CudaSource emitCudaSource(ModuleOp planned) {
  CudaSource source;
  source.text = otfCudaDeviceLibrary;
  source.text += "#line 1 \"entries\"\n";
  for (auto kernel : planned.getOps<plan::KernelOp>()) {
    // What the emitters complain of is no error of the compilation but the reason for the host.
    std::string reason;
    ScopedDiagnosticHandler listen(planned.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return failure(); // passed on
      if (reason.empty())
        reason = diagnostic.str();
      return success();
    });
    std::optional<CudaKernel> emitted = emitCuda(kernel);
    if (!emitted) {
      source.host[kernel.getSymName().str()] = reason.empty() ? "it has no CUDA form" : reason;
      continue;
    }
    source.text += emitted->source;
    source.kernels.push_back(std::move(*emitted));
  }
  emitMerged(planned, source);
  return source;
}

} // namespace otf::cuda
