// SPDX-License-Identifier: Apache-2.0
//
// Launches that may be one where they have one row.
//
// Problem: a GPU decodes a small layer faster than it launches the dozen kernels that it is. Approach: say which consecutive
// launches are independent, or read only what the same thread wrote, or read one record that each block can make for itself;
// code generators make one of them. With many rows they stay apart: there a record is made once and not by every block.

#include "passes/Passes.h"

#include "dialects/Plan/Merged.h"
#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_MERGELAUNCHES
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// What a buffer is memory of: an operation, or a cache's name.
const void *memoryOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<plan::ViewOp>())
    buffer = view.getSource();
  Operation *origin = buffer.getDefiningOp();
  if (auto state = dyn_cast_or_null<plan::StateOp>(origin))
    return state.getCacheAttr().getAsOpaquePointer();
  return origin;
}

RankedTensorType tensorOf(Value buffer) {
  return dyn_cast<RankedTensorType>(cast<plan::BufferType>(buffer.getType()).getContent());
}

/// Which records a codec's bytes fit (Codec.cuh).
int orderOf(LinearOp linear) {
  switch (linear.getWeight().getType().getEncoding().getKind()) {
  case EncodingKind::planes3x1:
  case EncodingKind::planes3x2:
  case EncodingKind::planes3x3:
  case EncodingKind::planes3x4:
  case EncodingKind::planes4x1:
  case EncodingKind::planes4x2:
  case EncodingKind::planes4x3:
    return 1;
  case EncodingKind::codebook2:
    return 2;
  default:
    return 0;
  }
}

struct Launch {
  plan::LaunchOp op;
  plan::KernelOp kernel;
  Operation *root = nullptr;
  otf::Size rows;
  int64_t group = -1, lane = 0;

  /// The launch's buffer for a value of the kernel, or null where it is no argument.
  Value bufferOf(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    auto inputs = plan::LaunchOp(op).getInputs();
    return argument && argument.getArgNumber() < inputs.size() ? inputs[argument.getArgNumber()] : Value();
  }
  bool writes(const void *memory) {
    if (auto append = dyn_cast<AppendOp>(root))
      if (Value past = bufferOf(append.getPast()); past && memoryOf(past) == memory)
        return true;
    return llvm::any_of(op.getOutputs(), [&](Value output) { return memoryOf(output) == memory; });
  }
  bool touches(const void *memory) {
    return writes(memory) || llvm::any_of(op.getInputs(), [&](Value input) { return memoryOf(input) == memory; });
  }
};

/// What the rows are of: one position of one batch entry each.
std::optional<otf::Size> rowsOf(const Launch &launch) {
  plan::LaunchOp op = launch.op;
  if (isa<LinearOp, PrologueOp>(launch.root)) {
    auto type = tensorOf(op.getOutputs().front());
    return type ? std::optional(elementCount(ArrayRef(sizesOf(type)).drop_back())) : std::nullopt;
  }
  Value heads;
  bool positionsFirst = false;
  if (auto rope = dyn_cast<RopeOp>(launch.root))
    heads = launch.bufferOf(rope.getInput()), positionsFirst = rope.getPositionsFirst();
  else if (auto append = dyn_cast<AppendOp>(launch.root))
    heads = launch.bufferOf(append.getUpdate()), positionsFirst = append.getPositionsFirst();
  auto type = heads ? tensorOf(heads) : RankedTensorType();
  if (!type || type.getRank() != 4)
    return std::nullopt;
  SmallVector<otf::Size> sizes = sizesOf(type);
  return sizes[0] * sizes[positionsFirst ? 1 : 2];
}

/// Whether a thread that has the result at one place reads of `argument` that place alone.
bool readsSamePlace(LinearOp linear, Value argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || linear.getEpilogue().empty() || type.getShape() != cast<RankedTensorType>(linear.getResult().getType()).getShape())
    return false;
  ValueRange indices = linear.getEpilogue().front().getArguments().drop_front();
  return llvm::all_of(argument.getUsers(), [&](Operation *user) {
    auto extract = dyn_cast<tensor::ExtractOp>(user);
    return extract && extract->getParentRegion() == &linear.getEpilogue() && llvm::equal(extract.getIndices(), indices);
  });
}

/// Consecutive launches that may run together.
class Unit {
public:
  /// Whether it took the launch.
  bool take(Launch launch);
  bool isWorthIt() const { return launches.size() > 1; }
  /// Whether only launches of the unit read the prologue's record.
  bool isClosed();
  void mark(int64_t unit, int64_t &merged);

private:
  bool takeReader(Launch &launch, LinearOp linear);
  bool takeHeads(Launch &launch);
  bool isFree(Launch &launch);
  bool joinLane(Launch &launch, function_ref<bool(Launch &, Value)> mayFollow);

  SmallVector<Launch> launches;
  bool hasPrologue = false;
  int64_t groups = 0, lanes = 0;
};

/// Nothing that the launch writes is touched by others, and so it may run beside or after them.
bool Unit::isFree(Launch &launch) {
  for (Launch &other : launches)
    for (Value input : launch.op.getInputs())
      if (launch.writes(memoryOf(input)) && other.touches(memoryOf(input)))
        return false;
  for (Launch &other : launches)
    for (Value output : launch.op.getOutputs())
      if (other.touches(memoryOf(output)))
        return false;
  return true;
}

