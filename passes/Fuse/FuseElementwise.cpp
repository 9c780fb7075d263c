// SPDX-License-Identifier: Apache-2.0
//
// Bodies of tensor.generate are substituted into each other.
//
// Problem: models are written as chains of small operators, each of which would be a launch and a
// trip through memory. Approach: every such operator is a function from an index to a scalar, so
// fusing is substitution of a body for a read. One walk in program order fuses chains of any
// length, because what a reader takes in has taken in its own producers. The rules about cost are
// in Passes.td; MLIR's canonicalizer substitutes without any and would compute a reduction once for
// each reader's element.

#include "passes/Fuse/Bodies.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

// Bodies only grow; past this a kernel is no longer faster than two.
constexpr unsigned kLargestBody = 512;

//===------------------------------------------------------------------------------------------===//
// Gated activations
//===------------------------------------------------------------------------------------------===//

Value activate(OpBuilder &b, Location loc, Activation function, Value x) {
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(value)));
  };
  auto mul = [&](Value left, Value right) -> Value {
    return arith::MulFOp::create(b, loc, left, right);
  };
  auto add = [&](Value left, Value right) -> Value {
    return arith::AddFOp::create(b, loc, left, right);
  };
  switch (function) {
  case Activation::relu:
    return arith::MaximumFOp::create(b, loc, x, number(0.0));
  case Activation::silu: {
    Value negated = arith::NegFOp::create(b, loc, x);
    Value exponential = math::ExpOp::create(b, loc, negated);
    return arith::DivFOp::create(b, loc, x, add(number(1.0), exponential));
  }
  case Activation::gelu: {
    Value erf = math::ErfOp::create(b, loc, mul(x, number(1.0 / std::sqrt(2.0))));
    return mul(mul(number(0.5), x), add(number(1.0), erf));
  }
  case Activation::gelu_tanh: {
    Value cube = mul(mul(x, x), x);
    Value inner = mul(number(std::sqrt(2.0 / M_PI)), add(x, mul(number(0.044715), cube)));
    Value tanh = math::TanhOp::create(b, loc, inner);
    return mul(mul(number(0.5), x), add(number(1.0), tanh));
  }
  }
  return {};
}

void expand(GatedActivationOp gated) {
  OpBuilder builder(gated);
  Location loc = gated.getLoc();
  auto type = cast<RankedTensorType>(gated.getType());
  SmallVector<Value> extents;
  for (const otf::Size &size : sizesOf(type))
    if (!size.isConstant())
      extents.push_back(SizeOp::create(builder, loc, size));
  auto body = tensor::GenerateOp::create(
      builder, loc, type, extents, [&](OpBuilder &inner, Location loc, ValueRange index) {
        Value gate = tensor::ExtractOp::create(inner, loc, gated.getGate(), index);
        Value up = tensor::ExtractOp::create(inner, loc, gated.getUp(), index);
        Value value =
            arith::MulFOp::create(inner, loc, activate(inner, loc, gated.getFunction(), gate), up);
        tensor::YieldOp::create(inner, loc, value);
      });
  gated.replaceAllUsesWith(body.getResult());
  gated.erase();
}

//===------------------------------------------------------------------------------------------===//
// Substitution
//===------------------------------------------------------------------------------------------===//

/// Makes a read through a reshape that only adds or drops ones a read of the reshape's source.
bool readSource(tensor::ExtractOp extract) {
  auto reshape = extract.getTensor().getDefiningOp<ReshapeOp>();
  if (!reshape)
    return false;
  auto real = [](Type type) {
    SmallVector<unsigned> axes;
    for (auto [axis, size] : llvm::enumerate(sizesOf(cast<RankedTensorType>(type))))
      if (size != otf::Size(1))
        axes.push_back(axis);
    return axes;
  };
  Type from = reshape.getResult().getType(), to = reshape.getSource().getType();
  SmallVector<unsigned> fromAxes = real(from), toAxes = real(to);
  SmallVector<otf::Size> fromSizes = sizesOf(cast<RankedTensorType>(from)),
                         toSizes = sizesOf(cast<RankedTensorType>(to));
  if (fromAxes.size() != toAxes.size())
    return false;
  for (auto [a, b] : llvm::zip(fromAxes, toAxes))
    if (fromSizes[a] != toSizes[b])
      return false;
  OpBuilder builder(extract);
  SmallVector<Value> indices(toSizes.size());
  for (auto [a, b] : llvm::zip(fromAxes, toAxes))
    indices[b] = extract.getIndices()[a];
  for (Value &index : indices)
    if (!index)
      index = arith::ConstantIndexOp::create(builder, extract.getLoc(), 0);
  extract.getTensorMutable().assign(reshape.getSource());
  extract.getIndicesMutable().assign(indices);
  return true;
}

