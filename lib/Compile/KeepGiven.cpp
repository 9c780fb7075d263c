// SPDX-License-Identifier: Apache-2.0
//
// A decision like any other: it ends up in the attribute that rewriting reads.

#include "lib/Compile/KeepGiven.h"

#include "dialects/OTF/OTF.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace otf {

namespace {

struct KeepGiven : PassWrapper<KeepGiven, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepGiven)
  KeepGiven(bool linear, bool vocabulary) : linear(linear), vocabulary(vocabulary) {}

  StringRef getArgument() const override { return "otf-keep-given"; }
  StringRef getDescription() const override { return "f16 weights stay f16"; }

  void runOnOperation() override {
    auto half = EncodingAttr::get(&getContext(), EncodingKind::f16, 0);
    for (auto weight : getOperation().getOps<WeightOp>()) {
      std::optional<EncodingAttr> encoding = weight.getEncoding();
      bool given = weight.getVocabulary() ? vocabulary : linear;
      if (given && encoding && encoding->getKind() == EncodingKind::f32 &&
          weight.getBlob().getType().isF16())
        weight.setEncodingAttr(half);
    }
  }

  bool linear, vocabulary;
};

} // namespace

std::unique_ptr<Pass> createKeepGiven(bool linear, bool vocabulary) {
  return std::make_unique<KeepGiven>(linear, vocabulary);
}

} // namespace otf