/// Puts a launch into the lane whose results it reads, if `mayFollow` lets it, or into a new one. False where it reads of two.
bool Unit::joinLane(Launch &launch, function_ref<bool(Launch &, Value)> mayFollow) {
  int64_t lane = -1;
  for (auto [number, input] : llvm::enumerate(launch.op.getInputs()))
    for (Launch &before : launches) {
      if (isa<PrologueOp>(before.root) || !before.writes(memoryOf(input)))
        continue;
      if (before.group != launch.group || !mayFollow(before, launch.kernel.getBody().getArgument(unsigned(number))) ||
          (lane >= 0 && lane != before.lane))
        return false;
      lane = before.lane;
    }
  launch.lane = lane < 0 ? lanes++ : lane;
  return true;
}

bool Unit::takeReader(Launch &launch, LinearOp linear) {
  Value record = launch.bufferOf(linear.getInput());
  if (!hasPrologue || linear.getWindow() || linear.isDividedByRows() || !record ||
      memoryOf(record) != memoryOf(launches.front().op.getOutputs().front()) || !launch.bufferOf(linear.getWeight()))
    return false;
  // A group's records are in one order; others of the unit have a group of their own.
  launch.group = launches.size() > 1 && orderOf(cast<LinearOp>(launches.back().root)) == orderOf(linear) ? groups - 1 : groups;
  return joinLane(launch, [&](Launch &before, Value argument) {
           return cast<LinearOp>(before.root).getWeight().getType() == linear.getWeight().getType() && readsSamePlace(linear, argument);
         }) &&
         (groups = std::max(groups, launch.group + 1));
}

bool Unit::takeHeads(Launch &launch) {
  if (hasPrologue)
    return false;
  launch.group = 0;
  groups = 1;
  // A warp has a row in both, and a lane of it the same elements, if rows are as wide: then with one position of one entry a thread reads
  // what it wrote.
  return joinLane(launch, [&](Launch &before, Value) {
    auto rope = dyn_cast<RopeOp>(before.root);
    auto append = dyn_cast<AppendOp>(launch.root);
    return rope && append &&
           cast<RankedTensorType>(rope.getInput().getType()).getShape().back() == append.getPast().getType().getWidth();
  });
}

bool Unit::take(Launch launch) {
  std::optional<otf::Size> rows = launch.root ? rowsOf(launch) : std::nullopt;
  if (!rows || (rows->isConstant() && *rows != otf::Size(1)))
    return false;
  launch.rows = *rows;
  if (isa<PrologueOp>(launch.root)) {
    if (!launches.empty())
      return false;
    hasPrologue = true;
  } else {
    if (!launches.empty() && launches.front().rows != launch.rows)
      return false;
    if (!isFree(launch))
      return false;
    auto linear = dyn_cast<LinearOp>(launch.root);
    if (linear ? !takeReader(launch, linear) : !takeHeads(launch))
      return false;
  }
  launches.push_back(launch);
  return true;
}

bool Unit::isClosed() {
  if (!hasPrologue)
    return true;
  const void *record = memoryOf(launches.front().op.getOutputs().front());
  auto main = launches.front().op->getParentOfType<func::FuncOp>();
  bool closed = isa_and_nonnull<plan::AllocOp>(static_cast<Operation *>(const_cast<void *>(record)));
  main.walk([&](Operation *op) {
    if (!isa<plan::LaunchOp, plan::BindOp, plan::BranchOp>(op) || llvm::any_of(launches, [&](Launch &l) { return l.op == op; }))
      return;
    closed = closed && llvm::none_of(op->getOperands(), [&](Value value) { return memoryOf(value) == record; });
  });
  return closed;
}

void Unit::mark(int64_t unit, int64_t &merged) {
  Builder builder(launches.front().op.getContext());
  for (Launch &launch : launches) {
    launch.op->setAttr(plan::kLaunchUnitAttribute, builder.getI64IntegerAttr(unit));
    launch.op->setAttr(plan::kRowsAttribute, builder.getStringAttr(launch.rows.str()));
    if (isa<PrologueOp>(launch.root))
      continue;
    launch.op->setAttr(plan::kMergedAttribute, builder.getI64IntegerAttr(merged + launch.group));
    launch.op->setAttr(plan::kLaneAttribute, builder.getI64IntegerAttr(launch.lane));
  }
  merged += groups;
}

struct MergeLaunchesPass : otf::impl::MergeLaunchesBase<MergeLaunchesPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    int64_t units = 0, merged = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Unit unit;
      auto close = [&] {
        if (unit.isWorthIt() && unit.isClosed())
          unit.mark(units++, merged);
        unit = Unit();
      };
      function.walk([&](Operation *op) {
        if (isa<plan::BindOp, plan::BranchOp, plan::JumpOp, plan::LabelOp>(op))
          return close();
        auto call = dyn_cast<plan::LaunchOp>(op);
        if (!call)
          return;
        Launch launch;
        launch.op = call;
        launch.kernel = symbols.lookup<plan::KernelOp>(call.getKernel());
        launch.root = launch.kernel ? launch.kernel.getRoot() : nullptr;
        if (unit.take(launch))
          return;
        close();
        unit.take(launch);
      });
      close();
    }
    numMerged += merged;
  }
};

} // namespace
