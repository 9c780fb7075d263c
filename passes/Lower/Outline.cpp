// SPDX-License-Identifier: Apache-2.0
//
// Operators become kernels and calls.
//
// Problem: thirty layers hold the same operators on other weights and sizes with other names, and
// code should be generated for each distinct one once. Approach: a kernel takes every tensor as an
// argument and renames the sizes in its types, so that two operators need the same kernel exactly
// when their kernels print alike.

#include "passes/Passes.h"

#include "dialects/OTF/Codes.h"
#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_OUTLINE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

bool hasKernel(Operation *op) {
  return isa<LinearOp, EmbeddingOp, NormOp, RotateOp, PrologueOp, RopeOp, AppendOp, AttentionOp,
             ObserveOp, ComputeOp, tensor::GenerateOp>(op);
}

/// The names d0, d1, … of the distinct sizes met so far.
class SizeNames {
public:
  StringRef operator[](StringRef size) {
    auto [it, isNew] = names.try_emplace(size, "d" + std::to_string(names.size()));
    if (isNew)
      sizes.push_back(size.str());
    return it->second;
  }

  Type operator[](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto dims = tensor ? dyn_cast_or_null<DimsAttr>(tensor.getEncoding()) : DimsAttr();
    if (!dims)
      return type;
    SmallVector<StringAttr> renamed;
    for (StringAttr size : dims.getSizes())
      renamed.push_back(StringAttr::get(type.getContext(), (*this)[size.getValue()]));
    return RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                                 DimsAttr::get(type.getContext(), renamed));
  }

  ArrayRef<std::string> list() const { return sizes; }

private:
  llvm::StringMap<std::string> names;
  std::vector<std::string> sizes;
};

/// What the kernel recomputes instead of taking it as an argument: constants, sizes, and scalars
/// that come of them.
bool isCopied(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ConstantOp, SizeOp>(op))
    return true;
  if (isa<ShapedType, MatrixType, StateType>(value.getType()) || op->getNumRegions() != 0 ||
      !isMemoryEffectFree(op))
    return false;
  return llvm::all_of(op->getOperands(), isCopied);
}

class Outliner {
public:
  explicit Outliner(ModuleOp module) : symbols(module) {
    for (auto kernel : module.getOps<plan::KernelOp>())
      kernels.try_emplace(text(kernel), kernel.getSymName());
  }

  LogicalResult function(func::FuncOp function);

  unsigned calls = 0, made = 0;

private:
  LogicalResult copyResults(Block &block);
  void separateLoop(LoopOp loop);
  LogicalResult block(Block &block);
  LogicalResult outline(Operation *op);
  static std::string text(plan::KernelOp kernel);

  SymbolTable symbols;
  llvm::StringMap<std::string> kernels; // text with the name left out, to name
  llvm::StringMap<unsigned> numbers;    // next number for a root operator's name
};

std::string Outliner::text(plan::KernelOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("_");
  kernel->print(stream, OpPrintingFlags().useLocalScope().assumeVerified());
  kernel.setSymNameAttr(name);
  return text;
}

