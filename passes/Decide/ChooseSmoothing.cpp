// SPDX-License-Identifier: Apache-2.0
//
// Units and references of the channels that coded weights meet.
//
// Problem: channels of very different sizes meet columns that share a scale. Approach: what the
// channel varies by, to a power, moves into the weight, and what it always is into the bias. Both
// come from the moments that calibration keeps; W c is added up here, while the model's files are
// open, in f64.

#include "lib/Analysis/Statistics.h"

#include "dialects/OTF/Derived.h"
#include "passes/Decide/Readers.h"
#include "passes/Encodings.h"
#include "passes/Passes.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;

namespace otf {
#define GEN_PASS_DEF_CHOOSESMOOTHING
#include "passes/Passes.h.inc"
} // namespace otf

using namespace otf;

namespace {


/// Of a channel's energy, below which what is left after its mean is rounding of the sums, and no
/// deviation.
constexpr double kNoVariance = 1e-12;

/// The population's; 0 for a channel that never varies.
double deviation(const ChannelStatistics &channels, int64_t k) {
  double mean = channels.mean(k), energy = channels.meanSquare(k), variance = energy - mean * mean;
  return variance > kNoVariance * energy ? std::sqrt(variance) : 0;
}

struct ChooseSmoothingPass : otf::impl::ChooseSmoothingBase<ChooseSmoothingPass> {
  using ChooseSmoothingBase::ChooseSmoothingBase;
  ChooseSmoothingPass() = default;
  ChooseSmoothingPass(ChooseSmoothingOptions options, WeightReaderFactory open)
      : ChooseSmoothingBase(std::move(options)), open(std::move(open)) {}

  void set(WeightOp weight, StringRef name, ArrayRef<float> values) {
    auto type = RankedTensorType::get({int64_t(values.size())}, Float32Type::get(&getContext()));
    weight->setDiscardableAttr(name, DenseElementsAttr::get(type, values));
  }

  /// W c.
  llvm::Expected<SmallVector<float>> products(WeightReader &reader, WeightOp weight,
                                              ArrayRef<float> center) {
    SmallVector<float> result;
    llvm::Error error = reader.forEachRow(weight, [&](int64_t, ArrayRef<float> row) {
      double sum = 0;
      for (size_t k = 0; k != row.size(); ++k)
        sum += double(row[k]) * double(center[k]);
      result.push_back(float(sum));
      return llvm::Error::success();
    });
    if (error)
      return std::move(error);
    return result;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto fail = [&](const Twine &what) {
      module.emitError() << getArgument() << ": " << what;
      signalPassFailure();
    };
    if (!(power >= 0.0 && power <= 2.0)) {
      module.emitError() << getArgument() << ": power must be from 0 to 2, got " << double(power);
      return signalPassFailure();
    }
    llvm::SmallPtrSet<Operation *, 4> others = weightsReadOtherwise(module);
    SmallVector<WeightOp> candidates;
    for (auto weight : module.getOps<WeightOp>())
      if (hasChosenCodes(weight) && isCodedAsLinear(weight) && !weight->hasAttr(kUnitAttribute) && !weight.getRotation() &&
          !others.contains(weight))
        candidates.push_back(weight);
    if (candidates.empty())
      return;
    if (calibration.empty())
      return fail("needs the statistics of a calibration");
    llvm::Expected<Statistics> known = Statistics::open(calibration);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    std::unique_ptr<WeightReader> reader;
    if (center) {
      if (!open)
        return fail("no model is open to read weights from");
      llvm::Expected<std::unique_ptr<WeightReader>> opened = open(module, model);
      if (!opened)
        return fail(llvm::toString(opened.takeError()));
      reader = std::move(*opened);
    }
    for (WeightOp weight : candidates) {
      int64_t columns = cast<RankedTensorType>(weight.getType()).getDimSize(1);
      const ChannelStatistics *channels = known->find(observedName(weight));
      if (!channels || channels->channels != columns) {
        ++numUnseen;
        continue;
      }
      SmallVector<float> unit, mean;
      for (int64_t k = 0; k != columns; ++k) {
        double varies = deviation(*channels, k);
        float s = varies > 0 ? float(std::pow(varies, double(power))) : 1.0f;
        unit.push_back(s > 0 && std::isfinite(s) && std::isfinite(1 / s) ? s : 1.0f);
        mean.push_back(float(channels->mean(k)));
      }
      if (center) {
        llvm::Expected<SmallVector<float>> sums = products(*reader, weight, mean);
        if (!sums) {
          weight.emitOpError() << "cannot be centered: " << llvm::toString(sums.takeError());
          return signalPassFailure();
        }
        set(weight, kCenterAttribute, mean);
        set(weight, kCenterProductsAttribute, *sums);
      }
      set(weight, kUnitAttribute, unit);
      ++numWeights;
    }
  }

  WeightReaderFactory open;
};

} // namespace

std::unique_ptr<Pass> otf::createChooseSmoothing(ChooseSmoothingOptions options,
                                                 WeightReaderFactory open) {
  return std::make_unique<ChooseSmoothingPass>(std::move(options), std::move(open));
}
