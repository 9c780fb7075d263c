// SPDX-License-Identifier: Apache-2.0
//
// n random floats are n different ones, so few values in many columns are no accident: 4 values in 16 columns, 16 in 32 and 256 in
// 512 or more are asked for, in every group of every row that is looked at. f16 has 2^15 values below 1, which normal weights of a
// few hundred columns do not bring below these limits. Rows of one value say nothing.

#include "lib/Compile/GridDetector.h"

#include <algorithm>
#include <vector>

namespace otf {

static constexpr int64_t kMostRows = 16;

/// Whether every whole group of `group` columns has at most `most` values, and one has more than two.
static bool hasFewValues(const float *rows, int64_t count, int64_t columns, int64_t group, int64_t most) {
  std::vector<float> values;
  bool varied = false;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t begin = 0; begin + group <= columns; begin += group) {
      const float *from = rows + row * columns + begin;
      values.assign(from, from + group);
      std::sort(values.begin(), values.end());
      int64_t different = std::unique(values.begin(), values.end()) - values.begin();
      if (different > most)
        return false;
      varied = varied || different > 2;
    }
  return varied;
}

std::string describeGrid(const float *rows, int64_t count, int64_t columns) {
  count = std::min(count, kMostRows);
  struct {
    int64_t group, most;
  } kinds[] = {{16, 4}, {32, 16}, {512, 256}, {1024, 256}};
  for (auto [group, most] : kinds)
    if (columns >= group && hasFewValues(rows, count, columns, group, most))
      return "at most " + std::to_string(most) + " values in each " + std::to_string(group) + " columns";
  return {};
}

} // namespace otf