LogicalResult Outliner::outline(Operation *op) {
  // Arguments and copies, in order of first use.
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> copies;
  auto copy = [&](auto &self, Operation *from) -> void {
    for (Value operand : from->getOperands())
      self(self, operand.getDefiningOp());
    copies.insert(from);
  };
  LogicalResult known = success();
  auto use = [&](Value value) {
    if (isCopied(value))
      return copy(copy, value.getDefiningOp());
    if (!isa<RankedTensorType, MatrixType, StateType>(value.getType()))
      known = op->emitOpError() << "reads a " << value.getType()
                                << " that is neither a constant nor made of sizes";
    inputs.insert(value);
  };
  for (Value operand : op->getOperands())
    use(operand);
  visitUsedValuesDefinedAbove(op->getRegions(), [&](OpOperand *operand) { use(operand->get()); });
  if (failed(known))
    return failure();

  SizeNames names;
  SmallVector<Type> argumentTypes, resultTypes;
  bool hasStates = false;
  for (Value input : inputs) {
    argumentTypes.push_back(names[input.getType()]);
    hasStates |= isa<StateType>(input.getType());
  }
  for (Type type : op->getResultTypes())
    resultTypes.push_back(names[type]);

  OpBuilder builder(op->getContext());
  auto kernel = plan::KernelOp::create(builder, op->getLoc(), "_",
                                       builder.getFunctionType(argumentTypes, resultTypes));
  Block &body = kernel.getBody().front();
  IRMapping map;
  for (auto [input, argument] : llvm::zip(inputs, body.getArguments())) {
    map.map(input, argument);
    argument.setLoc(input.getLoc());
  }
  builder.setInsertionPointToStart(&body);
  for (Operation *from : copies)
    builder.clone(*from, map);
  Operation *root = builder.clone(*op, map);
  Attribute exactSums = root->getDiscardableAttr(kExactSumsAttribute); // which kernel is meant
  root->setDiscardableAttrs(ArrayRef<NamedAttribute>());
  if (exactSums)
    root->setDiscardableAttr(kExactSumsAttribute, exactSums);
  plan::ReturnOp::create(builder, op->getLoc(), root->getResults());

  // Rename the sizes of everything inside.
  kernel.getBody().walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      result.setType(names[result.getType()]);
    if (auto compute = dyn_cast<ComputeOp>(inner)) {
      std::optional<otf::Size> extent = otf::Size::parse(compute.getExtent());
      compute.setExtent(extent->isConstant() ? extent->str() : names[extent->str()].str());
    }
    auto size = dyn_cast<SizeOp>(inner);
    if (!size)
      return;
    std::optional<otf::Size> value = otf::Size::parse(size.getSize());
    if (std::optional<int64_t> constant = value->constant()) {
      builder.setInsertionPoint(size);
      size.getResult().replaceAllUsesWith(
          arith::ConstantIndexOp::create(builder, size.getLoc(), *constant));
      size.erase();
      return;
    }
    size.setSize(names[value->str()]);
  });

  SmallVector<Attribute> sizes;
  for (const std::string &size : names.list())
    sizes.push_back(builder.getStringAttr(size));
  if (hasStates) {
    // The caches' own sizes, then the batch, which is the first dimension of the query or of what
    // is appended.
    auto tensor = llvm::find_if(inputs, [](Value v) {
      auto type = dyn_cast<RankedTensorType>(v.getType());
      return type && type.getRank() == 4;
    });
    if (tensor == inputs.end()) {
      kernel->destroy();
      return op->emitOpError() << "reads a cache but no tensor of rank 4, so its batch is unknown";
    }
    otf::Size batch = sizesOf(cast<RankedTensorType>((*tensor).getType())).front();
    for (const std::string &size : {std::string("past"), std::string("capacity"), batch.str()})
      sizes.push_back(builder.getStringAttr(size));
  }

  auto [it, isNew] = kernels.try_emplace(text(kernel), "");
  if (isNew) {
    StringRef kind = op->getName().stripDialect();
    do
      it->second = (kind + "_" + Twine(numbers[kind]++)).str();
    while (symbols.lookup(it->second));
    kernel.setSymName(it->second);
    symbols.insert(kernel, op->getParentOfType<func::FuncOp>()->getIterator());
    ++made;
  } else {
    kernel->destroy();
  }

  builder.setInsertionPoint(op);
  auto call = plan::CallOp::create(builder, op->getLoc(), op->getResultTypes(),
                                   FlatSymbolRefAttr::get(op->getContext(), it->second),
                                   inputs.getArrayRef(), builder.getArrayAttr(sizes));
  op->replaceAllUsesWith(call.getResults());
  op->erase();
  ++calls;
  return success();
}

/// A kernel's copy of `source`, as `type`.
static Value copyOf(OpBuilder &builder, Location loc, Value source) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<Value> extents;
  for (const otf::Size &size : sizesOf(type))
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, loc, size));
  return tensor::GenerateOp::create(
      builder, loc, type, extents, [&](OpBuilder &inner, Location loc, ValueRange index) {
        Value element = tensor::ExtractOp::create(inner, loc, source, index);
        tensor::YieldOp::create(inner, loc, element);
      });
}

