// SPDX-License-Identifier: Apache-2.0
//
// Caches of keys and values, found by where data goes and not by names: an argument that one operator lengthens by a
// step's positions, and whose longer form the model returns.

#include "passes/Raise/Raiser.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace otf;
using namespace otf::raise;

namespace {

/// The output of `node` that is its input number `operand` with a step's positions behind it.
std::optional<unsigned> lengthened(onnx::NodeOp node, unsigned operand) {
  StringRef domain = node.getDomain();
  if (node.is("Concat")) {
    int64_t axis = node.intOr("axis", 0);
    bool step = operand == 0 && node.getInputs().size() == 2 && (axis == -2 || axis == 2);
    return step ? std::optional(0u) : std::nullopt;
  }
  bool microsoft = domain == "com.microsoft";
  unsigned key = 0; // of the past keys; values follow, and the outputs 1 and 2 are theirs
  if (microsoft && node.getOpType() == "GroupQueryAttention")
    key = 3;
  else if (microsoft && node.getOpType() == "MultiHeadAttention")
    key = 6;
  else if (domain.empty() && node.getOpType() == "Attention")
    key = 4;
  else
    return std::nullopt;
  unsigned output = operand - key + 1;
  bool past = operand == key || operand == key + 1;
  return past && output < node.getOutputs().size() ? std::optional(output) : std::nullopt;
}

/// What a merged decoder writes where it has two of itself: `use_cache_branch` picks one that
/// appends to a past, or one that makes the first keys and values.
constexpr StringLiteral kMergedInput = "use_cache_branch";

/// Puts the branch with a past in the place of such an If. A past of length 0 makes it the other
/// one too, if it does nothing with the past but to append to it. So a cross attention's keys and
/// values keep the If: their first ones come from the encoder, by the other branch.
void takeCacheBranch(func::FuncOp source) {
  for (BlockArgument argument : source.getArguments()) {
    auto name = source.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "onnx.name");
    if (!name || name.getValue() != kMergedInput || !argument.hasOneUse())
      continue;
    auto node = dyn_cast<onnx::NodeOp>(*argument.user_begin());
    Block *with = node && node.is("If") ? node.body("then_branch") : nullptr,
          *without = with ? node.body("else_branch") : nullptr;
    if (!without || node->getBlock() != argument.getOwner())
      continue;
    auto yield = cast<onnx::YieldOp>(with->getTerminator());
    if (yield.getValues().size() != node.getOutputs().size())
      continue;
    // What the other branch does not read is the past.
    bool appends = true;
    for (BlockArgument past : source.getArguments()) {
      bool read = false, other = false;
      for (OpOperand &use : past.getUses()) {
        other |= without->findAncestorOpInBlock(*use.getOwner()) != nullptr;
        read |= with->findAncestorOpInBlock(*use.getOwner()) != nullptr;
      }
      if (!read || other)
        continue;
      for (OpOperand &use : past.getUses()) {
        auto user = dyn_cast<onnx::NodeOp>(use.getOwner());
        appends &= user && (user.is("Shape") || lengthened(user, use.getOperandNumber()));
      }
    }
    if (!appends)
      continue;
    SmallVector<Value> results(yield.getValues());
    for (Operation &op : llvm::make_early_inc_range(with->without_terminator()))
      op.moveBefore(node);
    for (auto [output, result] : llvm::zip_equal(node.getOutputs(), results))
      output.replaceAllUsesWith(result);
    node.erase();
    (void)source.eraseArgument(argument.getArgNumber());
    return;
  }
}

} // namespace

void Raiser::findCaches() {
  takeCacheBranch(source_);
  takenSymbols = {"past", "capacity"};
  SmallVector<Value> results(
      cast<func::ReturnOp>(source_.getBody().front().getTerminator()).getOperands());
  for (Value &result : results)
    for (onnx::NodeOp named;
         (named = result.getDefiningOp<onnx::NodeOp>()) && named.is("Identity");)
      result = named.getInputs()[0];
  for (BlockArgument argument : source_.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto dims = source_.getArgAttrOfType<ArrayAttr>(number, "onnx.dims");
    auto type = source_.getArgAttrOfType<IntegerAttr>(number, "onnx.type");
    if (!dims || dims.size() != 4 || !type || !isFloat(type.getInt()) || !isa<StringAttr>(dims[2]))
      continue;
    onnx::NodeOp writer;
    Value present;
    bool cache = true;
    for (OpOperand &use : argument.getUses()) {
      auto node = dyn_cast<onnx::NodeOp>(use.getOwner());
      if (node && node.is("Shape"))
        continue;
      std::optional<unsigned> output = node ? lengthened(node, use.getOperandNumber()) : std::nullopt;
      cache &= output && !writer;
      writer = node;
      present = output ? node.getOutputs()[*output] : Value();
    }
    if (!cache || !writer || !llvm::is_contained(results, present))
      continue;
    // A Concat does not tell heads and width; the other operators do.
    auto isFixed = [&](unsigned axis) {
      auto text = dyn_cast<StringAttr>(dims[axis]);
      return !text || Size::fromDimParam(text.getValue()).isConstant();
    };
    if (writer.is("Concat") && (!isFixed(1) || !isFixed(3)))
      continue;
    // The cached length becomes the symbol that the runtime counts.
    StringRef length = cast<StringAttr>(dims[2]).getValue();
    std::optional<Size> parsed = Size::parse(length);
    bool oneName = length != "?" && (!parsed || *parsed == Size::symbol(length.trim()));
    if (!oneName)
      continue;
    symbolNames[length.trim().str()] = "past";
    caches[number] = {unsigned(llvm::find(results, present) - results.begin()), writer, {}};
  }
}

bool Raiser::isCacheOf(Value past, onnx::NodeOp writer) {
  auto argument = dyn_cast<BlockArgument>(past);
  auto found = argument ? caches.find(argument.getArgNumber()) : caches.end();
  return found != caches.end() && found->second.writer == writer.getOperation();
}

Value Raiser::cacheState(Value past, const Size &heads, const Size &width) {
  unsigned number = cast<BlockArgument>(past).getArgNumber();
  Known &what = known(past);
  std::optional<int64_t> h = heads.constant(), w = width.constant();
  if (!h || !w)
    return {};
  if (what.state) {
    auto type = cast<StateType>(what.state.getType());
    return type.getHeads() == *h && type.getWidth() == *w ? what.state : Value();
  }
  for (auto [axis, fixed] : {std::pair(1, *h), std::pair(3, *w)})
    if (what.sizes[axis].isConstant() && what.sizes[axis] != Size(fixed))
      return {};
  what.sizes[1] = *h;
  what.sizes[3] = *w;
  auto name = source_.getArgAttrOfType<StringAttr>(number, "onnx.name");
  auto result = source_.getResultAttrOfType<StringAttr>(caches[number].result, "onnx.name");
  auto state = StateType::get(builder.getContext(), *h, *w, builder.getF32Type());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(target);
  CacheOp op = CacheOp::create(builder, past.getLoc(), name, TypeAttr::get(state), name, result ? result : name);
  symbols.insert(op);
  caches[number].op = op;
  builder.setInsertionPointToStart(&target.getBody().front());
  return what.state = StateOp::create(builder, past.getLoc(), state, op.getSymName());
}
