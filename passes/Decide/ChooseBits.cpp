// SPDX-License-Identifier: Apache-2.0
//
// One encoding for linear weights, one for vocabulary tables.
//
// Problem: which bits a weight gets is a decision that people want to see and to override.
// Approach: an attribute on each weight, written only where there is none.

#include "dialects/OTF/Derived.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEBITS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// The tensor whose elements a body only moves, or null: it yields what it extracts, through casts between floats at
/// most. A body that computes would make an activation out of what a linear gives.
Value movedSource(tensor::GenerateOp generate) {
  Value value = cast<tensor::YieldOp>(generate.getBody().front().getTerminator()).getValue();
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  auto extract = value.getDefiningOp<tensor::ExtractOp>();
  return extract && extract->getParentOp() == generate ? extract.getTensor() : Value();
}

/// Whether `value` is returned with float casts, moves and reshapes between at most.
bool reachesResult(Value value) {
  for (Operation *user : value.getUsers()) {
    if (isa<func::ReturnOp>(user))
      return true;
    if (auto reshape = dyn_cast<ReshapeOp>(user))
      if (reachesResult(reshape.getResult()))
        return true;
    auto generate = user->getParentOfType<tensor::GenerateOp>();
    if (generate && movedSource(generate) == value && reachesResult(generate.getResult()))
      return true;
  }
  return false;
}

/// Columns of a convolution up to which its weight stays as it is. One or two groups of 32 cost as much as they save, and they
/// hold outputs of depthwise convolutions, whose ranges differ a hundredfold in one group: such a layer alone took the cosine of a text
/// detector's output to 0.79, and all others together to 0.997.
constexpr int64_t kFewColumns = 64;

bool isNarrowConvolution(LinearOp linear) {
  return linear.getWeight().getType().getColumns() <= kFewColumns &&
         (linear.getWindow() || cast<RankedTensorType>(linear.getType()).getRank() >= 4);
}

struct ChooseBitsPass : otf::impl::ChooseBitsBase<ChooseBitsPass> {
  using ChooseBitsBase::ChooseBitsBase;

  EncodingAttr parse(StringRef option, StringRef text, int64_t columns) {
    ModuleOp module = getOperation();
    std::optional<EncodingKind> kind = symbolizeEncodingKind(text);
    if (!kind) {
      module.emitError() << getArgument() << ": " << option
                         << " must be f32, f16, int8, int4, codebook2, ternary_sign, planes3x1 to planes3x4 or planes4x1 to planes4x3, got \"" << text << "\"";
      return {};
    }
    bool plain = *kind == EncodingKind::f32 || *kind == EncodingKind::f16;
    return EncodingAttr::getChecked([&] { return module.emitError() << getArgument() << ": "; },
                                    &getContext(), *kind, plain ? 0 : columns);
  }

  /// Linears that read an embedding table get a weight of their own, of the same bytes.
  void splitHeads(SymbolTable &symbols) {
    llvm::SmallPtrSet<Operation *, 4> embedded;
    getOperation().walk([&](EmbeddingOp embedding) {
      if (auto use = embedding.getTable().getDefiningOp<UseOp>())
        embedded.insert(symbols.lookup(use.getWeight()));
    });
    llvm::DenseMap<Operation *, WeightOp> heads;
    getOperation().walk([&](LinearOp linear) {
      auto use = linear.getWeight().getDefiningOp<UseOp>();
      auto weight = use ? symbols.lookup<WeightOp>(use.getWeight()) : WeightOp();
      if (!weight || !embedded.contains(weight) || weight.getEncoding() || linear.getWindow())
        return;
      WeightOp &head = heads[weight];
      if (!head) {
        head = weight.clone();
        head.setSymName((weight.getSymName() + ".head").str());
        head->setDiscardableAttr(kCopyOfAttribute, weight.getSymNameAttr());
        symbols.insert(head, std::next(Block::iterator(weight)));
        ++numSplit;
      }
      OpBuilder builder(linear);
      linear.getWeightMutable().assign(
          UseOp::create(builder, linear.getLoc(), use.getType(), FlatSymbolRefAttr::get(head.getSymNameAttr())));
    });
    getOperation().walk([](UseOp use) {
      if (use->use_empty())
        use.erase();
    });
  }

  void runOnOperation() override {
    EncodingAttr linearEncoding = parse("linear", linear, group);
    EncodingAttr vocabularyEncoding = parse("vocabulary", vocabulary, vocabularyGroup < 0 ? group : vocabularyGroup);
    if (!linearEncoding || !vocabularyEncoding)
      return signalPassFailure();

    SymbolTable symbols(getOperation());
    if (splitHead)
      splitHeads(symbols);
    llvm::SetVector<Operation *> matrices;
    llvm::SmallPtrSet<Operation *, 4> tables, embedded, narrow;
    getOperation().walk([&](UseOp use) {
      if (!isa<MatrixType>(use.getType()))
        return;
      Operation *weight = symbols.lookup<WeightOp>(use.getWeight());
      for (Operation *user : use->getUsers()) {
        if (isa<LinearOp, EmbeddingOp>(user))
          matrices.insert(weight);
        if (isa<EmbeddingOp>(user))
          embedded.insert(weight);
        if (auto linear = dyn_cast<LinearOp>(user); linear && isNarrowConvolution(linear))
          narrow.insert(weight);
        if (isa<EmbeddingOp>(user) || (isa<LinearOp>(user) && reachesResult(user->getResult(0))))
          tables.insert(weight);
      }
    });
    for (Operation *op : matrices) {
      auto weight = cast<WeightOp>(op);
      bool isTable = tables.contains(op);
      if (isTable)
        weight.setVocabulary(true);
      if (weight.getEncoding()) {
        ++numKept;
        continue;
      }
      bool asTable = isTable && !(codedHead && !embedded.contains(op));
      // What a file has quantized is not made better by keeping it.
      bool plain = isPlain(linearEncoding) || !narrow.contains(op) || weight.getGivenAttr();
      EncodingAttr chosen = plain ? linearEncoding : EncodingAttr::get(&getContext(), EncodingKind::f32, 0);
      weight.setEncodingAttr(asTable ? vocabularyEncoding : chosen);
      if (isTable && !asTable)
        weight->setDiscardableAttr(kAsLinearAttribute, UnitAttr::get(&getContext()));
      weight.setJointFit(jointFit && weight.getEncoding()->getKind() == EncodingKind::ternary_sign);
      ++(isTable ? numVocabulary : numLinear);
    }
  }
};

} // namespace