/// Sees to it that what a block ends with (a function's results, the values of a branch or of a loop's body) is written by
/// kernels of its own, one for each value.
LogicalResult Outliner::copyResults(Block &block) {
  Operation *end = block.getTerminator();
  llvm::SmallDenseSet<Value> written;
  for (OpOperand &result : end->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(result.get().getType());
    if (!type)
      return end->emitError() << "result #" << result.getOperandNumber()
                              << " must be a tensor, got " << result.get().getType();
    Value source = result.get();
    // The sizes behind a checked reshape may be known only after its source is written: too late for the result's memory.
    for (auto reshape = source.getDefiningOp<ReshapeOp>(); reshape && !reshape.getChecked();
         reshape = source.getDefiningOp<ReshapeOp>())
      source = reshape.getSource();
    Operation *writer = source.getDefiningOp();
    if (writer && writer->getBlock() == &block && (hasKernel(writer) || isa<plan::CallOp>(writer)) &&
        written.insert(source).second)
      continue;
    OpBuilder builder(end);
    result.set(copyOf(builder, end->getLoc(), result.get()));
  }
  return success();
}

/// Gives what a loop carries memory of its own, of which the body reads and which it writes at its end only.
void Outliner::separateLoop(LoopOp loop) {
  OpBuilder builder(loop);
  for (OpOperand &init : loop->getOpOperands())
    init.set(copyOf(builder, loop.getLoc(), init.get()));
  Block &body = loop.getBody().front();
  MutableArrayRef<OpOperand> carried = body.getTerminator()->getOpOperands().drop_front();
  builder.setInsertionPoint(body.getTerminator());
  // An argument handed to another's place must be read before that is written.
  for (OpOperand &operand : carried)
    if (isa<BlockArgument>(operand.get()))
      operand.set(copyOf(builder, loop.getLoc(), operand.get()));
  for (OpOperand &operand : carried)
    operand.set(copyOf(builder, loop.getLoc(), operand.get()));
}

/// A reshape of a constant is a constant.
void foldConstantReshapes(func::FuncOp function) {
  function.walk([](ReshapeOp reshape) {
    auto constant = reshape.getSource().getDefiningOp<arith::ConstantOp>();
    auto type = cast<ShapedType>(reshape.getResult().getType());
    auto value = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
    if (!value || !type.hasStaticShape())
      return;
    OpBuilder builder(reshape);
    reshape.getResult().replaceAllUsesWith(
        arith::ConstantOp::create(builder, reshape.getLoc(), value.reshape(type)));
    reshape.erase();
  });
}

LogicalResult Outliner::block(Block &block) {
  for (Operation &op : block)
    if (auto loop = dyn_cast<LoopOp>(op))
      separateLoop(loop);
  if (failed(copyResults(block)))
    return failure();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<IfOp, LoopOp>(op)) {
      for (Region &region : op.getRegions())
        if (failed(this->block(region.front())))
          return failure();
    } else if (hasKernel(&op) && failed(outline(&op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult Outliner::function(func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError() << "must have one block, got "
                                << function.getBody().getBlocks().size();
  if (!isa<func::ReturnOp>(function.front().getTerminator()))
    return function.front().getTerminator()->emitOpError() << "ends a function; func.return was expected";
  foldConstantReshapes(function);
  auto eraseDead = [&] {
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  };
  eraseDead();
  if (failed(block(function.front())))
    return failure();
  eraseDead();
  WalkResult rest = function.walk([&](Operation *op) {
    if (op == function || isa<UseOp, StateOp, ReshapeOp, BindOp, IfOp, LoopOp, YieldOp, plan::CallOp, func::ReturnOp>(op))
      return WalkResult::advance();
    op->emitOpError() << "has no kernel"
                      << (isa<GatedActivationOp>(op) ? "; run otf-fuse-elementwise first" : "");
    return WalkResult::interrupt();
  });
  return success(!rest.wasInterrupted());
}

struct OutlinePass : otf::impl::OutlineBase<OutlinePass> {
  void runOnOperation() override {
    Outliner outliner(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      // What is bufferized already has no calls and is left alone.
      if (!function.isExternal() &&
          (function.getNumArguments() != 0 || function.getNumResults() != 0) &&
          failed(outliner.function(function)))
        return signalPassFailure();
    numCalls += outliner.calls;
    numKernels += outliner.made;
  }
};

} // namespace
