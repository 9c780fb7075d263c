// SPDX-License-Identifier: Apache-2.0
//
// One encoding for linear weights, one for vocabulary tables.
//
// Problem: which bits a weight gets is a decision that people want to see and to override.
// Approach: an attribute on each weight, written only where there is none.

#include "passes/Passes.h"

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

/// The one tensor that a body reads, or null.
Value onlySource(tensor::GenerateOp generate) {
  llvm::SetVector<Value> sources;
  generate.walk([&](tensor::ExtractOp extract) { sources.insert(extract.getTensor()); });
  return sources.size() == 1 ? sources.front() : Value();
}

/// Whether `value` is returned with casts, slices and reshapes between at most.
bool reachesResult(Value value) {
  for (Operation *user : value.getUsers()) {
    if (isa<func::ReturnOp>(user))
      return true;
    if (auto reshape = dyn_cast<ReshapeOp>(user))
      if (reachesResult(reshape.getResult()))
        return true;
    auto generate = user->getParentOfType<tensor::GenerateOp>();
    if (generate && onlySource(generate) == value && reachesResult(generate.getResult()))
      return true;
  }
  return false;
}

struct ChooseBitsPass : otf::impl::ChooseBitsBase<ChooseBitsPass> {
  using ChooseBitsBase::ChooseBitsBase;

  EncodingAttr parse(StringRef option, StringRef text) {
    ModuleOp module = getOperation();
    std::optional<EncodingKind> kind = symbolizeEncodingKind(text);
    if (!kind) {
      module.emitError() << getArgument() << ": " << option
                         << " must be f32, f16, int8, int4 or codebook2, got \"" << text << "\"";
      return {};
    }
    bool plain = *kind == EncodingKind::f32 || *kind == EncodingKind::f16;
    return EncodingAttr::getChecked([&] { return module.emitError() << getArgument() << ": "; },
                                    &getContext(), *kind, plain ? 0 : int64_t(group));
  }

  void runOnOperation() override {
    EncodingAttr linearEncoding = parse("linear", linear);
    EncodingAttr vocabularyEncoding = parse("vocabulary", vocabulary);
    if (!linearEncoding || !vocabularyEncoding)
      return signalPassFailure();

    SymbolTable symbols(getOperation());
    llvm::SetVector<Operation *> matrices;
    llvm::SmallPtrSet<Operation *, 4> tables;
    getOperation().walk([&](UseOp use) {
      if (!isa<MatrixType>(use.getType()))
        return;
      Operation *weight = symbols.lookup<WeightOp>(use.getWeight());
      for (Operation *user : use->getUsers()) {
        if (isa<LinearOp, EmbeddingOp>(user))
          matrices.insert(weight);
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
      weight.setEncodingAttr(isTable ? vocabularyEncoding : linearEncoding);
      ++(isTable ? numVocabulary : numLinear);
    }
  }
};

} // namespace