/// Whether different indices of the reader's result read different elements, each once: the indices
/// are the reader's arguments in some order, and constants where the producer has size one.
bool isBijective(tensor::ExtractOp extract, tensor::GenerateOp reader) {
  Block &body = reader.getBody().front();
  if (extract->getBlock() != &body)
    return false;
  llvm::SmallDenseSet<unsigned> seen;
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  for (auto [axis, index] : llvm::enumerate(extract.getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (argument && argument.getOwner() == &body) {
      if (!seen.insert(argument.getArgNumber()).second)
        return false;
    } else if (type.getDimSize(axis) != 1) {
      return false;
    }
  }
  // An argument that is missing repeats the read, but for a dimension of one.
  for (auto [axis, size] : llvm::enumerate(sizesOf(cast<RankedTensorType>(reader.getType()))))
    if (!seen.contains(axis) && size != otf::Size(1))
      return false;
  return true;
}

/// Puts the body of `producer` in the place of a read of it.
void substitute(tensor::ExtractOp extract, tensor::GenerateOp producer, tensor::GenerateOp reader) {
  Block &body = producer.getBody().front();
  IRMapping map;
  map.map(body.getArguments(), extract.getIndices());
  OpBuilder builder(extract);
  for (Operation &op : body.without_terminator())
    builder.clone(op, map);
  auto yield = cast<tensor::YieldOp>(body.getTerminator());
  extract.replaceAllUsesWith(map.lookupOrDefault(yield.getValue()));
  extract.erase();
  reader->setLoc(FusedLoc::get(reader.getContext(), {producer.getLoc(), reader.getLoc()}));
}

/// Makes one of equal reads in the same block, so that x · x reads its operand once.
void mergeReads(tensor::GenerateOp generate) {
  SmallVector<tensor::ExtractOp> kept;
  generate.getBody().walk([&](tensor::ExtractOp extract) {
    for (tensor::ExtractOp earlier : kept)
      if (earlier->getBlock() == extract->getBlock() &&
          earlier.getTensor() == extract.getTensor() &&
          llvm::equal(earlier.getIndices(), extract.getIndices())) {
        extract.replaceAllUsesWith(earlier.getResult());
        extract.erase();
        return;
      }
    kept.push_back(extract);
  });
}

/// Whether a body reads a contraction at its own index, so that it can become its epilogue.
bool endsLinear(tensor::GenerateOp generate) {
  Block &body = generate.getBody().front();
  return generate.getBody()
      .walk([&](tensor::ExtractOp extract) {
        bool ends = extract.getTensor().getDefiningOp<LinearOp>() && isOwnIndex(extract.getIndices(), body);
        return ends ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a body only turns a tensor for bodies that read it. Each of them takes it in, and what it
/// turns keeps its order: a convolution's channels stay last up to the windows of the next.
bool turnsForBodies(tensor::GenerateOp generate) {
  auto inBody = [&](Operation *user) {
    auto reader = isa<tensor::ExtractOp>(user) ? user->getParentOfType<tensor::GenerateOp>()
                                               : tensor::GenerateOp();
    return reader && reader->getBlock() == generate->getBlock();
  };
  return asPermutation(generate) && llvm::all_of(generate.getResult().getUsers(), inBody);
}

struct FuseElementwisePass : otf::impl::FuseElementwiseBase<FuseElementwisePass> {
  using FuseElementwiseBase::FuseElementwiseBase;

  bool isWorthwhile(tensor::ExtractOp extract, tensor::GenerateOp producer,
                    tensor::GenerateOp reader) {
    BodyCost cost = costOf(producer);
    if (cost.operations + costOf(reader).operations > kLargestBody)
      return false;
    bool isShort = cost.operations <= maxOps;
    if (cost.movesOnly && isShort)
      return true;
    if (!producer.getResult().hasOneUse())
      return false;
    if (isBijective(extract, reader))
      return true;
    // An epilogue costs nothing where it is; a reader that repeats its reads would repeat it.
    return !endsLinear(producer) && isShort && !cost.loops && !cost.transcendental;
  }

  /// One substitution in `reader`, if there is one.
  bool step(tensor::GenerateOp reader) {
    mergeReads(reader);
    SmallVector<tensor::ExtractOp> reads;
    reader.getBody().walk([&](tensor::ExtractOp extract) { reads.push_back(extract); });
    for (tensor::ExtractOp extract : reads) {
      while (readSource(extract))
        ;
      auto producer = extract.getTensor().getDefiningOp<tensor::GenerateOp>();
      if (!producer || producer->getBlock() != reader->getBlock() ||
          !isWorthwhile(extract, producer, reader))
        continue;
      substitute(extract, producer, reader);
      if (producer.getResult().use_empty())
        producer.erase();
      ++numSubstituted;
      return true;
    }
    return false;
  }

  void runOnOperation() override {
    getOperation().walk([&](GatedActivationOp gated) {
      expand(gated);
      ++numExpanded;
    });
    SmallVector<tensor::GenerateOp> readers;
    llvm::SetVector<Operation *> reshapes;
    getOperation().walk([&](Operation *op) {
      // A body inside another, which nothing here makes, is not a kernel and stays.
      if (auto generate = dyn_cast<tensor::GenerateOp>(op))
        if (!generate->getParentOfType<tensor::GenerateOp>())
          readers.push_back(generate);
      if (isa<ReshapeOp>(op))
        reshapes.insert(op);
    });
    // A reshape that only feeds reads keeps its source alive; reads go to the source first.
    for (tensor::GenerateOp reader : readers)
      reader.getBody().walk([](tensor::ExtractOp extract) {
        while (readSource(extract))
          ;
      });
    for (Operation *reshape : llvm::reverse(reshapes))
      if (reshape->use_empty())
        reshape->erase();
    // A producer that is erased was a reader before its own reader, so no pointer ahead dangles.
    for (tensor::GenerateOp reader : readers)
      while (!turnsForBodies(reader) && step(reader))
        ;
  }
};

} // namespace
