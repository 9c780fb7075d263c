// SPDX-License-Identifier: Apache-2.0
//
// Static grids for activations.
//
// Problem: a scale for each 32 activations of each row is found at run time and keeps sums from being integers; networks that were
// trained with bounded activations do not need it. Approach: one grid a tensor from the histogram of calibration. Its bins are an
// eighth of an octave wide, so what rounding and clipping cost follows from the counts: step² / 12 for each value inside, the squared
// distance for each outside, which counts more (GridRange.cpp). Least and largest value are the choice where clipping does not pay.
// What is rotated is nearly normal, whatever the histogram was.

#include "lib/Analysis/Statistics.h"

#include "dialects/OTF/Codes.h"
#include "passes/Decide/GridRange.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEGRIDS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {


bool isCandidate(WeightOp weight) {
  std::optional<EncodingAttr> encoding = weight.getEncoding();
  auto type = dyn_cast<RankedTensorType>(weight.getType());
  return encoding && encoding->getKind() == EncodingKind::int8 && type && type.getRank() == 2 &&
         (encoding->getGroup() == 0 || encoding->getGroup() >= type.getDimSize(1)) && !weight.getVocabulary() && !weight.getGiven() &&
         !weight.getOutliers();
}

Grid gridFor(WeightOp weight, const ChannelStatistics &channels) {
  if (weight.getRotation()) {
    double squares = std::accumulate(channels.squareSums.begin(), channels.squareSums.end(), 0.0);
    return rotatedGrid(squares / double(channels.rows) / double(channels.channels));
  }
  return chooseGrid(channels.histogram, *std::min_element(channels.least.begin(), channels.least.end()),
                    *std::max_element(channels.largest.begin(), channels.largest.end()));
}

struct ChooseGridsPass : otf::impl::ChooseGridsBase<ChooseGridsPass> {
  using ChooseGridsBase::ChooseGridsBase;
  ChooseGridsPass() = default;
  ChooseGridsPass(ChooseGridsOptions options, WeightReaderFactory open)
      : ChooseGridsBase(std::move(options)), open(std::move(open)) {}

  DenseElementsAttr vector(ArrayRef<float> values) {
    return DenseElementsAttr::get(RankedTensorType::get({int64_t(values.size())}, Float32Type::get(&getContext())), values);
  }

  /// Scales of rows and sums of their codes, as the plan will hold them.
  llvm::Error codeRows(WeightReader &reader, WeightOp weight) {
    std::vector<float> scales, sums;
    bool exact = true;
    llvm::Error error = reader.forEachRow(weight, [&](int64_t, ArrayRef<float> row) -> llvm::Error {
      float most = 0;
      for (float value : row) {
        if (!std::isfinite(value))
          return llvm::createStringError("a weight is NaN or infinite; look at what made it, or have --allow-nonfinite keep it as f32");
        most = std::max(most, std::abs(value));
      }
      float scale = most / 127.0f > 0 ? most / 127.0f : 1.0f;
      double sum = 0, magnitudes = 0;
      for (float value : row) {
        double code = codeOf(value, scale);
        sum += code;
        magnitudes += std::abs(code);
      }
      exact &= hasExactSums(magnitudes);
      scales.push_back(scale);
      sums.push_back(float(sum));
      return llvm::Error::success();
    });
    if (error)
      return error;
    weight->setAttr(kRowScalesAttribute, vector(scales));
    weight->setAttr(kRowSumsAttribute, vector(sums));
    if (exact)
      weight->setAttr(kExactSumsAttribute, UnitAttr::get(&getContext()));
    return llvm::Error::success();
  }

  LogicalResult fail(const Twine &what) {
    getOperation().emitError() << getArgument() << ": " << what;
    signalPassFailure();
    return failure();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<Statistics> known = Statistics::open(calibration);
    if (!known)
      return (void)fail(llvm::toString(known.takeError()));
    SymbolTable symbols(module);
    llvm::DenseMap<Operation *, SmallVector<LinearOp>> readers;
    llvm::DenseSet<Operation *> readElsewhere;
    module.walk([&](UseOp use) {
      Operation *weight = symbols.lookup<WeightOp>(use.getWeight());
      for (Operation *user : use->getUsers())
        if (auto linear = dyn_cast<LinearOp>(user); linear && !linear.getInput().getDefiningOp<OnGridOp>())
          readers[weight].push_back(linear);
        else
          readElsewhere.insert(weight);
    });
    std::unique_ptr<WeightReader> reader;
    for (auto weight : module.getOps<WeightOp>()) {
      if (!isCandidate(weight))
        continue;
      const ChannelStatistics *channels = known->find(weight.getSymName());
      if (!channels || channels->channels != cast<RankedTensorType>(weight.getType()).getDimSize(1) || readElsewhere.contains(weight)) {
        ++numKept;
        continue;
      }
      if (!reader) {
        if (!open)
          return (void)fail("no model is open to read weights from");
        llvm::Expected<std::unique_ptr<WeightReader>> opened = open(module, model);
        if (!opened)
          return (void)fail(llvm::toString(opened.takeError()));
        reader = std::move(*opened);
      }
      if (llvm::Error error = codeRows(*reader, weight)) {
        weight.emitOpError() << "cannot be coded: " << llvm::toString(std::move(error));
        return signalPassFailure();
      }
      Grid grid = gridFor(weight, *channels);
      weight.setEncodingAttr(EncodingAttr::get(&getContext(), EncodingKind::grid8, 0));
      for (LinearOp linear : readers[weight])
        linear->setAttr(kGridAttribute, DenseF32ArrayAttr::get(&getContext(), {grid.scale, grid.zero}));
      ++numWeights;
    }
  }

  WeightReaderFactory open;
};

} // namespace

std::unique_ptr<Pass> otf::createChooseGrids(ChooseGridsOptions options, WeightReaderFactory open) {
  return std::make_unique<ChooseGridsPass>(std::move(options), std::move(open));
}
