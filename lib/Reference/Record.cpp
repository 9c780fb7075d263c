// SPDX-License-Identifier: Apache-2.0
//
// q = rint(x / scale): the quotient is rounded to f32 first, as the definition in f32 has it. For an
// x that is a float the bytes are then those of every kernel: a double holds the quotient of two
// floats closely enough that rounding it again is rounding once.

#include "lib/Reference/Record.h"

#include "lib/Encoding/Layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace otf::reference {

std::vector<int64_t> columnOrder(int64_t columns, const std::vector<int64_t> &outliers) {
  std::vector<int64_t> order;
  for (int64_t column = 0; column < columns; ++column)
    if (!std::binary_search(outliers.begin(), outliers.end(), column))
      order.push_back(column);
  order.insert(order.end(), outliers.begin(), outliers.end());
  return order;
}

int64_t recordBytes(int64_t background, int64_t outliers) {
  return recordLayout(background, outliers).bytes;
}

template <typename T> static void store(std::vector<uint8_t> &bytes, int64_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

void writeRecord(const double *x, const std::vector<int64_t> &order, int64_t outliers,
                 int64_t *record, const double *grid) {
  int64_t background = int64_t(order.size()) - outliers;
  RecordLayout layout = recordLayout(background, outliers);
  std::vector<uint8_t> bytes(size_t(layout.bytes));
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    int64_t first = chunk * kChunkColumns, last = std::min(first + kChunkColumns, background);
    double largest = 0;
    for (int64_t i = first; i < last; ++i)
      largest = std::max(largest, std::abs(x[order[size_t(i)]]));
    float scale = grid ? 1 : float(largest / 127);
    int32_t sum = 0;
    for (int64_t i = first; i < last; ++i) {
      if (grid) {
        auto q = int8_t(std::fmin(std::fmax(std::rint(float(x[order[size_t(i)]] / grid[0])) + grid[1], -128.0), 127.0));
        bytes[size_t(i)] = uint8_t(q);
        sum += q;
        continue;
      }
      double quotient = scale == 0 ? 0 : float(x[order[size_t(i)]] / scale);
      // A subnormal scale can be so coarse that this clips.
      auto q = int8_t(std::clamp(std::rint(quotient), -127.0, 127.0));
      bytes[size_t(i)] = uint8_t(q);
      sum += q;
    }
    store(bytes, layout.scaleOffset + 4 * chunk, scale);
    store(bytes, layout.sumOffset + 4 * chunk, sum);
  }
  for (int64_t i = 0; i < outliers; ++i)
    store(bytes, layout.outlierOffset + 4 * i, float(x[order[size_t(background + i)]]));
  for (uint8_t byte : bytes)
    *record++ = int8_t(byte);
}

void readRecord(const int64_t *record, const std::vector<int64_t> &order, int64_t outliers,
                double *x) {
  int64_t background = int64_t(order.size()) - outliers;
  RecordLayout layout = recordLayout(background, outliers);
  auto real = [&](int64_t at) {
    uint8_t bytes[4];
    for (int i = 0; i < 4; ++i)
      bytes[i] = uint8_t(record[at + i]);
    float value;
    std::memcpy(&value, bytes, 4);
    return double(value);
  };
  for (int64_t i = 0; i < background; ++i)
    x[order[size_t(i)]] = real(layout.scaleOffset + i / kChunkColumns * 4) * double(record[i]);
  for (int64_t i = 0; i < outliers; ++i)
    x[order[size_t(background + i)]] = real(layout.outlierOffset + 4 * i);
}

} // namespace otf::reference
