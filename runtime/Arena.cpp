// SPDX-License-Identifier: Apache-2.0
#include "runtime/Arena.h"

#include <algorithm>

namespace otf::runtime {

// A CUDA allocation is aligned to 256, and so are the blocks then; 64 is what kernels ask for.
static constexpr uint64_t kBlockAlignment = 256;
// No machine has more; sums of rooms below it cannot wrap.
static constexpr uint64_t kLimit = uint64_t(1) << 47;

bool Arena::fits(std::span<const int64_t> bytes) const {
  if (base == nullptr || rooms.size() != bytes.size())
    return false;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (uint64_t(bytes[i]) > rooms[i])
      return false;
  return true;
}

Status Arena::reserve(std::span<const int64_t> bytes, bool &moved) {
  moved = false;
  if (fits(bytes))
    return {};

  moved = true;
  const std::vector<uint64_t> oldRooms = keep ? rooms : std::vector<uint64_t>();
  const std::vector<void *> oldPointers = keep ? pointers : std::vector<void *>();
  rooms.resize(bytes.size());
  pointers.resize(bytes.size());
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint64_t need = uint64_t(bytes[i]);
    if (need > rooms[i] && need <= kLimit) {
      bool again = slack && rooms[i] != 0;
      rooms[i] = (again ? need + need / 4 : need) + kBlockAlignment - 1;
      rooms[i] -= rooms[i] % kBlockAlignment;
    }
    if (need > kLimit || (sum += rooms[i]) > kLimit) {
      rooms.clear();
      return deviceError("memory: a step needs more than ", kLimit >> 40,
                         " TiB (give shorter inputs)");
    }
  }
  void *old = base;
  base = nullptr;
  if (!keep)
    queue.release(old);
  Result<void *> memory = queue.allocate(std::max(sum, kBlockAlignment));
  if (!memory.ok()) {
    rooms.clear();
    if (keep)
      queue.release(old);
    return memory.status();
  }
  base = memory.value();
  total = sum;
  auto *at = static_cast<std::byte *>(base);
  for (size_t i = 0; i < bytes.size(); ++i) {
    pointers[i] = at;
    at += rooms[i];
  }
  // Rare, so contents may go by way of the host.
  std::vector<std::byte> contents;
  for (size_t i = 0; old && i < oldRooms.size(); ++i) {
    contents.resize(oldRooms[i]);
    OTF_TRY(queue.copyOut(contents.data(), oldRooms[i], oldPointers[i], oldRooms[i], oldRooms[i], 1));
    OTF_TRY(queue.copyIn(pointers[i], oldRooms[i], contents.data(), oldRooms[i], oldRooms[i], 1));
  }
  if (keep)
    queue.release(old);
  return {};
}

} // namespace otf::runtime
