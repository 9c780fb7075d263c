// SPDX-License-Identifier: Apache-2.0
//
// What a weight meets is what the model computes, but for rotations and units (InputMoments.h); then moments are held apart.

#include "lib/Compile/FeedbackSource.h"

#include "dialects/OTF/Derived.h"
#include "lib/Compile/InputMoments.h"

#include <vector>

namespace otf {

llvm::Expected<FactorSource> FactorSource::of(WeightOp weight, const Statistics *statistics, const uint32_t *order) {
  if (!weight.getFeedbackAttr())
    return FactorSource();
  const ChannelStatistics *found = statistics ? statistics->find(observedName(weight)) : nullptr;
  if (!found || !found->hasProducts())
    return llvm::createStringError("error feedback needs statistics of what it multiplies, and there are none (calibrate, or round to nearest)");
  return FactorSource{found, weight, order};
}

bool FactorSource::makesTheSame(const FactorSource &other) const {
  WeightOp a = weight, b = other.weight;
  return channels == other.channels && a.getRotationAttr() == b.getRotationAttr() && a->getAttr(kUnitAttribute) == b->getAttr(kUnitAttribute) &&
         a->getAttr(kCenterAttribute) == b->getAttr(kCenterAttribute) && a.getOutliersAttr() == b.getOutliersAttr() &&
         a.getFeedbackAttr() == b.getFeedbackAttr();
}

int64_t FactorSource::keptBytes() const { return (4 * channels->channels + 550) * channels->channels; }

int64_t FactorSource::workBytes() const {
  return ((changesInputs(weight) ? 20 : 12) * channels->channels + 550) * channels->channels;
}

std::string FactorSource::make(Feedback &feedback) const {
  std::vector<double> changed;
  if (changesInputs(weight))
    changed = inputMoments(weight, *channels);
  auto moment = [&](int64_t i, int64_t j) {
    return changed.empty() ? double(channels->product(i, j)) : changed[size_t(i * channels->channels + j)];
  };
  std::string error;
  WeightOp decided = weight;
  feedback.factor(channels->channels, moment, order, decided.getFeedbackAttr().getValueAsDouble(), error);
  return error.empty() ? error : error + " (calibrate on what reaches it, or take a recipe that rounds to nearest)";
}

llvm::Expected<const Feedback *> FeedbackSource::of(WeightOp weight, const uint32_t *order) {
  llvm::Expected<FactorSource> source = FactorSource::of(weight, statistics, order);
  if (!source)
    return source.takeError();
  if (!*source)
    return nullptr;
  if (known && known.makesTheSame(*source))
    return &feedback;
  known = {};
  if (std::string failure = source->make(feedback); !failure.empty())
    return llvm::createStringError(failure);
  known = *source;
  return &feedback;
}

} // namespace otf
