// SPDX-License-Identifier: Apache-2.0
//
// Weights that hold NaN or an infinity stay f32.
//
// Problem: no code says NaN, so such a weight ends a compilation, and whoever knows of it has no way on. Approach: on demand, all
// weights are read once before anything is decided, and those that need it get the one encoding that holds every float.

#include "dialects/OTF/Codes.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_KEEPNONFINITE
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {

/// What is not finite in a weight: how many, and where the first one is.
struct Found {
  int64_t count = 0, row = 0, column = 0;
};

struct KeepNonfinitePass : otf::impl::KeepNonfiniteBase<KeepNonfinitePass> {
  using KeepNonfiniteBase::KeepNonfiniteBase;
  KeepNonfinitePass() = default;
  KeepNonfinitePass(KeepNonfiniteOptions options, WeightReaderFactory open)
      : KeepNonfiniteBase(std::move(options)), open(std::move(open)) {}

  llvm::Expected<Found> find(WeightReader &reader, WeightOp weight) {
    Found found;
    llvm::Error error = reader.forEachRow(weight, [&](int64_t n, ArrayRef<float> row) {
      for (auto [k, value] : llvm::enumerate(row))
        if (!std::isfinite(value) && found.count++ == 0)
          found = {1, n, int64_t(k)};
      return llvm::Error::success();
    });
    if (error)
      return std::move(error);
    return found;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    llvm::SmallPtrSet<Operation *, 16> matrices;
    module.walk([&](UseOp use) {
      if (isa<MatrixType>(use.getType()))
        matrices.insert(symbols.lookup<WeightOp>(use.getWeight()));
    });
    if (!open) {
      module.emitError() << getArgument() << ": no model is open to read weights from";
      return signalPassFailure();
    }
    llvm::Expected<std::unique_ptr<WeightReader>> reader = open(module, model);
    if (!reader) {
      module.emitError() << getArgument() << ": " << llvm::toString(reader.takeError());
      return signalPassFailure();
    }
    for (auto weight : module.getOps<WeightOp>()) {
      // Codes of a file are finite, and their scales are looked at when they are read.
      if (!matrices.contains(weight) || weight.getEncoding() || weight.getGivenAttr())
        continue;
      llvm::Expected<Found> found = find(**reader, weight);
      if (!found) {
        weight.emitOpError() << "cannot be read: " << llvm::toString(found.takeError());
        return signalPassFailure();
      }
      if (found->count == 0)
        continue;
      weight.emitWarning() << "stays f32: " << found->count << " of its elements are NaN or infinite, the first in row " << found->row
                           << ", column " << found->column << " (outputs x inputs)";
      weight.setEncodingAttr(EncodingAttr::get(&getContext(), EncodingKind::f32, 0));
      weight->setAttr(kNonfiniteAttribute, UnitAttr::get(&getContext()));
      ++numWeights;
    }
  }

  WeightReaderFactory open;
};

} // namespace

std::unique_ptr<Pass> otf::createKeepNonfinite(KeepNonfiniteOptions options, WeightReaderFactory open) {
  return std::make_unique<KeepNonfinitePass>(std::move(options), std::move(open));
}
