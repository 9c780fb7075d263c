// SPDX-License-Identifier: Apache-2.0
//
// Slots of the arena, work items and grains.
//
// Problem: intermediate tensors of thirty layers do not all need memory at once, and their sizes
// are polynomials. Approach: first fit over lives in launch order. Sharing never costs memory,
// since a slot's size is the largest of its buffers' and not their sum; so sizes only decide which
// free slot is taken.

#include "passes/Passes.h"

#include "dialects/OTF/Caches.h"
#include "dialects/Plan/Merged.h"
#include "dialects/Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

//===------------------------------------------------------------------------------------------===//
// Slots
//===------------------------------------------------------------------------------------------===//

/// Bytes of a tensor; i1 is one byte an element.
otf::Size bytesOf(RankedTensorType type) {
  unsigned bits = type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
  return elementCount(sizesOf(type)) * otf::Size((bits + 7) / 8);
}

/// Whether a is at least b for all sizes that are not negative.
bool covers(const otf::Size &a, const otf::Size &b) {
  otf::Size difference = a - b;
  return llvm::all_of(difference.terms(), [](auto &term) { return term.second > 0; });
}

struct Life {
  plan::AllocOp alloc;
  otf::Size bytes;
  int64_t first, last; // steps
};

struct Slot {
  otf::Size bytes; // of its largest buffer, where the order is known; of the first otherwise
  int64_t last;    // step until which it is taken
};

plan::AllocOp allocOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<plan::ViewOp>())
    buffer = view.getSource();
  return buffer.getDefiningOp<plan::AllocOp>();
}

/// From a label to the last jump back to it.
struct Cycle {
  int64_t first, last;
};

SmallVector<Cycle> cyclesIn(func::FuncOp function) {
  llvm::MapVector<StringRef, Cycle> cycles;
  int64_t number = 0;
  function.walk([&](Operation *step) {
    if (auto label = dyn_cast<plan::LabelOp>(step))
      cycles[label.getName()] = {number, -1};
    if (auto jump = dyn_cast<plan::JumpOp>(step))
      if (auto found = cycles.find(jump.getTarget()); found != cycles.end())
        found->second.last = number;
    ++number;
  });
  SmallVector<Cycle> result;
  for (auto &[name, cycle] : cycles)
    if (cycle.last >= 0)
      result.push_back(cycle);
  return result;
}

/// The lives of all buffers, by first step. What lives when a loop begins and is used in it lives until it ends.
SmallVector<Life> livesIn(func::FuncOp function) {
  llvm::MapVector<Operation *, std::pair<int64_t, int64_t>> spans;
  // What may run together is alive together.
  DenseMap<int64_t, std::pair<int64_t, int64_t>> units;
  int64_t number = 0;
  function.walk([&](Operation *step) {
    if (auto unit = step->getAttrOfType<IntegerAttr>(plan::kLaunchUnitAttribute))
      units.try_emplace(unit.getInt(), number, number).first->second.second = number;
    ++number;
  });
  number = 0;
  function.walk([&](Operation *step) {
    std::pair<int64_t, int64_t> span(number, number);
    if (auto unit = step->getAttrOfType<IntegerAttr>(plan::kLaunchUnitAttribute))
      span = units[unit.getInt()];
    if (isa<plan::LaunchOp, plan::BindOp, plan::BranchOp>(step))
      for (Value buffer : step->getOperands())
        if (plan::AllocOp alloc = allocOf(buffer)) {
          auto [it, isNew] = spans.try_emplace(alloc, span);
          it->second.second = std::max(it->second.second, span.second);
        }
    ++number;
  });
  SmallVector<Cycle> cycles = cyclesIn(function);
  for (auto &[op, span] : spans)
    for (bool changed = true; changed;) {
      changed = false;
      for (const Cycle &cycle : cycles)
        if (span.first < cycle.first && span.second > cycle.first && span.second < cycle.last) {
          span.second = cycle.last;
          changed = true;
        }
    }
  SmallVector<Life> lives;
  for (auto &[op, span] : spans) {
    auto alloc = cast<plan::AllocOp>(op);
    if (auto type = dyn_cast<RankedTensorType>(alloc.getType().getContent()))
      lives.push_back({alloc, bytesOf(type), span.first, span.second});
  }
  return lives;
}

size_t chooseSlot(SmallVectorImpl<Slot> &slots, const Life &life) {
  auto take = [&](auto fits) {
    auto it =
        llvm::find_if(slots, [&](Slot &slot) { return slot.last < life.first && fits(slot); });
    return size_t(it - slots.begin());
  };
  size_t chosen = take([&](Slot &slot) { return slot.bytes == life.bytes; });
  if (chosen == slots.size())
    chosen = take([&](Slot &slot) { return covers(slot.bytes, life.bytes); });
  if (chosen == slots.size())
    chosen = take([](Slot &) { return true; });
  if (chosen == slots.size())
    slots.push_back({life.bytes, life.last});
  Slot &slot = slots[chosen];
  slot.last = life.last;
  if (covers(life.bytes, slot.bytes))
    slot.bytes = life.bytes;
  return chosen;
}

//===------------------------------------------------------------------------------------------===//
// Work items
//===------------------------------------------------------------------------------------------===//

/// The product of a tensor's first `count` sizes.
otf::Size leading(Type type, int64_t count) {
  SmallVector<otf::Size> sizes = sizesOf(cast<RankedTensorType>(type));
  return elementCount(ArrayRef(sizes).take_front(std::max<int64_t>(count, 0)));
}

