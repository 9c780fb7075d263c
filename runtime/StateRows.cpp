// SPDX-License-Identifier: Apache-2.0
#include "runtime/StateRows.h"

#include "lib/Encoding/CacheRow.h"

namespace otf::runtime {

int64_t heldBytes(const StateInfo &state, std::vector<int64_t> &shape, int64_t bytes) {
  if (!isConverted(state))
    return bytes;
  const int64_t count = bytes / int64_t(sizeof(float));
  if (state.type == ElementType::f16)
    return count * int64_t(sizeof(uint16_t));
  shape.back() += kCacheScaleBytes;
  return count / state.width * (state.width + kCacheScaleBytes);
}

void holdRows(const StateInfo &state, const void *from, int64_t count, std::byte *to) {
  const auto *bytes = static_cast<const std::byte *>(from);
  const int64_t width = state.type == ElementType::i8 ? state.width : 1;
  std::vector<float> row(static_cast<size_t>(width));
  for (int64_t at = 0; at < count; at += width) {
    std::memcpy(row.data(), bytes + at * int64_t(sizeof(float)), row.size() * sizeof(float));
    if (state.type == ElementType::i8) {
      encodeCacheRow(row.data(), width, to + at / width * (width + kCacheScaleBytes));
    } else {
      const uint16_t half = cacheHalf(row[0]);
      std::memcpy(to + at * int64_t(sizeof half), &half, sizeof half);
    }
  }
}

void giveRows(const StateInfo &state, const std::vector<std::byte> &from, std::vector<int64_t> &shape, std::vector<float> &to) {
  if (state.type == ElementType::f16) {
    to.resize(from.size() / sizeof(uint16_t));
    for (size_t i = 0; i < to.size(); ++i) {
      uint16_t half;
      std::memcpy(&half, from.data() + i * sizeof half, sizeof half);
      to[i] = halfToFloat(half);
    }
    return;
  }
  const size_t width = size_t(state.width), bytes = width + kCacheScaleBytes;
  shape.back() = state.width;
  to.resize(from.size() / bytes * width);
  for (size_t row = 0; row < from.size() / bytes; ++row)
    decodeCacheRow(from.data() + row * bytes, state.width, to.data() + row * width);
}

} // namespace otf::runtime
