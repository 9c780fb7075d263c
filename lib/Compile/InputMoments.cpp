// SPDX-License-Identifier: Apache-2.0
//
// A rotated weight meets rotated inputs R x, whose second moments are R H Rᵀ: rows of H are
// rotated, then columns.

#include "lib/Compile/InputMoments.h"

#include "dialects/OTF/Derived.h"
#include "lib/Encoding/Rotation.h"

using namespace mlir;

namespace otf {

bool changesInputs(WeightOp weight) {
  return weight.getRotationAttr() || weight->hasAttr(kUnitAttribute);
}

std::vector<double> inputMoments(WeightOp weight, const ChannelStatistics &channels) {
  int64_t columns = channels.channels;
  std::vector<double> moments(size_t(columns * columns));
  auto unit = weight->getAttrOfType<DenseFPElementsAttr>(kUnitAttribute),
       center = weight->getAttrOfType<DenseFPElementsAttr>(kCenterAttribute);
  std::vector<double> units(size_t(columns), 1.0), centers(size_t(columns), 0.0);
  for (auto [attribute, values] : {std::pair(unit, &units), {center, &centers}})
    if (attribute)
      values->assign(attribute.value_begin<float>(), attribute.value_end<float>());
  double count = double(channels.rows);
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double ci = centers[size_t(i)], cj = centers[size_t(j)];
      double product = double(channels.product(i, j)) - ci * channels.sums[size_t(j)] -
                       cj * channels.sums[size_t(i)] + count * ci * cj;
      moments[size_t(i * columns + j)] = moments[size_t(j * columns + i)] =
          product / (units[size_t(i)] * units[size_t(j)]);
    }
  RotationAttr by = weight.getRotationAttr();
  if (!by)
    return moments;
  Rotation rotation{by.getBlock(), by.getFactor(), by.getSeed()};
  std::vector<double> factor = rotationFactor(rotation);
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

} // namespace otf
