// SPDX-License-Identifier: Apache-2.0
#include "lib/Codegen/CUDA/RowDivision.h"

#include <algorithm>

namespace otf::cuda {

// An H200. Any division is right on any machine, and one with about as many multiprocessors is divided about as well.
static constexpr int64_t kMultiprocessors = 132;
static constexpr int64_t kMostSplit = 8;
static constexpr int64_t kLatency = 8; // of a tile, in warps that would do something meanwhile

static int64_t divideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t RowDivision::blocks(int64_t tiles) const {
  return std::min(divideUp(tiles * split, threads / 32), kMultiprocessors * (kThreadsAtOnce / threads));
}

/// What the slowest multiprocessor does, in tiles.
static double cost(const RowDivision &division, const std::vector<int64_t> &tiles) {
  const int64_t warpsOfBlock = division.threads / 32;
  int64_t blocks = 0, turns = 0;
  for (int64_t lane : tiles) {
    const int64_t mine = division.blocks(lane);
    blocks += mine;
    turns = std::max(turns, divideUp(lane * division.split, mine * warpsOfBlock));
  }
  const int64_t warps = divideUp(blocks, kMultiprocessors) * warpsOfBlock, rounds = divideUp(warps * 32, kThreadsAtOnce);
  return double(turns * (warps + kLatency)) / double(division.split) + double(rounds - 1); // each round makes the record again
}

RowDivision divideRow(const std::vector<int64_t> &tiles, int64_t chunks) {
  RowDivision best;
  double least = 0;
  for (int64_t threads = kThreadsAtOnce; threads >= 256; threads -= 32) // of equals the first
    for (int64_t split = 1; split <= kMostSplit && threads / 32 % split == 0 && (split == 1 || split * 4 <= chunks); split *= 2)
      if (double now = cost({threads, split}, tiles); least == 0 || now < least) {
        least = now;
        best = {threads, split};
      }
  return best;
}

} // namespace otf::cuda
