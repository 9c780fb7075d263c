// SPDX-License-Identifier: Apache-2.0
//
// Columns of large weights stay in f16.
//
// Problem: a few columns carry much of a weight's energy, and coarse codes lose it.
// Approach: rank columns by their L2 norm, times the mean |x| of the channel that each meets where calibration has seen it:
// a large weight on a channel that is always small costs nothing. Rows stream through one block, so memory does not grow
// with the weight; sums are f64 in row order, so the choice does not depend on the block.

#include "lib/Analysis/Statistics.h"

#include "dialects/OTF/Codes.h"
#include "dialects/OTF/Derived.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSEOUTLIERS
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {


bool isCandidate(WeightOp weight) {
  std::optional<EncodingAttr> encoding = weight.getEncoding();
  return encoding && !isPlain(*encoding) && isCodedAsLinear(weight) && !weight.getOutliers() && !weight.getRotation();
}

/// The best `count` columns, ascending.
SmallVector<int64_t> best(ArrayRef<double> scores, int64_t count) {
  SmallVector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  order.truncate(count);
  llvm::sort(order);
  return order;
}

struct ChooseOutliersPass : otf::impl::ChooseOutliersBase<ChooseOutliersPass> {
  using ChooseOutliersBase::ChooseOutliersBase;
  ChooseOutliersPass() = default;
  ChooseOutliersPass(ChooseOutliersOptions options, WeightReaderFactory open)
      : ChooseOutliersBase(std::move(options)), open(std::move(open)) {}

  llvm::Expected<SmallVector<double>> squares(WeightReader &reader, WeightOp weight) {
    SmallVector<double> sums(cast<RankedTensorType>(weight.getType()).getDimSize(1));
    llvm::Error error = reader.forEachRow(weight, [&](int64_t, ArrayRef<float> row) {
      for (auto [sum, value] : llvm::zip_equal(sums, row))
        sum += double(value) * double(value);
      return llvm::Error::success();
    });
    if (error)
      return std::move(error);
    // NaN has no place in an order.
    if (!llvm::all_of(sums, [](double sum) { return std::isfinite(sum); }))
      return llvm::createStringError("a weight is NaN or infinite; look at what made it, or have --allow-nonfinite keep it as f32");
    return sums;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
      module.emitError() << getArgument() << ": fraction must be from 0 to 1, got " << fraction;
      return signalPassFailure();
    }
    SmallVector<WeightOp> candidates(
        llvm::make_filter_range(module.getOps<WeightOp>(), isCandidate));
    if (candidates.empty())
      return;
    if (!open) {
      module.emitError() << getArgument() << ": no model is open to read weights from";
      return signalPassFailure();
    }
    llvm::Expected<std::unique_ptr<WeightReader>> reader = open(module, model);
    if (!reader) {
      module.emitError() << getArgument() << ": " << llvm::toString(reader.takeError());
      return signalPassFailure();
    }
    std::optional<Statistics> known;
    if (!calibration.empty()) {
      llvm::Expected<Statistics> opened = Statistics::open(calibration);
      if (!opened) {
        module.emitError() << getArgument() << ": " << llvm::toString(opened.takeError());
        return signalPassFailure();
      }
      known = std::move(*opened);
    }
    for (WeightOp weight : candidates) {
      llvm::Expected<SmallVector<double>> scores = squares(**reader, weight);
      if (!scores) {
        weight.emitOpError() << "cannot be ranked: " << llvm::toString(scores.takeError());
        return signalPassFailure();
      }
      auto count = int64_t(std::floor(fraction * double(scores->size()) + 0.5));
      if (count == 0)
        continue;
      const ChannelStatistics *channels = known ? known->find(observedName(weight)) : nullptr;
      if (channels && channels->channels != int64_t(scores->size()))
        channels = nullptr;
      if (channels) // of squares, as the norms are
        for (auto [k, score] : llvm::enumerate(*scores))
          score *= channels->meanAbsolute(int64_t(k)) * channels->meanAbsolute(int64_t(k));
      weight->setAttr(kScoredByAttribute, StringAttr::get(&getContext(), channels ? "column norm times mean |x|" : "column norm"));
      weight.setOutliersAttr(OutliersAttr::get(&getContext(), best(*scores, count)));
      ++numWeights;
      numColumns += count;
    }
  }

  WeightReaderFactory open;
};

} // namespace

std::unique_ptr<Pass> otf::createChooseOutliers(ChooseOutliersOptions options,
                                                WeightReaderFactory open) {
  return std::make_unique<ChooseOutliersPass>(std::move(options), std::move(open));
}
