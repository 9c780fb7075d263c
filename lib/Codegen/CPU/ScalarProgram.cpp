// SPDX-License-Identifier: Apache-2.0
//
// A scalar program is copied as it is, but for tensor.extract, memref.load and memref.store, which
// become an address and a load or store, otf.size, which becomes arithmetic on `dims`, and functions that our library computes in a form
// that vectorises. Sums over loops may be reordered, so that they vectorise too.

#include "lib/Codegen/CPU/ScalarProgram.h"

#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace otf::cpu {

static bool emitExtract(KernelBuilder &builder, tensor::ExtractOp op, IRMapping &mapping,
                        const Position &position) {
  auto found = builder.memory.find(op.getTensor());
  if (found == builder.memory.end()) {
    op.emitError() << "reads a tensor that is neither an argument of its kernel nor a constant";
    return false;
  }
  const Memory &tensor = found->second;
  SmallVector<Value> indices;
  for (Value i : op.getIndices())
    indices.push_back(mapping.lookup(i));

  // Elementwise access: the offset is at hand, and no index has to be recovered by division.
  bool same = ArrayRef<otf::Size>(tensor.shape) == position.shape && indices == position.indices;
  Value offset = same ? position.offset : builder.offset(tensor.shape, indices);
  mapping.map(op.getResult(), builder.load(tensor, offset));
  return true;
}

/// Where a handle's element lies.
static Value handleOffset(KernelBuilder &builder, const Memory &memory, ValueRange indices,
                          IRMapping &mapping) {
  SmallVector<Value> at;
  for (Value i : indices)
    at.push_back(mapping.lookup(i));
  return builder.offset(memory.shape, at);
}

/// The name of our version of a math function of f32, or an empty string.
static StringRef libraryName(Operation &op) {
  if (op.getNumResults() != 1 || !op.getResult(0).getType().isF32())
    return {};
  return llvm::TypeSwitch<Operation *, StringRef>(&op)
      .Case<math::ExpOp>([](auto) { return "otf_exp"; })
      .Case<math::LogOp>([](auto) { return "otf_log"; })
      .Case<math::TanhOp>([](auto) { return "otf_tanh"; })
      .Case<math::ErfOp>([](auto) { return "otf_erf"; })
      .Case<math::SinOp>([](auto) { return "otf_sin"; })
      .Case<math::CosOp>([](auto) { return "otf_cos"; })
      .Default([](auto) { return ""; });
}

/// x^2, x^3 and x^4 as products: powf is a call of twenty nanoseconds, once for each element.
static Value smallPower(KernelBuilder &builder, math::PowFOp op, IRMapping &mapping) {
  auto constant = op.getRhs().getDefiningOp<arith::ConstantOp>();
  auto value = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  if (!value)
    return {};
  double exponent = value.getValueAsDouble();
  if (exponent != 2 && exponent != 3 && exponent != 4)
    return {};
  Value x = mapping.lookup(op.getLhs());
  Value square = arith::MulFOp::create(builder, x, x);
  if (exponent == 2)
    return square;
  return arith::MulFOp::create(builder, square, exponent == 3 ? x : square);
}

/// A sum or product carried by a loop: `%r = arith.addf %carried, %x`, yielded in its place.
static bool isReduction(Operation &op) {
  auto loop = dyn_cast_or_null<scf::ForOp>(op.getParentOp());
  if (!loop || !isa<arith::AddFOp, arith::MulFOp>(op) || !op.getResult(0).hasOneUse())
    return false;
  OpOperand &use = *op.getResult(0).getUses().begin();
  if (use.getOwner() != loop.getBody()->getTerminator())
    return false;
  Value carried = loop.getRegionIterArg(use.getOperandNumber());
  return llvm::is_contained(op.getOperands(), carried) && carried.hasOneUse();
}

