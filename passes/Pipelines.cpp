// SPDX-License-Identifier: Apache-2.0
//
// Order of the passes, and registration by name.

#include "passes/Pipelines.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace otf;

namespace otf {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace otf

void otf::buildDecidePipeline(OpPassManager &manager, const DecideOptions &options,
                              WeightReaderFactory open, CapturedEnergy captured) {
  // What no code can hold is out of all that follows.
  if (options.keepNonfinite)
    manager.addPass(createKeepNonfinite({options.model}, open));
  // Whole blocks before single weights.
  if (options.keepFirst != 0 || options.keepLast != 0)
    manager.addPass(createKeepBlocks({options.keepFirst, options.keepLast}));
  // Bits first: outliers are for coded weights only.
  ChooseBitsOptions bits;
  bits.linear = options.linear;
  bits.vocabulary = options.vocabulary;
  bits.group = options.group;
  bits.vocabularyGroup = options.vocabularyGroup;
  bits.codedHead = options.codedHead;
  bits.jointFit = options.jointFit;
  bits.splitHead = options.splitHead;
  manager.addPass(createChooseBits(bits));
  // Then the columns that these bits would hurt most.
  if (options.outliers > 0.0) {
    ChooseOutliersOptions outliers;
    outliers.fraction = options.outliers;
    outliers.model = options.model;
    outliers.calibration = options.statistics;
    manager.addPass(createChooseOutliers(outliers, open));
  }
  // Then what coded weights are multiplied with.
  if (options.activations == "f32" || options.activations == "row")
    manager.addPass(createChooseActivations({options.activations}));
  // Caches are no weights: of all this nothing bears on them.
  if (options.cache != "f32")
    manager.addPass(createChooseCaches({options.cache}));
  // Units before rotations: what is rotated is relative.
  if (options.power >= 0.0) {
    ChooseSmoothingOptions smoothing;
    smoothing.power = options.power;
    smoothing.center = options.center;
    smoothing.model = options.model;
    smoothing.calibration = options.statistics;
    manager.addPass(createChooseSmoothing(smoothing, open));
  }
  // A weight with outliers is not rotated.
  if (options.rotation != "none") {
    ChooseRotationsOptions rotations;
    rotations.kind = options.rotation;
    rotations.block = options.rotationBlock;
    rotations.seed = options.seed;
    manager.addPass(createChooseRotations(rotations));
  }
  // What is rotated has other ranges, and so have the rows of its weight.
  if (options.staticGrids) {
    ChooseGridsOptions grids;
    grids.model = options.model;
    grids.calibration = options.statistics;
    manager.addPass(createChooseGrids(grids, open));
  }
  // How codes are chosen says nothing about which.
  if (options.feedback > 0.0) {
    ChooseRoundingOptions rounding;
    rounding.damping = options.feedback;
    manager.addPass(createChooseRounding(rounding));
  }
  // Whose errors cost how much is known for this rotation and rounding.
  if (!options.budget.empty()) {
    SpendBudgetOptions spend;
    spend.budget = options.budget;
    spend.choices = options.choices;
    spend.tables = options.tables;
    spend.group = options.group;
    spend.sensitivities = options.sensitivities;
    manager.addPass(createSpendBudget(spend));
  }
  // What is lost is known when all else is.
  if (options.sharedBase)
    manager.addPass(createChooseBases({options.rank, options.sweeps}));
  else if (options.rank > 0)
    manager.addPass(createChooseLowRank({options.rank, options.rankGate}, std::move(captured)));
}

void otf::buildRewritePipeline(OpPassManager &manager, bool foldNorms) {
  // Folds are recorded on weights while norms and linears still face each other.
  if (foldNorms)
    manager.addPass(createFoldNorms());
  // Linears read relative inputs ...
  manager.addPass(createSmooth());
  // ... rotated ...
  manager.addPass(createRotate());
  // ... once more, as floats, for what coding loses ...
  manager.addPass(createAddLowRank());
  // ... and as codes with a scale a row ...
  manager.addPass(createQuantizeRows());
  // ... or in records that prologues make.
  manager.addPass(createEncode());
  // Caches have no part in any of that.
  manager.addPass(createEncodeCaches());
}

void otf::buildFusePipeline(OpPassManager &manager) {
  // Equal constants and sizes become one, so that equal indices are equal values below.
  manager.addPass(createMergeEqual());
  // Bodies over transposed contractions take the contractions' order.
  manager.addPass(createSinkTransposes());
  // Transpositions go before elementwise fusion can hide them in a body.
  manager.addPass(createFuseAttention());
  manager.addPass(createFusePrologue());
  // Bodies are as large as they get before a linear takes one.
  manager.addPass(createFuseElementwise());
  manager.addPass(createFuseEpilogue());
  // What fusing left without a reader.
  manager.addPass(createMergeEqual());
}

void otf::buildLowerPipeline(OpPassManager &manager) {
  // Operators to kernels and calls.
  manager.addPass(createOutline());
  // Values to memory.
  manager.addPass(createBufferize());
  // Which launches may be one ...
  manager.addPass(createMergeLaunches());
  // ... before memory goes to slots, launches to work items.
  manager.addPass(createSchedule());
  // What is left is a plan.
  manager.addPass(createLowerToPlan());
}

void otf::registerOtfPasses(WeightReaderFactory open) {
  // The first registration of a name stands.
  registerPass([open] { return createChooseOutliers({}, open); });
  registerPass([open] { return createChooseGrids({}, open); });
  registerPass([open] { return createChooseSmoothing({}, open); });
  registerPass([open] { return createKeepNonfinite({}, open); });
  registerPipelinePasses();

  PassPipelineRegistration<DecideOptions>(
      "otf-annotate", "imported to annotated: decisions become attributes",
      [open](OpPassManager &manager, const DecideOptions &options) {
        buildDecidePipeline(manager, options, open);
      });
  PassPipelineRegistration<>("otf-quantize",
                             "annotated to quantized: matrices and norms follow the decisions",
                             [](OpPassManager &manager) { buildRewritePipeline(manager); });
  PassPipelineRegistration<>(
      "otf-fuse", "quantized to fused: one kernel's work becomes one operator", buildFusePipeline);
  PassPipelineRegistration<>("otf-plan", "fused to planned: kernels, buffers, launches",
                             buildLowerPipeline);
}
