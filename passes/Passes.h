// SPDX-License-Identifier: Apache-2.0
//
// Constructors and registration of the passes in Passes.td.
#ifndef OTF_PASSES_PASSES_H
#define OTF_PASSES_PASSES_H

#include "passes/WeightReader.h"

#include "mlir/Pass/Pass.h"

namespace otf {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// otf-choose-outliers that reads weights through what `open` gives; the other constructor makes
/// one that refuses.
std::unique_ptr<mlir::Pass> createChooseOutliers(ChooseOutliersOptions options,
                                                 WeightReaderFactory open);

/// otf-choose-grids, likewise.
std::unique_ptr<mlir::Pass> createChooseGrids(ChooseGridsOptions options, WeightReaderFactory open);

/// otf-keep-nonfinite, likewise.
std::unique_ptr<mlir::Pass> createKeepNonfinite(KeepNonfiniteOptions options, WeightReaderFactory open);

/// otf-choose-smoothing, likewise.
std::unique_ptr<mlir::Pass> createChooseSmoothing(ChooseSmoothingOptions options, WeightReaderFactory open);

/// What part of a weight's error, by the inputs of the calibration, the best `rank` takes off.
using CapturedEnergy = std::function<llvm::Expected<double>(WeightOp weight, int64_t rank)>;

/// otf-choose-low-rank whose gate asks `captured`; the other constructor makes one that refuses `gated`.
std::unique_ptr<mlir::Pass> createChooseLowRank(ChooseLowRankOptions options, CapturedEnergy captured);

/// Registers all passes and pipelines by name. `open` serves otf-choose-outliers.
void registerOtfPasses(WeightReaderFactory open = {});

} // namespace otf

#endif // OTF_PASSES_PASSES_H