/// The content of the buffer that a launch gives for `value`, an argument of the kernel; else the
/// value's own type.
Type contentOf(plan::LaunchOp launch, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getArgNumber() >= launch.getInputs().size())
    return value.getType();
  return cast<plan::BufferType>(launch.getInputs()[argument.getArgNumber()].getType()).getContent();
}

/// A size over the kernel's d0, d1, … as the launch has it.
FailureOr<otf::Size> substituted(plan::LaunchOp launch, const otf::Size &size) {
  otf::Size result;
  for (auto &[monomial, coefficient] : size.terms()) {
    otf::Size term = coefficient;
    for (StringRef name : monomial) {
      uint64_t number;
      if (!name.consume_front("d") || name.getAsInteger(10, number) ||
          number >= launch.getSizes().size())
        return launch.emitOpError() << "gives no size for the extent \"" << size.str() << "\"";
      auto text = dyn_cast<StringAttr>(launch.getSizes()[number]);
      std::optional<otf::Size> value = text ? otf::Size::parse(text.getValue()) : std::nullopt;
      if (!value)
        return launch.emitOpError() << "gives a size that is none: " << launch.getSizes()[number];
      term = term * *value;
    }
    result = result + term;
  }
  return result;
}

/// Channels on a side of what a work item of otf.observe adds up: OTF_OBSERVE_BLOCK of the kernels.
constexpr int64_t kObservedBlock = 48;

FailureOr<otf::Size> extentOf(plan::LaunchOp launch, Operation *root) {
  if (auto linear = dyn_cast<LinearOp>(root); linear && !linear.isDividedByRows())
    return otf::Size((linear.getWeight().getType().getRows() + 7) / 8);
  if (auto compute = dyn_cast<ComputeOp>(root)) // its own, with the launch's sizes for d0, d1, …
    return substituted(launch, *otf::Size::parse(compute.getExtent()));
  if (auto observe = dyn_cast<ObserveOp>(root)) { // blocks of the lower triangle of products, or of its diagonal
    int64_t channels = cast<RankedTensorType>(observe.getInput().getType()).getShape().back();
    int64_t blocks = (channels + kObservedBlock - 1) / kObservedBlock;
    bool hasProducts = cast<RankedTensorType>(observe.getProducts().getType()).getDimSize(0) != 0;
    return otf::Size(hasProducts ? blocks * (blocks + 1) / 2 : blocks);
  }
  Value counted; // of which the first three dimensions are the items
  if (auto rope = dyn_cast<RopeOp>(root))
    counted = rope.getInput();
  else if (auto append = dyn_cast<AppendOp>(root))
    counted = append.getUpdate();
  else if (auto attention = dyn_cast<AttentionOp>(root))
    counted = attention.getQuery();
  Type type;
  if (counted)
    type = contentOf(launch, counted);
  else if (!launch.getOutputs().empty())
    type = cast<plan::BufferType>(launch.getOutputs().front().getType()).getContent();
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor) {
    launch.emitOpError() << "has no tensor to count work items by";
    return failure();
  }
  otf::Size items = leading(tensor, counted ? std::min<int64_t>(3, tensor.getRank()) : tensor.getRank() - 1);
  if (auto attention = dyn_cast<AttentionOp>(root); attention && isa<StateType>(attention.getKey().getType())) {
    SmallVector<otf::Size> sizes = sizesOf(tensor);
    items = items + sizes[0] * sizes[attention.getPositionsFirst() ? 2 : 1] * otf::Size(kAttentionParts - 1);
  }
  return items;
}

/// Plain weights are multiplied in blocks of rows and tiles (TilePlain.cpp); a piece of one tile would be none.
constexpr int64_t kTogether = 4;

bool takesTilesTogether(Operation *root) {
  auto linear = dyn_cast<LinearOp>(root);
  if (!linear)
    return false;
  EncodingKind kind = linear.getWeight().getType().getEncoding().getKind();
  return kind == EncodingKind::f32 || kind == EncodingKind::f16;
}

/// Half of the rows that a kernel takes at once (EmitContraction.cpp), so that few of them divide evenly too.
int64_t rowsTogether(LinearOp linear) { return takesTilesTogether(linear) ? 12 : 8; }

struct SchedulePass : otf::impl::ScheduleBase<SchedulePass> {
  using ScheduleBase::ScheduleBase;

  LogicalResult setExtent(plan::LaunchOp launch, SymbolTable &symbols) {
    auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
    Operation *root = kernel.getRoot();
    if (!root)
      return kernel.emitOpError() << "returns no operator's result";
    FailureOr<otf::Size> extent = extentOf(launch, root);
    if (failed(extent))
      return failure();
    Builder builder(&getContext());
    std::optional<int64_t> tiles = extent->constant();
    bool wide = isa<LinearOp>(root) && tiles && *tiles >= wideLinear;
    launch.setExtentAttr(builder.getStringAttr(extent->str()));
    auto linear = dyn_cast<LinearOp>(root);
    if (linear && linear.isDividedByRows()) {
      launch.setGrainAttr(builder.getI64IntegerAttr(rowsTogether(linear)));
      return success();
    }
    launch.setGrainAttr(builder.getI64IntegerAttr(tiles && *tiles >= 2 * kTogether && takesTilesTogether(root) ? kTogether : wide ? 2 : 1));
    return success();
  }

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    Builder builder(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool valid = true;
      function.walk([&](plan::LaunchOp launch) { valid &= succeeded(setExtent(launch, symbols)); });
      if (!valid)
        return signalPassFailure();
      SmallVector<Slot> slots;
      for (Life &life : livesIn(function)) {
        life.alloc.setSlotAttr(builder.getI64IntegerAttr(chooseSlot(slots, life)));
        ++numBuffers;
      }
      numSlots += slots.size();
    }
  }
};

} // namespace
