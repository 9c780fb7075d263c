// SPDX-License-Identifier: Apache-2.0
//
// Calls on values become launches on buffers.
//
// Problem: a plan names memory: what the caller gives, weights, caches, scratch.
// Approach: calls are pure but for caches, each value is written once, and otf-outline has seen to
// it that each result has a kernel that writes it; so every value gets its buffer when it is met
// and no copy is ever needed. Branches and loops become steps between labels, in the one block of the function: what a
// branch yields is written into the result's memory, and what a loop's body yields into the memory of its arguments.

#include "passes/Passes.h"

#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_BUFFERIZE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

class Bufferizer {
public:
  Bufferizer(func::FuncOp function, SymbolTable &symbols) : function(function), symbols(symbols) {}

  LogicalResult run();
  unsigned allocs = 0;

private:
  LogicalResult outputs(OpBuilder &builder);
  LogicalResult launch(OpBuilder &builder, plan::CallOp call);
  LogicalResult block(OpBuilder &builder, Block &block);
  LogicalResult branches(OpBuilder &builder, IfOp op);
  LogicalResult repeat(OpBuilder &builder, LoopOp op);
  /// Lets the call that makes `value`, through reshapes, write into `memory`.
  LogicalResult writeInto(OpBuilder &builder, Value value, Value memory);
  Value alloc(OpBuilder &builder, Location loc, Type content) {
    ++allocs;
    return plan::AllocOp::create(builder, loc, buffer(content), IntegerAttr());
  }
  std::string label(StringRef kind) { return (kind + Twine(labels++)).str(); }
  plan::BufferType buffer(Type content) {
    return plan::BufferType::get(content.getContext(), content);
  }

  func::FuncOp function;
  SymbolTable &symbols;
  unsigned labels = 0;
  DenseMap<Value, Value> buffers;
  DenseMap<std::pair<Attribute, Type>, Value> named; // weights and caches
};

/// Outputs, and through reshapes the values that are written into them.
LogicalResult Bufferizer::outputs(OpBuilder &builder) {
  for (OpOperand &result : function.front().getTerminator()->getOpOperands()) {
    unsigned number = result.getOperandNumber();
    auto name = function.getResultAttrOfType<StringAttr>(number, "otf.name");
    if (!name)
      return function.emitError() << "result #" << number << " has no otf.name";
    Value source = result.get();
    while (auto reshape = source.getDefiningOp<ReshapeOp>())
      source = reshape.getSource();
    if (!source.getDefiningOp<plan::CallOp>() || buffers.contains(source))
      return function.emitError() << "no kernel writes result #" << number
                                  << " alone; run otf-outline first";
    Value output =
        plan::OutputOp::create(builder, source.getLoc(), buffer(result.get().getType()), name,
                               function.getResultAttrOfType<TypeAttr>(number, "otf.element"));
    if (source.getType() != result.get().getType())
      output = plan::ViewOp::create(builder, source.getLoc(), buffer(source.getType()), output);
    buffers[source] = output;
  }
  return success();
}

LogicalResult Bufferizer::writeInto(OpBuilder &builder, Value value, Value memory) {
  Value source = value;
  while (auto reshape = source.getDefiningOp<ReshapeOp>())
    source = reshape.getSource();
  if (!source.getDefiningOp<plan::CallOp>() || buffers.contains(source))
    return emitError(value.getLoc()) << "no kernel writes this value alone; run otf-outline first";
  if (source.getType() != value.getType())
    memory = plan::ViewOp::create(builder, source.getLoc(), buffer(source.getType()), memory);
  buffers[source] = memory;
  return success();
}

LogicalResult Bufferizer::branches(OpBuilder &builder, IfOp op) {
  SmallVector<Value> memory;
  for (Value result : op.getResults())
    memory.push_back(buffers[result] = alloc(builder, op.getLoc(), result.getType()));
  Value condition = buffers.lookup(op.getCondition());
  if (!condition)
    return op.emitOpError() << "reads a value that has no memory: " << op.getCondition().getType();
  std::string otherwise = label("else"), end = label("end");
  plan::BranchOp::create(builder, op.getLoc(), condition, otherwise);
  for (Region *region : {&op.getThenBranch(), &op.getElseBranch()}) {
    Block &body = region->front();
    for (auto [value, result] : llvm::zip_equal(body.getTerminator()->getOperands(), memory))
      if (failed(writeInto(builder, value, result)))
        return failure();
    if (failed(block(builder, body)))
      return failure();
    if (region == &op.getThenBranch()) {
      plan::JumpOp::create(builder, op.getLoc(), end);
      plan::LabelOp::create(builder, op.getLoc(), otherwise);
    }
  }
  plan::LabelOp::create(builder, op.getLoc(), end);
  return success();
}

LogicalResult Bufferizer::repeat(OpBuilder &builder, LoopOp op) {
  Block &body = op.getBody().front();
  SmallVector<Value> memory;
  for (Value init : op->getOperands())
    if (!memory.emplace_back(buffers.lookup(init)))
      return op.emitOpError() << "reads a value that has no memory: " << init.getType();
  for (auto [number, result] : llvm::enumerate(op.getResults()))
    buffers[result] = buffers[body.getArgument(unsigned(number))] = memory[number + 1];
  for (auto [value, to] : llvm::zip_equal(body.getTerminator()->getOperands(), memory))
    if (failed(writeInto(builder, value, to)))
      return failure();
  std::string again = label("loop"), end = label("end");
  plan::LabelOp::create(builder, op.getLoc(), again);
  plan::BranchOp::create(builder, op.getLoc(), memory.front(), end);
  if (failed(block(builder, body)))
    return failure();
  plan::JumpOp::create(builder, op.getLoc(), again);
  plan::LabelOp::create(builder, op.getLoc(), end);
  return success();
}

