// SPDX-License-Identifier: Apache-2.0
//
// The runtime reads .npy files; here their elements become those of a Tensor.

#include "test/Reference/Fixture.h"

#include "runtime/Npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

namespace otf::reference::test {

template <typename From, typename To>
static std::vector<To> convert(const std::vector<std::byte> &bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = To(value);
  }
  return values;
}

std::map<std::string, Tensor> loadArrays(const std::string &fixture, const std::string &part) {
  std::map<std::string, Tensor> arrays;
  std::filesystem::path folder = std::filesystem::path(OTF_FIXTURES) / fixture / "io" / part;
  for (auto &entry : std::filesystem::directory_iterator(folder)) {
    auto array = runtime::readNpy(entry.path().string());
    if (!array.ok()) {
      ADD_FAILURE() << array.status().message();
      continue;
    }
    runtime::NpyArray &npy = array.value();
    bool real = std::string(runtime::elementName(npy.type)) == "f32";
    EXPECT_TRUE(real || std::string(runtime::elementName(npy.type)) == "i64") << entry.path();
    arrays[entry.path().stem().string()] =
        real ? Tensor::ofReals(npy.shape, convert<float, double>(npy.bytes))
             : Tensor::ofIntegers(npy.shape, convert<int64_t, int64_t>(npy.bytes));
  }
  EXPECT_FALSE(arrays.empty()) << folder;
  return arrays;
}

/// Whether element `i` of a tensor of this shape is of a position that the mask attends to.
static bool attended(const Shape &shape, int64_t i, const Tensor &mask) {
  size_t axis = shape.size() == 4 ? 2 : 1;
  int64_t inner = 1;
  for (size_t a = axis + 1; a < shape.size(); ++a)
    inner *= shape[a];
  int64_t position = i / inner % shape[axis], batch = i / (elementCount(shape) / shape[0]);
  int64_t total = mask.shape[1];
  // Logits are of the last positions.
  return mask.integers()[size_t(batch * total + total - shape[axis] + position)] == 1;
}

double distance(const Tensor &a, const Tensor &b, const Tensor *mask) {
  if (a.shape != b.shape || a.isReal() != b.isReal())
    return INFINITY;
  double worst = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    if (mask && !attended(a.shape, i, *mask))
      continue;
    auto at = [&](const Tensor &x) {
      return x.isReal() ? x.reals()[size_t(i)] : double(x.integers()[size_t(i)]);
    };
    double difference = std::abs(at(a) - at(b));
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst;
}

double magnitude(const Tensor &x) {
  double worst = 0;
  std::visit(
      [&](auto &elements) {
        for (auto element : elements)
          worst = std::max(worst, std::abs(double(element)));
      },
      x.elements);
  return worst;
}

} // namespace otf::reference::test
