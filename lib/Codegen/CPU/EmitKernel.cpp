// SPDX-License-Identifier: Apache-2.0
//
// The frame of a kernel: its parameters are unpacked from `buffers` and `dims`, then the emitter of
// its root operator writes the loop over work items.

#include "lib/Codegen/CPU/EmitKernel.h"
#include "dialects/Plan/Plan.h"
#include "lib/Codegen/CPU/Operators.h"
#include "lib/Codegen/CPU/ScalarProgram.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace otf::cpu {

/// `dims` holds d0, d1, …, then, for kernels on caches, past, capacity and batch.
static void bindSizes(KernelBuilder &b, plan::KernelOp kernel, Value dims) {
  std::set<std::string> names = kernel.getSymbols();
  bool caches = llvm::any_of(kernel.getArgumentTypes(), llvm::IsaPred<StateType>);
  int64_t count = 0;
  for (const std::string &name : names) {
    int64_t number;
    if (StringRef(name).starts_with("d") && !StringRef(name).drop_front().getAsInteger(10, number))
      count = std::max(count, number + 1);
  }
  SmallVector<std::string> order;
  for (int64_t i = 0; i < count; ++i)
    order.push_back("d" + std::to_string(i));
  if (caches)
    llvm::append_range(order, ArrayRef<std::string>{"past", "capacity", "batch"});
  Memory sizes{dims, b.getI64Type(), {}, false};
  for (auto [i, name] : llvm::enumerate(order))
    b.symbols[name] = arith::IndexCastOp::create(b, b.getIndexType(), b.load(sizes, b.index(i)));
}

static void bindMemory(KernelBuilder &b, Value value, Value pointer, bool written) {
  Memory memory{pointer, {}, {}, written};
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType())) {
    memory.element = tensor.getElementType();
    memory.shape = sizesOf(tensor);
  } else if (auto state = dyn_cast<StateType>(value.getType())) {
    memory.element = state.getElementType();
  }
  b.memory[value] = memory;
}

/// Work items one after another. Handles are where the results lie.
static bool emitCompute(KernelBuilder &b, ComputeOp op, IRMapping &mapping) {
  Block &body = op.getBody().front();
  for (auto [handle, result] : llvm::zip(body.getArguments().drop_front(), op.getResults()))
    b.memory[handle] = b.memory[result];
  bool fine = true;
  b.loop(b.begin, b.end, 1, [&](Value item) {
    mapping.map(body.getArgument(0), item);
    Position position{{}, b.index(0), {}};
    for (Operation &inner : body.without_terminator())
      fine = fine && emitScalar(b, inner, mapping, position);
  });
  return fine;
}

static bool emitRoot(KernelBuilder &b, Operation *root, IRMapping &mapping) {
  Memory result;
  if (root->getNumResults() != 0 && isa<RankedTensorType>(root->getResult(0).getType()))
    result = b.memory[root->getResult(0)];
  return llvm::TypeSwitch<Operation *, bool>(root)
      .Case([&](tensor::GenerateOp op) { return emitGenerate(b, op, result, mapping); })
      .Case([&](ComputeOp op) { return emitCompute(b, op, mapping); })
      .Case([&](LinearOp op) { return emitLinear(b, op, result, mapping); })
      .Case([&](EmbeddingOp op) { return emitEmbedding(b, op, result); })
      .Case([&](PrologueOp op) { return emitPrologue(b, op, result); })
      .Case([&](NormOp op) { return emitNorm(b, op, result); })
      .Case([&](RotateOp op) { return emitRotate(b, op, result); })
      .Case([&](RopeOp op) { return emitRope(b, op, result); })
      .Case([&](AppendOp op) { return emitAppend(b, op); })
      .Case([&](ObserveOp op) { return emitObserve(b, op); })
      .Case([&](AttentionOp op) { return emitAttention(b, op, result); })
      .Default([](Operation *op) {
        op->emitError() << "'" << op->getName() << "' has no kernel on a CPU";
        return false;
      });
}

static bool emitKernel(ModuleOp module, plan::KernelOp kernel) {
  auto *context = module.getContext();
  Operation *root = kernel.getRoot();
  auto results = cast<plan::ReturnOp>(kernel.getBody().front().getTerminator()).getOperands();
  if (!root || results != root->getResults()) {
    kernel.emitError() << "must return the results of the one operator it holds";
    return false;
  }
  if (module.lookupSymbol(kernel.getSymName()) || kernel.getSymName().starts_with("otf_")) {
    kernel.emitError() << "cannot be called " << kernel.getSymName()
                       << ": a function of the kernel library is";
    return false;
  }

  OpBuilder at = OpBuilder::atBlockEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = at.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {pointer, pointer, i64, i64, pointer});
  auto function = LLVM::LLVMFuncOp::create(at, kernel.getLoc(), kernel.getSymName(), type);
  KernelBuilder b(module, function);
  Block &entry = function.getBody().front(), &body = kernel.getBody().front();
  bindSizes(b, kernel, entry.getArgument(1));

  Memory buffers{entry.getArgument(0), pointer, {}, false};
  int64_t next = 0;
  for (Value argument : body.getArguments())
    bindMemory(b, argument, b.load(buffers, b.index(next++)), false);
  for (Value result : results)
    if (isa<RankedTensorType>(result.getType()))
      bindMemory(b, result, b.load(buffers, b.index(next++)), true);

  IRMapping mapping;
  for (Operation &op : body.without_terminator()) {
    if (&op == root)
      continue;
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (dense && isa<RankedTensorType>(dense.getType()))
      b.memory[constant.getResult()] = b.constant(dense);
    else if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && b.memory.count(reshape.getSource()))
      bindMemory(b, reshape.getResult(), b.memory[reshape.getSource()].pointer, false);
    else if (!emitScalar(b, op, mapping, {}))
      return false;
  }
  for (Value operand : root->getOperands())
    if (isa<RankedTensorType, MatrixType, StateType>(operand.getType()) &&
        !b.memory.count(operand)) {
      root->emitError() << "reads a value that is not an argument of its kernel";
      return false;
    }
  b.setLoc(root->getLoc());
  if (!emitRoot(b, root, mapping))
    return false;
  LLVM::ReturnOp::create(b, ValueRange{});
  return true;
}

OwningOpRef<ModuleOp> emitKernels(ModuleOp planned) {
  planned.getContext()
      ->loadDialect<LLVM::LLVMDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect,
                    cf::ControlFlowDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(planned.getLoc());
  for (auto kernel : planned.getOps<plan::KernelOp>())
    if (!emitKernel(*module, kernel))
      return {};
  return module;
}

} // namespace otf::cpu
