// SPDX-License-Identifier: Apache-2.0
//
// A rotated weight meets rotated inputs R x, whose second moments are R H Rᵀ: rows of H are rotated, then columns.

#include "lib/Compile/FeedbackSource.h"

#include "lib/Encoding/Rotation.h"

#include <vector>

namespace otf {

/// K × K, row-major, both triangles.
static std::vector<double> rotatedProducts(const ChannelStatistics &channels, const Rotation &rotation) {
  int64_t columns = channels.channels;
  std::vector<double> factor = rotationFactor(rotation), moments(size_t(columns * columns));
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j <= i; ++j)
      moments[size_t(i * columns + j)] = moments[size_t(j * columns + i)] = channels.product(i, j);
  auto rotateRows = [&] {
    for (int64_t i = 0; i < columns; ++i)
      rotateExact(rotation, factor.data(), columns, &moments[size_t(i * columns)]);
  };
  rotateRows();
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < i; ++j)
      std::swap(moments[size_t(i * columns + j)], moments[size_t(j * columns + i)]);
  rotateRows();
  return moments;
}

llvm::Expected<const Feedback *> FeedbackSource::of(WeightOp weight, const uint32_t *order) {
  if (!weight.getFeedbackAttr())
    return nullptr;
  const ChannelStatistics *found = statistics ? statistics->find(weight.getSymName()) : nullptr;
  if (!found || !found->hasProducts())
    return llvm::createStringError("error feedback needs statistics of what it multiplies, and there are none (calibrate, or round to nearest)");
  if (found == channels && weight.getRotationAttr() == rotation && weight.getOutliersAttr() == outliers &&
      weight.getFeedbackAttr() == damping)
    return &feedback;
  channels = nullptr;
  std::vector<double> rotated;
  if (RotationAttr by = weight.getRotationAttr())
    rotated = rotatedProducts(*found, {by.getBlock(), by.getFactor(), by.getSeed()});
  auto moment = [&](int64_t i, int64_t j) {
    return rotated.empty() ? double(found->product(i, j)) : rotated[size_t(i * found->channels + j)];
  };
  std::string error;
  if (!feedback.factor(found->channels, moment, order, weight.getFeedbackAttr().getValueAsDouble(), error))
    return llvm::createStringError(error);
  channels = found;
  rotation = weight.getRotationAttr();
  outliers = weight.getOutliersAttr();
  damping = weight.getFeedbackAttr();
  return &feedback;
}

} // namespace otf
