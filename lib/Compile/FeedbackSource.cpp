// SPDX-License-Identifier: Apache-2.0
//
// What a weight meets is what the model computes, but for rotations and units (InputMoments.h); then moments are held apart.

#include "lib/Compile/FeedbackSource.h"

#include "dialects/OTF/Derived.h"
#include "lib/Compile/InputMoments.h"

#include <vector>

namespace otf {

llvm::Expected<const Feedback *> FeedbackSource::of(WeightOp weight, const uint32_t *order) {
  if (!weight.getFeedbackAttr())
    return nullptr;
  const ChannelStatistics *found = statistics ? statistics->find(observedName(weight)) : nullptr;
  if (!found || !found->hasProducts())
    return llvm::createStringError("error feedback needs statistics of what it multiplies, and there are none (calibrate, or round to nearest)");
  if (found == channels && weight.getRotationAttr() == rotation && weight->getAttr(kUnitAttribute) == unit && weight->getAttr(kCenterAttribute) == center && weight.getOutliersAttr() == outliers &&
      weight.getFeedbackAttr() == damping)
    return &feedback;
  channels = nullptr;
  std::vector<double> changed;
  if (changesInputs(weight))
    changed = inputMoments(weight, *found);
  auto moment = [&](int64_t i, int64_t j) {
    return changed.empty() ? double(found->product(i, j)) : changed[size_t(i * found->channels + j)];
  };
  std::string error;
  if (!feedback.factor(found->channels, moment, order, weight.getFeedbackAttr().getValueAsDouble(), error))
    return llvm::createStringError(error);
  channels = found;
  rotation = weight.getRotationAttr();
  unit = weight->getAttr(kUnitAttribute);
  center = weight->getAttr(kCenterAttribute);
  outliers = weight.getOutliersAttr();
  damping = weight.getFeedbackAttr();
  return &feedback;
}

} // namespace otf