LogicalResult Bufferizer::launch(OpBuilder &builder, plan::CallOp call) {
  auto kernel = symbols.lookup<plan::KernelOp>(call.getKernel());
  SmallVector<Value> inputs, outs;
  for (Value input : call.getInputs()) {
    inputs.push_back(buffers.lookup(input));
    if (!inputs.back())
      return call.emitOpError() << "reads a value that has no memory: " << input.getType();
  }
  auto kernelResults = kernel.getBody().front().getTerminator()->getOperands();
  if (kernelResults.size() != call.getNumResults())
    return kernel.emitOpError() << "returns " << kernelResults.size()
                                << " values, and a call expects " << call.getNumResults();
  for (auto [result, inKernel] : llvm::zip_equal(call.getResults(), kernelResults)) {
    if (isa<StateType>(result.getType())) {
      // An append writes the cache that it reads.
      auto append = inKernel.getDefiningOp<AppendOp>();
      auto past = append ? dyn_cast<BlockArgument>(append.getPast()) : BlockArgument();
      if (!past || past.getOwner() != &kernel.getBody().front())
        return kernel.emitOpError()
               << "returns a state that is not the append to one of its arguments";
      buffers[result] = inputs[past.getArgNumber()];
      continue;
    }
    Value &memory = buffers[result];
    if (!memory)
      memory = alloc(builder, call.getLoc(), result.getType());
    outs.push_back(memory);
  }
  plan::LaunchOp::create(builder, call.getLoc(), call.getKernelAttr(), inputs, outs,
                         call.getSizesAttr(), StringAttr(), IntegerAttr());
  return success();
}

/// Steps for the operations of a block, where `builder` stands.
LogicalResult Bufferizer::block(OpBuilder &builder, Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto use = dyn_cast<UseOp>(op)) {
      Value &memory = named[{use.getWeightAttr(), use.getType()}];
      if (!memory)
        memory = plan::WeightOp::create(builder, op.getLoc(), buffer(use.getType()),
                                        use.getWeightAttr());
      buffers[use] = memory;
    } else if (auto state = dyn_cast<StateOp>(op)) {
      Value &memory = named[{state.getCacheAttr(), state.getType()}];
      if (!memory)
        memory = plan::StateOp::create(builder, op.getLoc(), buffer(state.getType()),
                                       state.getCacheAttr());
      buffers[state] = memory;
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      if (!buffers.contains(reshape.getSource()))
        return op.emitOpError() << "reads a value that has no memory";
      buffers[reshape] = plan::ViewOp::create(builder, op.getLoc(), buffer(reshape.getType()),
                                              buffers[reshape.getSource()]);
    } else if (auto bind = dyn_cast<BindOp>(op)) {
      Value memory = buffers.lookup(bind.getValues());
      if (!memory)
        return op.emitOpError() << "reads a value that has no memory";
      plan::BindOp::create(builder, op.getLoc(), memory, bind.getSymbols(), bind.getMessageAttr());
    } else if (auto call = dyn_cast<plan::CallOp>(op)) {
      if (failed(launch(builder, call)))
        return failure();
    } else if (auto branch = dyn_cast<IfOp>(op)) {
      if (failed(branches(builder, branch)))
        return failure();
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      if (failed(repeat(builder, loop)))
        return failure();
    } else if (op.getName().getDialectNamespace() == "plan") {
      continue;
    } else {
      return op.emitOpError() << "is no call and has no memory; run otf-outline first";
    }
  }
  return success();
}

LogicalResult Bufferizer::run() {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError() << "must have one block, got "
                                << function.getBody().getBlocks().size();
  Block &block = function.front();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  for (BlockArgument argument : block.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "otf.name");
    if (!name)
      return function.emitError() << "argument #" << argument.getArgNumber() << " has no otf.name";
    auto input = plan::InputOp::create(builder, argument.getLoc(), buffer(argument.getType()), name,
                                       function.getArgAttrOfType<TypeAttr>(argument.getArgNumber(), "otf.element"));
    if (auto limit = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "otf.limit"))
      input->setAttr("otf.limit", limit);
    buffers[argument] = input;
  }
  if (failed(outputs(builder)))
    return failure();

  builder.setInsertionPoint(block.getTerminator());
  if (failed(this->block(builder, block)))
    return failure();
  block.getTerminator()->setOperands({});
  // What is in memory now goes, users first; plan operators stand behind it.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<plan::CallOp>(op) ||
        (op.getName().getDialectNamespace() != "plan" && !op.hasTrait<OpTrait::IsTerminator>())) {
      op.dropAllUses();
      op.erase();
    }
  if (failed(function.eraseArguments(llvm::BitVector(function.getNumArguments(), true))) ||
      failed(function.eraseResults(llvm::BitVector(function.getNumResults(), true))))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<plan::ViewOp>(op) && op.use_empty())
      op.erase();
  return success();
}

struct BufferizePass : otf::impl::BufferizeBase<BufferizePass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Bufferizer bufferizer(function, symbols);
      if (failed(bufferizer.run()))
        return signalPassFailure();
      numAllocs += bufferizer.allocs;
    }
  }
};

} // namespace