static bool emitNested(KernelBuilder &builder, Operation &op, IRMapping &mapping,
                       const Position &position) {
  Operation *copy = op.cloneWithoutRegions(mapping);
  builder.insert(copy);
  for (auto [from, to] : llvm::zip(op.getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    Block &source = from.front();
    auto *block = new Block();
    to.push_back(block);
    for (BlockArgument argument : source.getArguments())
      mapping.map(argument, block->addArgument(argument.getType(), argument.getLoc()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(block);
    for (Operation &inner : source)
      if (!emitScalar(builder, inner, mapping, position))
        return false;
  }
  return true;
}

bool emitScalar(KernelBuilder &builder, Operation &op, IRMapping &mapping,
                const Position &position) {
  builder.setLoc(op.getLoc());
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return emitExtract(builder, extract, mapping, position);
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    const Memory &memory = builder.memory[load.getMemRef()];
    Value offset = handleOffset(builder, memory, load.getIndices(), mapping);
    mapping.map(load.getResult(), builder.load(memory, offset));
    return true;
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    const Memory &memory = builder.memory[store.getMemRef()];
    Value offset = handleOffset(builder, memory, store.getIndices(), mapping);
    builder.store(mapping.lookup(store.getValueToStore()), memory, offset);
    return true;
  }
  if (auto size = dyn_cast<SizeOp>(op)) {
    Value value = builder.size(*otf::Size::parse(size.getSize()));
    mapping.map(size.getResult(), value);
    return bool(value);
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    std::optional<int64_t> axis = dim.getConstantIndex();
    Value value;
    if (type && axis && *axis >= 0 && *axis < type.getRank())
      value = builder.size(sizesOf(type)[*axis]);
    else
      op.emitError() << "asks for a dimension that is not constant";
    mapping.map(dim.getResult(), value);
    return bool(value);
  }
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::IndexSwitchOp>(op))
    return emitNested(builder, op, mapping, position);

  bool scalar =
      llvm::all_of(op.getOperandTypes(), [](Type t) { return t.isIntOrIndexOrFloat(); }) &&
      llvm::all_of(op.getResultTypes(), [](Type t) { return t.isIntOrIndexOrFloat(); });
  bool known = isa<scf::YieldOp, scf::ConditionOp>(op) ||
               isa<arith::ArithDialect, math::MathDialect, index::IndexDialect>(op.getDialect());
  if (!scalar || !known || op.getNumRegions() != 0) {
    op.emitError() << "'" << op.getName() << "' cannot be part of a kernel's scalar program";
    return false;
  }
  if (StringRef name = libraryName(op); !name.empty()) {
    Value x = mapping.lookup(op.getOperand(0));
    mapping.map(op.getResult(0), builder.call(name, x.getType(), {x}));
    return true;
  }
  if (auto power = dyn_cast<math::PowFOp>(op))
    if (Value product = smallPower(builder, power, mapping)) {
      mapping.map(power.getResult(), product);
      return true;
    }
  if (auto narrow = dyn_cast<arith::TruncFOp>(op);
      narrow && narrow.getIn().getType().isF64() && !narrow.getType().isF32()) {
    // The instruction sets narrow f64 to f32 only.
    Value x =
        arith::TruncFOp::create(builder, builder.getF32Type(), mapping.lookup(narrow.getIn()));
    mapping.map(narrow.getResult(), arith::TruncFOp::create(builder, narrow.getType(), x));
    return true;
  }
  Operation *copy = builder.clone(op, mapping);
  if (isReduction(op))
    copy->setAttr("fastmath", arith::FastMathFlagsAttr::get(builder.getContext(),
                                                            arith::FastMathFlags::reassoc));
  return true;
}

std::optional<SmallVector<Value>> emitProgram(KernelBuilder &builder, Block &block,
                                              IRMapping &mapping, const Position &position) {
  for (Operation &op : block.without_terminator())
    if (!emitScalar(builder, op, mapping, position))
      return std::nullopt;
  SmallVector<Value> results;
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(mapping.lookup(operand));
  return results;
}

} // namespace otf::cpu
